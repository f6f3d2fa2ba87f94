//! What single values must look like: a check says why a text will not do and what would.

use super::WebhookShape;
use crate::domain::{BudgetWindow, Label};

/// Why a text will not do, and what would.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub why: String,
    pub fix: String,
}

/// A check of one text.
pub(super) type Check = fn(&str) -> Result<(), Fault>;

fn fault(why: impl Into<String>, fix: impl Into<String>) -> Fault {
    Fault { why: why.into(), fix: fix.into() }
}

/// Any text that is not empty, has no control characters and no white space around it.
pub(super) fn any(text: &str) -> Result<(), Fault> {
    if text.trim().is_empty() {
        return Err(fault("is empty", "give a text"));
    }
    if text.chars().any(char::is_control) {
        return Err(fault("contains a control character", "write it on one line"));
    }
    if text.trim() != text {
        return Err(fault("has white space around it", format!("write {:?}", text.trim())));
    }
    Ok(())
}

/// A keychain account. It is an argument of the keychain's program and must not look like an option.
pub(super) fn account(text: &str) -> Result<(), Fault> {
    any(text)?;
    if text.starts_with('-') {
        return Err(fault("starts with '-'", "write the login name, or leave the key out"));
    }
    Ok(())
}

/// A label of runs.
pub(super) fn label(text: &str) -> Result<(), Fault> {
    Label::parse(text).map(|_| ()).map_err(|error| {
        let fix = format!(
            "use up to 64 letters, digits and any of . _ - / : @ +, starting with a letter or digit, for example {}",
            error.suggestion
        );
        fault("is no label", fix)
    })
}

/// A text without white space.
pub(super) fn word(text: &str) -> Result<(), Fault> {
    any(text)?;
    if text.contains(char::is_whitespace) {
        let joined: String = text.split_whitespace().collect();
        return Err(fault("contains white space", format!("write {joined}")));
    }
    Ok(())
}

/// A name of a pod or volume. It is typed again to terminate a pod and becomes part of commands,
/// so it is kept to one line of plain characters.
pub(super) fn name(text: &str) -> Result<(), Fault> {
    any(text)?;
    if text.len() > 191 {
        return Err(fault("is longer than 191 bytes", "choose a shorter name"));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || " ._-".contains(c);
    match text.chars().find(|c| !plain(*c)) {
        Some(c) => Err(fault(
            format!("contains {c:?}"),
            "use letters, digits, '.', '_', '-' and spaces, for example my-pod",
        )),
        None => Ok(()),
    }
}

/// A vehicle's or training's name: it becomes a folder and a word of a command line.
pub(super) fn declared_name(text: &str) -> Result<(), Fault> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    if starts_well && text.len() <= 64 && text.chars().all(plain) {
        return Ok(());
    }
    Err(fault(
        "is not a name",
        "use up to 64 letters, digits, '_' and '-', starting with a letter or digit",
    ))
}

/// A commit by its whole name: a shorter one may come to mean another.
pub(super) fn commit(text: &str) -> Result<(), Fault> {
    let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    if text.len() == 40 && text.bytes().all(is_hex) {
        return Ok(());
    }
    Err(fault("is not a whole commit", "write its 40 lower-case hexadecimal digits"))
}

/// The cloud.
pub(super) fn cloud(text: &str) -> Result<(), Fault> {
    match text {
        "runpod" | "local" => Ok(()),
        _ => Err(fault("is not a cloud", "write runpod, or local for the twin on this machine")),
    }
}

/// A switch.
pub(super) fn true_or_false(text: &str) -> Result<(), Fault> {
    match text {
        "true" | "false" => Ok(()),
        _ => Err(fault("is neither true nor false", "write true or false")),
    }
}

/// A key that is only ever switched on: leaving it out is the other way.
pub(super) fn is_true(text: &str) -> Result<(), Fault> {
    match text {
        "true" => Ok(()),
        _ => Err(fault("is not true", "write true, or leave the key out")),
    }
}

/// A command of one line or many.
pub(super) fn script(text: &str) -> Result<(), Fault> {
    if text.trim().is_empty() {
        return Err(fault("is empty", "give a command"));
    }
    if text.contains('\0') {
        return Err(fault("contains a NUL byte", "leave it out"));
    }
    Ok(())
}

/// The hash of a file.
pub(super) fn sha256(text: &str) -> Result<(), Fault> {
    let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    if text.len() == 64 && text.bytes().all(is_hex) {
        return Ok(());
    }
    Err(fault(
        "is not a SHA-256",
        "write its 64 lower-case hexadecimal digits, as sha256sum or shasum -a 256 print them",
    ))
}

/// A number of lines, or one for each iteration.
pub(super) fn iterations_or_count(text: &str) -> Result<(), Fault> {
    let is_count = text.parse::<u32>().is_ok_and(|count| count > 0);
    if is_count || text == "iterations" {
        return Ok(());
    }
    Err(fault("is neither a number from 1 nor iterations", "write for example iterations"))
}

/// What becomes of the pod at a stop point.
pub(super) fn pause(text: &str) -> Result<(), Fault> {
    match text {
        "true" | "stop" | "leave" => Ok(()),
        _ => Err(fault(
            "is no way to pause",
            "write stop to take the pod off the bill, or leave to leave it running",
        )),
    }
}

