//! rsync's exit codes, told apart (D03). The meanings are those of rsync(1); the differences of
//! openrsync and of a transport between were measured.

/// What an exit of rsync calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Everything was sent.
    Done,
    /// Some files were not sent. Once more, then the pod's list says what is missing.
    Partial,
    /// Files vanished on the pod while they were being sent; a job at work does that.
    Vanished,
    /// The way to the pod failed. What has come is kept; once more.
    Link,
    /// The stream broke at once or in the middle: the link, or no rsync on the pod. Only the pod
    /// can tell (D05).
    Stream,
    /// This side cannot write: disk full, no permission.
    LocalDisk,
    /// Somebody stopped it.
    Interrupted,
    /// Wrong options or versions: ours to fix.
    Ours,
}

impl Outcome {
    /// `code` is `None` when a signal ended it.
    pub(super) const fn of(code: Option<i32>) -> Self {
        match code {
            Some(0) => Self::Done,
            Some(23 | 25) => Self::Partial,
            Some(24) => Self::Vanished,
            Some(12 | 126 | 127) => Self::Stream,
            Some(10 | 16 | 30 | 35 | 255) => Self::Link,
            Some(3 | 11) => Self::LocalDisk,
            Some(19 | 20) | None => Self::Interrupted,
            Some(_) => Self::Ours,
        }
    }
}

/// What the code means, for a message. `stderr` is what it said.
pub(super) fn meaning(code: i32, stderr: &str) -> &'static str {
    match code {
        // rsync's own words for bytes on the stream that are not rsync's.
        2 if stderr.contains("is your shell clean") => {
            "something that is not rsync wrote into the stream; see that the pod's shell says nothing by itself (~/.bashrc, /etc/profile.d)"
        }
        1 => "options were wrong",
        2 => "the two rsyncs do not understand each other",
        3 => "files or folders could not be selected",
        4 => "the pod sent what was not asked for",
        5 => "it could not start",
        10 => "a socket failed",
        11 => "a file could not be written; is the disk full?",
        12 => "the data stream broke",
        14 => "the transport could not be started",
        16 => "the connection was lost",
        20 => "it was interrupted",
        22 => "memory ran out",
        23 => "some files were not sent",
        24 => "files vanished while they were being sent",
        30 | 35 => "no data came for too long",
        126 | 127 => "the remote command was not found",
        255 => "the transport failed",
        _ => "it failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D03: each code calls for its own behaviour; none is swallowed.
    #[test]
    fn exit_codes_are_told_apart() {
        for (codes, outcome) in [
            (&[0][..], Outcome::Done),
            (&[23], Outcome::Partial),
            (&[24], Outcome::Vanished),
            (&[10, 16, 30, 35, 255], Outcome::Link),
            (&[11], Outcome::LocalDisk),
            (&[19, 20], Outcome::Interrupted),
            (&[1, 2, 4, 5, 13, 14, 21, 22, 99], Outcome::Ours),
            (&[12, 126, 127], Outcome::Stream),
        ] {
            for code in codes {
                assert_eq!(Outcome::of(Some(*code)), outcome, "{code}");
            }
        }
        assert_eq!(Outcome::of(None), Outcome::Interrupted);
    }
}
