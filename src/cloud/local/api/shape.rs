//! Checks of request bodies against the provider's schema, with its own words for a violation.

use serde_json::{Map, Value};

/// Collects what is wrong with a body. Paths are written as the provider writes them: `$.gpu`.
#[derive(Default)]
pub struct Shape {
    errors: Vec<String>,
}

impl Shape {
    pub fn into_errors(self) -> Vec<String> {
        self.errors
    }

    fn wrong(&mut self, path: &str, what: &str) {
        self.errors.push(format!("{path}: {what}"));
    }

    /// An object with no other fields than `known`, and with every one of `required`.
    pub fn object<'a>(
        &mut self,
        path: &str,
        value: &'a Value,
        known: &[&str],
        required: &[&str],
    ) -> Option<&'a Map<String, Value>> {
        let Some(object) = value.as_object() else {
            self.wrong(path, "expected an object");
            return None;
        };
        for name in object.keys().filter(|name| !known.contains(&name.as_str())) {
            self.wrong(path, &format!("additional properties '{name}' not allowed"));
        }
        for name in required.iter().filter(|name| !object.contains_key(**name)) {
            self.wrong(path, &format!("missing property '{name}'"));
        }
        Some(object)
    }

    /// A text of at least `shortest` characters.
    pub fn text(&mut self, path: &str, value: Option<&Value>, shortest: usize) {
        let Some(value) = value else { return };
        match value.as_str() {
            None => self.wrong(path, "expected a string"),
            Some(text) if text.chars().count() < shortest => {
                self.wrong(path, &format!("length must be at least {shortest}"));
            }
            Some(_) => {}
        }
    }

    pub fn choice(&mut self, path: &str, value: Option<&Value>, choices: &[&str]) {
        let Some(value) = value else { return };
        if !value.as_str().is_some_and(|text| choices.contains(&text)) {
            self.wrong(path, &format!("value must be one of {}", choices.join(", ")));
        }
    }

    pub fn integer(&mut self, path: &str, value: Option<&Value>, least: u64, most: u64) {
        let Some(value) = value else { return };
        match value.as_u64() {
            None => self.wrong(path, "expected a whole number"),
            Some(number) if number < least => {
                self.wrong(path, &format!("minimum is {least}, got {number}"));
            }
            Some(number) if number > most => {
                self.wrong(path, &format!("maximum is {most}, got {number}"));
            }
            Some(_) => {}
        }
    }

    pub fn boolean(&mut self, path: &str, value: Option<&Value>) {
        if value.is_some_and(|value| !value.is_boolean()) {
            self.wrong(path, "expected true or false");
        }
    }

    /// A list of texts of which each must satisfy `good`; `what` says what that is.
    pub fn texts(
        &mut self,
        path: &str,
        value: Option<&Value>,
        what: &str,
        good: impl Fn(&str) -> bool,
    ) {
        let Some(value) = value else { return };
        let Some(items) = value.as_array() else { return self.wrong(path, "expected a list") };
        for (position, item) in items.iter().enumerate() {
            if !item.as_str().is_some_and(&good) {
                self.wrong(&format!("{path}[{position}]"), &format!("expected {what}"));
            }
        }
    }

    /// An object of texts.
    pub fn text_map(&mut self, path: &str, value: Option<&Value>) {
        let Some(value) = value else { return };
        let Some(object) = value.as_object() else { return self.wrong(path, "expected an object") };
        for (name, _) in object.iter().filter(|(_, item)| !item.is_string()) {
            self.wrong(&format!("{path}.{name}"), "expected a string");
        }
    }

    pub fn longest(&mut self, path: &str, items: &[Value], most: usize) {
        if items.len() > most {
            self.wrong(path, &format!("at most {most} items, got {}", items.len()));
        }
    }
}

/// `major.minor`.
pub fn is_version(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once('.').is_some_and(|(major, minor)| digits(major) && digits(minor))
}
