//! Timestamps as the provider writes them: RFC 3339 by its specification, and Go's own style in
//! practice (`2026-07-03 13:25:25.682 +0000 UTC`). Pure.

use chrono::{DateTime, Datelike, Utc};

/// The instant in `text`; `None` when it is neither style, or Go's zero time, which means "never".
#[must_use]
pub fn parse(text: &str) -> Option<DateTime<Utc>> {
    let text = text.trim();
    let instant = match DateTime::parse_from_rfc3339(text) {
        Ok(instant) => instant,
        Err(_) => {
            // Date, time, offset; the zone's name after them repeats the offset.
            let words: Vec<&str> = text.split_whitespace().take(3).collect();
            DateTime::parse_from_str(&words.join(" "), "%Y-%m-%d %H:%M:%S%.f %z").ok()?
        }
    };
    (instant.year() > 1).then(|| instant.with_timezone(&Utc))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_styles_of_timestamp_name_the_same_instant() {
        let expected = DateTime::from_timestamp_millis(1_783_085_125_682);
        assert!(expected.is_some());
        for text in [
            "2026-07-03T13:25:25.682Z",
            "2026-07-03T15:25:25.682+02:00",
            "2026-07-03 13:25:25.682 +0000 UTC",
            "2026-07-03 15:25:25.682 +0200 CEST",
            " 2026-07-03 13:25:25.682 +0000 UTC m=+0.000000001",
        ] {
            assert_eq!(parse(text), expected, "{text:?}");
        }
        assert_eq!(
            parse("2026-07-03 13:25:25 +0000 UTC").map(|instant| instant.timestamp()),
            Some(1_783_085_125)
        );
    }

    #[test]
    fn what_is_no_timestamp_is_no_instant() {
        for text in
            ["", "soon", "2026-07-03", "0001-01-01T00:00:00Z", "0001-01-01 00:00:00 +0000 UTC"]
        {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
