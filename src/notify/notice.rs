//! What people are told: a kind, whose pod it is about, and words that may come from a log and are
//! never more than text.

use crate::secret::{Secret, scrub};

/// Longest text of a notice, in bytes. ntfy turns more than 4,096 into an attachment
/// (<https://docs.ntfy.sh/publish/#limitations>), and a screen shows less than this.
pub const TEXT_MAX: usize = 2_000;

/// What happened. A closed list; the words of [`Self::as_str`] are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoticeKind {
    /// A run ended well, or was ended by a person.
    Ended,
    /// A run failed.
    Failed,
    /// A watch pages.
    Paged,
    /// A pod was read back as off the bill.
    Stopped,
    /// A stop was not confirmed: something may bill.
    StopFailed,
    /// A limit is nearly used up.
    AboutToExceed,
    /// Somebody tries the channels.
    Test,
}

impl NoticeKind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Ended,
        Self::Failed,
        Self::Paged,
        Self::Stopped,
        Self::StopFailed,
        Self::AboutToExceed,
        Self::Test,
    ];

    /// The word for programs: ntfy's tag.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Failed => "failed",
            Self::Paged => "paged",
            Self::Stopped => "stopped",
            Self::StopFailed => "stop_failed",
            Self::AboutToExceed => "about_to_exceed",
            Self::Test => "test",
        }
    }

    /// The words for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Ended => "run ended",
            Self::Failed => "run FAILED",
            Self::Paged => "page",
            Self::Stopped => "pod stopped",
            Self::StopFailed => "STOP NOT CONFIRMED",
            Self::AboutToExceed => "budget nearly used up",
            Self::Test => "test",
        }
    }

    /// How loud it is, on ntfy's scale of 1 to 5 where 3 is usual.
    #[must_use]
    pub const fn priority(self) -> u8 {
        match self {
            Self::Ended | Self::Stopped | Self::Test => 3,
            Self::Failed | Self::Paged | Self::AboutToExceed => 4,
            Self::StopFailed => 5,
        }
    }
}

/// One thing to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What happened.
    pub kind: NoticeKind,
    /// The vehicle; `None` when it is about several or none.
    pub vehicle: Option<String>,
    /// The words. Whatever they hold, they are data: a log line may be among them.
    pub text: String,
}

impl Notice {
    /// A notice about one vehicle.
    #[must_use]
    pub fn of(kind: NoticeKind, vehicle: &str, text: impl Into<String>) -> Self {
        Self { kind, vehicle: Some(vehicle.to_owned()), text: text.into() }
    }

    /// A notice about no single vehicle.
    #[must_use]
    pub fn general(kind: NoticeKind, text: impl Into<String>) -> Self {
        Self { kind, vehicle: None, text: text.into() }
    }

    /// The notice as it goes out: without secrets and control characters, and cut.
    #[must_use]
    pub fn written(&self, is_local: bool, secrets: &[Secret]) -> Message {
        let who = if is_local { "podtether (local cloud, $0)" } else { "podtether" };
        let vehicle = self.vehicle.as_deref().map_or_else(String::new, |name| format!("{name}: "));
        let title = format!("{who}: {vehicle}{}", self.kind.title());
        Message {
            kind: self.kind,
            title: cut(&plain(&scrub(&title, secrets)), 200),
            text: cut(&plain(&scrub(&self.text, secrets)), TEXT_MAX),
        }
    }
}

/// A notice as it goes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What happened.
    pub kind: NoticeKind,
    /// One line.
    pub title: String,
    /// At most [`TEXT_MAX`] bytes and a mark where it was cut.
    pub text: String,
}

/// Without control characters: NUL cannot be an argument, ESC would colour a screen.
fn plain(text: &str) -> String {
    let keep = |c: char| !c.is_control() || c == '\n' || c == '\t';
    text.chars().map(|c| if keep(c) { c } else { ' ' }).collect()
}

/// A text whose markup characters are written out.
pub(super) fn without_markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The first `max` bytes at most, between two characters, and a mark where something is missing.
fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(max);
    format!("{} … ({} bytes cut)", &text[..end], text.len() - end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters_and_says_so() {
        let text = "ä".repeat(5_000);
        let message = Notice::of(NoticeKind::Paged, "rover", text).written(false, &[]);
        assert_eq!(message.text, format!("{} … (8000 bytes cut)", "ä".repeat(1_000)));
        assert_eq!(message.title, "podtether: rover: page");
        let whole = "x".repeat(TEXT_MAX);
        assert_eq!(
            Notice::general(NoticeKind::Test, whole.as_str()).written(true, &[]).text,
            whole
        );
    }

    /// H01: what looks like a key, and what is known to be one, does not go out.
    #[test]
    fn a_notice_carries_no_secret_and_no_control_character() {
        let secret = Secret::new("hunter2-hunter2").unwrap();
        let text = "a\0b\x1b[31mc\r rpa_ABCDEFGH1234 hunter2-hunter2\nd\t'\"$(id)`id`";
        let message =
            Notice::general(NoticeKind::Failed, text).written(false, std::slice::from_ref(&secret));
        assert_eq!(message.text, "a b [31mc  [secret] [secret]\nd\t'\"$(id)`id`");
    }

    #[test]
    fn every_kind_has_a_word_of_its_own_and_a_stop_that_failed_is_the_loudest() {
        for (i, kind) in NoticeKind::ALL.iter().enumerate() {
            let others = &NoticeKind::ALL[..i];
            assert!(others.iter().all(|other| other.as_str() != kind.as_str()), "{kind:?}");
            let loudest = kind.priority() == 5;
            assert_eq!(loudest, *kind == NoticeKind::StopFailed, "{kind:?}");
        }
    }
}
