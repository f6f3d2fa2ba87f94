//! From what was found in a job's folder to the state of the job. Pure.

use crate::domain::JobState;

/// What became of the process that wrote the job's pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Process {
    /// No pid was written yet.
    None,
    /// Pid, start time and boot are the same: it lives.
    Alive,
    /// It is gone, or a zombie.
    Dead,
    /// The pid now belongs to another process, or the machine was booted since.
    Replaced,
    /// The pid could not be read or makes no sense.
    Unreadable,
}

/// What a file that should hold an exit code holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CodeFile {
    /// There is none.
    Absent,
    /// Nothing or white space: still being written, or left by a full disk.
    Blank,
    /// An exit code.
    Code(i32),
    /// Something else.
    Senseless(String),
    /// It is there and cannot be read.
    Unreadable,
}

impl CodeFile {
    /// Reads a file's content: exactly one line with a number from 0 to 255, nothing else (E04).
    pub(super) fn parse(content: &[u8]) -> Self {
        let text = String::from_utf8_lossy(content);
        let line = text.strip_suffix('\n').unwrap_or(&text);
        if text.trim().is_empty() {
            return Self::Blank;
        }
        let digits = line.bytes().all(|byte| byte.is_ascii_digit());
        match line.parse::<u8>() {
            Ok(code) if digits => Self::Code(i32::from(code)),
            _ => Self::Senseless(text.chars().take(40).collect()),
        }
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Findings {
    pub(super) process: Process,
    /// `exit_code` of the folder.
    pub(super) code: CodeFile,
    /// The copy off the volume.
    pub(super) copy: CodeFile,
    pub(super) ceiling_struck: bool,
    /// Seconds since the launch lock was taken; `None` when it was not.
    pub(super) launch_age_sec: Option<u64>,
}

/// A wrapper writes its pid within seconds; one that has not after this long never will.
const STARTING_MAX_SEC: u64 = 60;

/// The state, the exit code, and what a reader should know beside them.
pub(super) fn judge(found: &Findings) -> (JobState, Option<i32>, Option<String>) {
    // The copy is written a moment before the file, so a living wrapper may still be between the two.
    let copy = if found.process == Process::Alive { &CodeFile::Absent } else { &found.copy };
    for file in [&found.code, copy] {
        if let CodeFile::Code(code) = *file {
            let state = match code {
                _ if found.ceiling_struck => JobState::TimedOut,
                0 => JobState::Succeeded,
                _ => JobState::Failed,
            };
            let note = (*file != found.code).then(|| {
                "the exit code could not be written to the volume, this is the copy beside it; is the volume full?".to_owned()
            });
            return (state, Some(code), note);
        }
    }
    let (state, note) = without_code(found);
    (state, None, note)
}

fn without_code(found: &Findings) -> (JobState, Option<String>) {
    // What is no exit code, and is not still being written, leaves open how the job ended.
    let ended = |state, subject: &str| match &found.code {
        CodeFile::Absent | CodeFile::Code(_) => (state, format!("{subject} left no exit code")),
        CodeFile::Blank => {
            (state, format!("{subject} left an empty exit_code; is the volume full?"))
        }
        CodeFile::Senseless(text) => {
            (JobState::Unknown, format!("{subject} left an exit_code that is none: {text:?}"))
        }
        CodeFile::Unreadable => {
            (JobState::Unknown, format!("{subject} left an exit_code that cannot be read"))
        }
    };
    let (state, note) = match (found.process, found.launch_age_sec) {
        (Process::Alive, _) if found.ceiling_struck => {
            (JobState::Running, "the ceiling has struck, the job is being ended".to_owned())
        }
        (Process::Alive, _) => return (JobState::Running, None),
        (Process::Dead, _) => ended(JobState::WrapperLost, "the wrapper is gone and"),
        (Process::Replaced, _) => {
            let subject = "the pod was booted since, or the wrapper's pid given out again; the job";
            ended(JobState::Orphaned, subject)
        }
        (Process::Unreadable, _) => {
            (JobState::Unknown, "the job's pid file cannot be read or makes no sense".to_owned())
        }
        (Process::None, Some(age)) if age > STARTING_MAX_SEC => {
            ended(JobState::WrapperLost, "the wrapper never came up, see its wrapper.log, and")
        }
        (Process::None, Some(_)) => return (JobState::Starting, None),
        (Process::None, None) => (JobState::Starting, "placed and not yet launched".to_owned()),
    };
    (state, Some(note))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(process: Process, content: Option<&str>) -> Findings {
        Findings {
            process,
            code: content.map_or(CodeFile::Absent, |text| CodeFile::parse(text.as_bytes())),
            copy: CodeFile::Absent,
            ceiling_struck: false,
            launch_age_sec: Some(3),
        }
    }

    /// E04: every content maps to a defined state, and none to success by accident.
    #[test]
    fn only_an_exact_zero_is_a_success() {
        use JobState::{Failed, Orphaned, Running, Starting, Succeeded, Unknown, WrapperLost};
        let table = [
            (Some("0\n"), Succeeded, Succeeded, Succeeded, Succeeded),
            (Some("0"), Succeeded, Succeeded, Succeeded, Succeeded),
            (Some("3\n"), Failed, Failed, Failed, Failed),
            (Some("255\n"), Failed, Failed, Failed, Failed),
            (None, Running, WrapperLost, Orphaned, Starting),
            (Some(""), Running, WrapperLost, Orphaned, Starting),
            (Some(" "), Running, WrapperLost, Orphaned, Starting),
            (Some("\n"), Running, WrapperLost, Orphaned, Starting),
            (Some("0\r\n"), Running, Unknown, Unknown, Starting),
            (Some("+0\n"), Running, Unknown, Unknown, Starting),
            (Some("0\n0\n"), Running, Unknown, Unknown, Starting),
            (Some("-1\n"), Running, Unknown, Unknown, Starting),
            (Some("300\n"), Running, Unknown, Unknown, Starting),
            (Some("abc"), Running, Unknown, Unknown, Starting),
        ];
        for (content, alive, dead, replaced, none) in table {
            for (process, expected) in [
                (Process::Alive, alive),
                (Process::Dead, dead),
                (Process::Replaced, replaced),
                (Process::None, none),
            ] {
                let (state, code, _) = judge(&found(process, content));
                assert_eq!(state, expected, "{content:?} with {process:?}");
                assert_eq!(code.is_some(), matches!(state, Succeeded | Failed), "{content:?}");
            }
        }
    }

    /// E04: on a full disk the copy off the volume speaks.
    #[test]
    fn the_copy_off_the_volume_counts_when_the_file_on_it_does_not() {
        for content in [None, Some("")] {
            let mut full = found(Process::Dead, content);
            full.copy = CodeFile::parse(b"7\n");
            let (state, code, note) = judge(&full);
            assert_eq!((state, code), (JobState::Failed, Some(7)));
            assert!(note.unwrap().contains("volume full"));
            full.process = Process::Alive;
            assert_eq!(judge(&full), (JobState::Running, None, None));
        }
    }

    /// A job's own 124 passes through.
    #[test]
    fn only_the_ceiling_makes_a_job_timed_out() {
        let mut done = found(Process::Dead, Some("124\n"));
        assert_eq!(judge(&done).0, JobState::Failed);
        done.ceiling_struck = true;
        assert_eq!(judge(&done), (JobState::TimedOut, Some(124), None));
    }

    /// E07: unreadable is unknown, never dead and never done; starting does not last for ever.
    #[test]
    fn what_cannot_be_read_is_unknown() {
        assert_eq!(judge(&found(Process::Unreadable, None)).0, JobState::Unknown);
        let mut stale = found(Process::Dead, None);
        stale.code = CodeFile::Unreadable;
        assert_eq!(judge(&stale).0, JobState::Unknown);
        let mut late = found(Process::None, None);
        late.launch_age_sec = Some(STARTING_MAX_SEC + 1);
        assert_eq!(judge(&late).0, JobState::WrapperLost);
    }

    /// The rows of the table in remote/README.md, one after the other, as what must hold for each.
    type Row = (JobState, fn(&Findings) -> bool);

    /// The code that counts: the file's own, or the copy's once the wrapper is gone.
    fn code(found: &Findings) -> Option<i32> {
        let of = |file: &CodeFile| if let CodeFile::Code(code) = file { Some(*code) } else { None };
        of(&found.code).or_else(|| of(&found.copy).filter(|_| found.process != Process::Alive))
    }

    /// What no job's end leaves: neither nothing, nor an exit code.
    fn is_odd(found: &Findings) -> bool {
        matches!(found.code, CodeFile::Senseless(_) | CodeFile::Unreadable)
    }

    fn is_late(found: &Findings) -> bool {
        found.process == Process::None && found.launch_age_sec.is_some_and(|age| age > 60)
    }

    const TABLE: [Row; 8] = [
        (JobState::TimedOut, |f| code(f).is_some() && f.ceiling_struck),
        (JobState::Succeeded, |f| code(f) == Some(0) && !f.ceiling_struck),
        (JobState::Failed, |f| code(f).is_some_and(|code| code != 0) && !f.ceiling_struck),
        (JobState::Running, |f| code(f).is_none() && f.process == Process::Alive),
        (JobState::Starting, |f| code(f).is_none() && f.process == Process::None && !is_late(f)),
        (JobState::WrapperLost, |f| {
            code(f).is_none() && !is_odd(f) && (f.process == Process::Dead || is_late(f))
        }),
        (JobState::Orphaned, |f| code(f).is_none() && !is_odd(f) && f.process == Process::Replaced),
        (JobState::Unknown, |f| {
            let is_over = matches!(f.process, Process::Dead | Process::Replaced) || is_late(f);
            code(f).is_none() && (f.process == Process::Unreadable || is_odd(f) && is_over)
        }),
    ];

    /// E04, E07: every content of the code and of its copy, with every fate of the wrapper, is exactly
    /// one row of the table.
    #[test]
    fn every_combination_is_exactly_one_row_of_the_table() {
        let processes =
            [Process::None, Process::Alive, Process::Dead, Process::Replaced, Process::Unreadable];
        let codes = [
            CodeFile::Absent,
            CodeFile::Blank,
            CodeFile::Code(0),
            CodeFile::Code(1),
            CodeFile::Code(124),
            CodeFile::Senseless("abc".to_owned()),
            CodeFile::Unreadable,
        ];
        let mut seen = 0;
        for process in processes {
            for code in &codes {
                for copy in &codes {
                    for ceiling_struck in [false, true] {
                        for launch_age_sec in [None, Some(0), Some(60), Some(61)] {
                            let found = Findings {
                                process,
                                code: code.clone(),
                                copy: copy.clone(),
                                ceiling_struck,
                                launch_age_sec,
                            };
                            let rows: Vec<JobState> = TABLE
                                .iter()
                                .filter(|(_, holds)| holds(&found))
                                .map(|(state, _)| *state)
                                .collect();
                            let (state, exit_code, _) = judge(&found);
                            assert_eq!(rows, [state], "{found:?}");
                            assert_eq!(exit_code, super::tests::code(&found), "{found:?}");
                            seen += 1;
                        }
                    }
                }
            }
        }
        assert_eq!(seen, 5 * 7 * 7 * 2 * 4);
    }
}
