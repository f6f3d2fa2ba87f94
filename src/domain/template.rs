//! A word with named holes, such as `--seed={seed}`. What fills a hole stays in its word: nothing is
//! ever split again, whatever it holds.

/// A word with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// As it was written.
    source: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Hole(String),
}

/// Why a text is no template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} has a brace that belongs to no placeholder; write {{name}} for one, {{{{ and }}}} for plain braces"
)]
pub struct TemplateError(pub String);

impl Template {
    /// Reads a text; `{{` and `}}` are plain braces.
    ///
    /// # Errors
    /// [`TemplateError`] when a brace is alone, or holds no name.
    pub fn parse(source: &str) -> Result<Self, TemplateError> {
        let wrong = || TemplateError(source.to_owned());
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut rest = source;
        while let Some(at) = rest.find(['{', '}']) {
            let (plain, from) = rest.split_at(at);
            text.push_str(plain);
            if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
                text.push_str(&from[..1]);
                rest = after;
                continue;
            }
            let (name, after) = from
                .strip_prefix('{')
                .and_then(|inside| inside.split_once('}'))
                .ok_or_else(wrong)?;
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.is_empty() || !name.chars().all(plain) {
                return Err(wrong());
            }
            if !text.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut text)));
            }
            parts.push(Part::Hole(name.to_owned()));
            rest = after;
        }
        text.push_str(rest);
        if !text.is_empty() || parts.is_empty() {
            parts.push(Part::Text(text));
        }
        Ok(Self { source: source.to_owned(), parts })
    }

    /// As it was written.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The names of its placeholders, in order.
    pub fn placeholders(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Hole(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// The text before its first placeholder; `None` when it has no placeholder.
    #[must_use]
    pub fn before_placeholder(&self) -> Option<&str> {
        match &self.parts[..] {
            [Part::Hole(_), ..] => Some(""),
            [Part::Text(text), Part::Hole(_), ..] => Some(text),
            _ => None,
        }
    }

    /// The word with every placeholder replaced.
    ///
    /// # Errors
    /// The name of the first placeholder that `value` does not know.
    pub fn fill(&self, value: impl Fn(&str) -> Option<String>) -> Result<String, String> {
        let mut word = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => word.push_str(text),
                Part::Hole(name) => word.push_str(&value(name).ok_or_else(|| name.clone())?),
            }
        }
        Ok(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_before_a_placeholder_is_told() {
        for (source, before) in [
            ("plain", None),
            ("", None),
            ("{{a}}", None),
            ("{seed}", Some("")),
            ("--seed={seed}", Some("--seed=")),
            ("{{x}}{a}b{c}", Some("{x}")),
        ] {
            assert_eq!(Template::parse(source).unwrap().before_placeholder(), before, "{source}");
        }
    }

    #[test]
    fn placeholders_are_filled_and_doubled_braces_are_braces() {
        let value = |name: &str| (name == "seed").then(|| "7 {x}".to_owned());
        for (source, filled) in [
            ("", Ok("")),
            ("plain", Ok("plain")),
            ("{seed}", Ok("7 {x}")),
            ("a={seed}{seed}.pt", Ok("a=7 {x}7 {x}.pt")),
            ("{{seed}}", Ok("{seed}")),
            ("{{{seed}}}", Ok("{7 {x}}")),
            ("{sed}", Err("sed")),
        ] {
            let template = Template::parse(source).unwrap();
            assert_eq!(template.source(), source);
            assert_eq!(template.fill(value).as_deref().map_err(String::as_str), filled, "{source}");
        }
        for source in ["{", "}", "{a", "a}", "{}", "{a b}", "{a}}", "{{a}"] {
            assert!(Template::parse(source).is_err(), "{source}");
        }
    }
}