/// The shape of a webhook. Its address is a secret: whoever has it can write, and read at ntfy.
pub(super) fn webhook(text: &str) -> Result<(), Fault> {
    match WebhookShape::parse(text) {
        Some(_) => Ok(()),
        None => Err(fault(
            "is not a kind of webhook",
            format!("write ntfy or slack; {}", super::notify::WHERE_THE_ADDRESS_GOES),
        )),
    }
}

/// The time that the budget counts in.
pub(super) fn budget_window(text: &str) -> Result<(), Fault> {
    match BudgetWindow::parse(text) {
        Some(_) => Ok(()),
        None => Err(fault("is not a window", "write total, month or day")),
    }
}

/// The tier: SECURE, always.
pub(super) fn cloud_type(text: &str) -> Result<(), Fault> {
    match text {
        "SECURE" => Ok(()),
        "COMMUNITY" => Err(fault(
            "breaks the rule is_in_the_secure_cloud: network volumes exist nowhere else",
            "write SECURE, or leave the key out",
        )),
        _ => Err(fault("is not a cloud tier", "write SECURE, or leave the key out")),
    }
}

/// A data centre's id. The list of them is the provider's and grows, so only the form is checked.
pub(super) fn data_center(text: &str) -> Result<(), Fault> {
    let fits = |text: &str| {
        text.contains('-')
            && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'-')
    };
    if fits(text) {
        return Ok(());
    }
    let upper = text.trim().to_ascii_uppercase().replace(['_', ' '], "-");
    let would_do = if fits(&upper) { upper } else { "EU-RO-1".to_owned() };
    Err(fault("is not a data centre's id", format!("write for example {would_do}")))
}

/// A path that stays below the folder that it is relative to.
pub(super) fn relative(text: &str) -> Result<(), Fault> {
    any(text)?;
    let bad = |part: &str| matches!(part, "" | "." | "..");
    if text.split('/').any(bad) {
        return Err(fault("is not a plain relative path", "write for example folder/file"));
    }
    Ok(())
}

/// A path on the pod: relative to the mount path, or absolute and then below it, which is checked where
/// the mount path is known.
pub(super) fn pod_path(text: &str) -> Result<(), Fault> {
    relative(text.strip_prefix('/').unwrap_or(text))
}

/// A name as a line of code has it, and a placeholder of a command.
pub(super) fn identifier(text: &str) -> Result<(), Fault> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if starts_well && text.chars().all(plain) {
        return Ok(());
    }
    Err(fault("is not a field's name", "use letters, digits and '_', for example volume_range"))
}

/// How a line looks that holds a value.
pub(super) fn line_pattern(text: &str) -> Result<(), Fault> {
    match crate::domain::LinePattern::parse(text) {
        Some(_) => Ok(()),
        None => Err(fault(
            "is not a pattern of a line",
            "write {name} and {value} once each, in this order, for example \"{name} = {value}\"",
        )),
    }
}

fn dotted_numbers(text: &str) -> Option<usize> {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    text.split('.').all(digits).then(|| text.split('.').count())
}

/// A CUDA version: two numbers (REST v2, `allowedCudaVersions`).
pub(super) fn cuda_version(text: &str) -> Result<(), Fault> {
    match dotted_numbers(text) {
        Some(2) => Ok(()),
        _ => Err(fault("is not a CUDA version", "write for example \"12.4\"")),
    }
}

/// A driver version: two or three numbers.
pub(super) fn driver_version(text: &str) -> Result<(), Fault> {
    match dotted_numbers(text) {
        Some(2 | 3) => Ok(()),
        _ => Err(fault("is not a driver version", "write for example \"535.129.03\"")),
    }
}

/// A port as the provider writes it.
pub(super) fn port(text: &str) -> Result<(), Fault> {
    let (number, protocol) = text.split_once('/').unwrap_or((text, ""));
    let plain = number.bytes().all(|b| b.is_ascii_digit());
    let is_port = plain && number.parse::<u16>().is_ok_and(|number| number > 0);
    match (is_port, protocol) {
        (true, "tcp" | "http") => Ok(()),
        (true, _) => Err(fault(
            "is not a port with its protocol",
            format!("write {number}/tcp or {number}/http"),
        )),
        _ => Err(fault("is not a port with its protocol", "write for example 22/tcp")),
    }
}

/// An absolute, normalised path inside the pod that is not `/`.
pub(super) fn mount_path(text: &str) -> Result<(), Fault> {
    any(text)?;
    let Some(inside) = text.strip_prefix('/') else {
        return Err(fault("is not an absolute path", "write for example /workspace"));
    };
    let parts: Vec<&str> =
        inside.split('/').filter(|part| !matches!(*part, "" | "." | "..")).collect();
    if parts.is_empty() {
        return Err(fault(
            "would hide the pod's whole file system",
            "write for example /workspace",
        ));
    }
    let normal = format!("/{}", parts.join("/"));
    if normal != text {
        return Err(fault("is not normalised", format!("write {normal}")));
    }
    Ok(())
}
