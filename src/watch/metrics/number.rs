//! Numbers and times as training logs print them.

use std::time::Duration;

/// A number, also `nan` and `inf` as Python prints them, also with the `s` of seconds.
pub(super) fn number(text: &str) -> Option<f64> {
    text.strip_suffix('s').unwrap_or(text).trim_end().parse().ok()
}

/// `12.34s`, `MM:SS`, `HH:MM:SS`, and Python's `timedelta`: `1 day, 4:11:43`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let (days, clock) = match text.split_once(", ") {
        Some((days, clock)) => (days.split_once(" day")?.0.parse().ok()?, clock),
        None => (0.0, text),
    };
    let mut seconds = 0.0;
    let mut parts = 0;
    for part in clock.split(':') {
        seconds = seconds * 60.0 + number(part)?;
        parts += 1;
    }
    let whole = if parts <= 3 { days * 86_400.0 + seconds } else { return None };
    Duration::try_from_secs_f64(whole).ok()
}

/// The line without the rank that torch's launcher may put before it: `[default0]:`, `[rank0]:`.
pub(in crate::watch) fn without_rank(line: &str) -> &str {
    let tagged = line.strip_prefix("[default").or_else(|| line.strip_prefix("[rank"));
    let rest = tagged.and_then(|rest| rest.split_once("]:"));
    match rest {
        Some((rank, rest)) if rank.bytes().all(|byte| byte.is_ascii_digit()) => {
            rest.strip_prefix(' ').unwrap_or(rest)
        }
        _ => line,
    }
}

/// The number that stands right after `label` in `line`.
pub(super) fn after<'a>(line: &'a str, label: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(label)?;
    rest.trim_start().split(|c: char| c.is_whitespace() || c == ',').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_every_form() {
        let seconds = |text| duration(text).map(|time| time.as_secs_f64());
        assert_eq!(seconds("12.34s"), Some(12.34));
        assert_eq!(seconds("14:03"), Some(843.0));
        assert_eq!(seconds("01:02:03"), Some(3723.0));
        assert_eq!(seconds("1 day, 4:11:43"), Some(101_503.0));
        assert_eq!(seconds("12 days, 0:00:01"), Some(1_036_801.0));
        let bad = ["", "?", "nan", "nans", "soon", "-3s", "1:2:3:4", "a day, 1:2:3"];
        for bad in bad.into_iter().chain(["-1 day, 23:59:59"]) {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }

    #[test]
    fn only_a_rank_is_taken_from_the_start_of_a_line() {
        assert_eq!(without_rank("[rank12]: Traceback"), "Traceback");
        assert_eq!(without_rank("[default0]:  File"), " File");
        assert_eq!(without_rank("[rankx]: a"), "[rankx]: a");
        assert_eq!(without_rank("[1, 0]: a"), "[1, 0]: a");
    }
}
