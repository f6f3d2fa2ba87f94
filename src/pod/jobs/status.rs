//! One job, as a look tells of it.

use super::answer::{Answer, AnswerError};
use super::state::{CodeFile, Findings, Process, judge};
use crate::domain::{JobMeta, JobState};
use std::time::Duration;

/// A piece of a job's `out.log`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogSlice {
    /// Where it begins, in bytes. Less than what was asked for when the log has become shorter.
    pub offset: u64,
    /// Length of the whole log in bytes.
    pub size: u64,
    /// The bytes, as they are.
    pub bytes: Vec<u8>,
}

impl LogSlice {
    /// Where to go on reading.
    #[must_use]
    pub fn next_offset(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

/// What is known about a job after one look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobStatus {
    /// The state.
    pub state: JobState,
    /// The exit code, once it is settled. 124 with [`JobState::TimedOut`].
    pub exit_code: Option<i32>,
    /// Whether the ceiling struck, also when the job has not yet ended.
    pub ceiling_struck: bool,
    /// Whether processes of the job live on although its wrapper is gone.
    pub lives_on: bool,
    /// What the folder remembers about the launch; `None` when missing or unreadable.
    pub meta: Option<JobMeta>,
    /// The asked-for piece of the log; empty when there is no log yet, `None` when nobody could look.
    pub log: Option<LogSlice>,
    /// How long ago the log was last written to, never negative (A14). `None` without a log.
    pub log_age: Option<Duration>,
    /// Processes that outlived the job, one a line: `<pid> <killed|alive|left> <command>`.
    pub leftovers: Vec<String>,
    /// What a reader should know beside the state.
    pub note: Option<String>,
}

/// Said wherever a volume that hangs leaves something unknown (E14).
const UNRESPONSIVE: &str = "volume unresponsive";

/// What a look says about the job that it was asked for; `None` when it was asked for none.
///
/// # Errors
/// [`AnswerError`] when it makes no sense. Then nothing is known about the job.
pub(in crate::pod) fn job_status(
    answer: &Answer,
    volume_answers: bool,
) -> Result<Option<JobStatus>, AnswerError> {
    let empty = |state, note: Option<&str>| JobStatus {
        state,
        exit_code: None,
        ceiling_struck: false,
        lives_on: false,
        meta: None,
        log: None,
        log_age: None,
        leftovers: Vec::new(),
        note: note.map(str::to_owned),
    };
    if answer.get("job").is_none() {
        return Ok(None);
    }
    if !volume_answers {
        return beside_the_volume(answer).map(|(state, exit_code, struck, note)| {
            let status = empty(state, Some(&note));
            Some(JobStatus { exit_code, ceiling_struck: struck, ..status })
        });
    }
    match answer.get("exists") {
        Some("yes") => {}
        Some("no") => return Ok(Some(empty(JobState::NotFound, None))),
        Some("unknown") => {
            let note = "the volume does not answer, or is not mounted";
            return Ok(Some(empty(JobState::Unknown, Some(note))));
        }
        _ => return Err(answer.senseless("exists")),
    }
    let found = Findings {
        process: process(answer, "process")?,
        code: code_file(answer, "exit_code", "exit_code_b64")?,
        copy: match answer.get("exit_code_copy") {
            None => CodeFile::Absent,
            Some(_) => code_file(answer, "exit_code_copy", "exit_code_copy_b64")?,
        },
        ceiling_struck: answer.get("ceiling_struck") == Some("yes"),
        launch_age_sec: answer.number("launch_age_s")?,
    };
    let (state, exit_code, note) = judge(&found);
    let leftovers = answer.bytes("leftovers_b64")?.unwrap_or_default();
    Ok(Some(JobStatus {
        state,
        exit_code,
        ceiling_struck: found.ceiling_struck,
        lives_on: answer.get("lives_on") == Some("yes"),
        meta: answer.get("meta_json").and_then(|json| serde_json::from_str(json).ok()),
        log: Some(LogSlice {
            offset: answer.number("log_offset")?.unwrap_or(0),
            size: answer.number("log_size")?.unwrap_or(0),
            bytes: answer.bytes("log_b64")?.unwrap_or_default(),
        }),
        log_age: answer.number("log_age_s")?.map(Duration::from_secs),
        leftovers: String::from_utf8_lossy(&leftovers).lines().map(str::to_owned).collect(),
        note,
    }))
}

/// With a volume that hangs the wrapper's copies beside it say what they can: a wrapper that lives is
/// a job that runs, and one that is gone has left its exit code.
fn beside_the_volume(
    answer: &Answer,
) -> Result<(JobState, Option<i32>, bool, String), AnswerError> {
    let process = match answer.get("beside_process") {
        None => Process::Unreadable,
        Some(_) => process(answer, "beside_process")?,
    };
    let copy = match answer.get("beside_exit_code") {
        None => CodeFile::Absent,
        Some(_) => code_file(answer, "beside_exit_code", "beside_exit_code_b64")?,
    };
    let struck = answer.get("beside_ceiling_struck") == Some("yes");
    let found = Findings {
        process,
        code: CodeFile::Unreadable,
        copy,
        ceiling_struck: struck,
        launch_age_sec: None,
    };
    let (state, code, note) = match judge(&found) {
        (JobState::Running, code, note) => (JobState::Running, code, note),
        (state, Some(code), _) => (state, Some(code), None),
        // Without a code nothing is known: it may lie on the volume.
        (_, None, _) => (JobState::Unknown, None, None),
    };
    let note = note.map_or_else(
        || format!("{UNRESPONSIVE}: log and meta could not be read"),
        |note| format!("{note}; {UNRESPONSIVE}"),
    );
    Ok((state, code, struck, note))
}

fn process(answer: &Answer, key: &str) -> Result<Process, AnswerError> {
    match answer.get(key) {
        Some("none") => Ok(Process::None),
        Some("alive") => Ok(Process::Alive),
        Some("dead") => Ok(Process::Dead),
        Some("reused" | "other_boot") => Ok(Process::Replaced),
        Some("malformed" | "unreadable") => Ok(Process::Unreadable),
        _ => Err(answer.senseless(key)),
    }
}

fn code_file(answer: &Answer, key: &str, content: &str) -> Result<CodeFile, AnswerError> {
    match answer.get(key) {
        Some("absent") => Ok(CodeFile::Absent),
        Some("unreadable") => Ok(CodeFile::Unreadable),
        Some("present") => {
            let bytes = answer.bytes(content)?.ok_or_else(|| answer.senseless(content))?;
            Ok(CodeFile::parse(&bytes))
        }
        // What holds nothing but digits is told as it is.
        Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            Ok(CodeFile::parse(text.as_bytes()))
        }
        _ => Err(answer.senseless(key)),
    }
}
