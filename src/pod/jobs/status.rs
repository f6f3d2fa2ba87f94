//! One look at one job: the command, and the reading of its answer.

use super::answer::{Answer, AnswerError};
use super::state::{CodeFile, Findings, Process, judge};
use crate::domain::{JobId, JobMeta, JobState, RemoteCommand, scripts};
use crate::plan::job_dir;
use crate::pod::ExecOutput;
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
    /// The asked-for piece of the log.
    pub log: LogSlice,
    /// How long ago the log was last written to, never negative (A14). `None` without a log.
    pub log_age: Option<Duration>,
    /// Processes that outlived the job, one a line: `<pid> <killed|alive|left> <command>`.
    pub leftovers: Vec<String>,
    /// What a reader should know beside the state.
    pub note: Option<String>,
}

/// Asks for everything about a job in one round trip: the log from `log_offset` on, or its end, at
/// most `max_bytes` of it. An answer may take [`status_answer_bytes`].
#[must_use]
pub fn status_command(
    mount: &str,
    id: &JobId,
    max_bytes: u32,
    log_offset: Option<u64>,
) -> RemoteCommand {
    let offset = log_offset.map_or_else(|| "-".to_owned(), |offset| offset.to_string());
    let args = [job_dir(mount, id), max_bytes.to_string(), offset];
    RemoteCommand::script(scripts::JOB_STATUS, args)
}

/// The longest answer to [`status_command`] in bytes, to be kept whole: a cut answer is none.
#[must_use]
pub const fn status_answer_bytes(max_bytes: u32) -> usize {
    // Base64 makes four bytes of three. Beside the log come at most 64 KiB of meta.json, 4 KiB of
    // leftovers, and short lines.
    (max_bytes as usize + 70 * 1024).div_ceil(3) * 4 + 4096
}

/// Reads the answer to [`status_command`].
///
/// # Errors
/// [`AnswerError`] when it is not whole or makes no sense. Then nothing is known about the job.
pub fn parse_status(output: &ExecOutput) -> Result<JobStatus, AnswerError> {
    let answer = Answer::read(scripts::JOB_STATUS.name, output)?;
    let empty = |state, note: Option<&str>| JobStatus {
        state,
        exit_code: None,
        ceiling_struck: false,
        lives_on: false,
        meta: None,
        log: LogSlice::default(),
        log_age: None,
        leftovers: Vec::new(),
        note: note.map(str::to_owned),
    };
    match answer.get("exists") {
        Some("yes") => {}
        Some("no") => return Ok(empty(JobState::NotFound, None)),
        Some("unknown") => {
            let note = "the volume does not answer, or is not mounted";
            return Ok(empty(JobState::Unknown, Some(note)));
        }
        _ => return Err(answer.senseless("exists")),
    }
    let process = match answer.get("process") {
        Some("none") => Process::None,
        Some("alive") => Process::Alive,
        Some("dead") => Process::Dead,
        Some("reused" | "other_boot") => Process::Replaced,
        Some("malformed" | "unreadable") => Process::Unreadable,
        _ => return Err(answer.senseless("process")),
    };
    let found = Findings {
        process,
        code: code_file(&answer, "exit_code", "exit_code_b64")?,
        copy: match answer.get("exit_code_copy") {
            None => CodeFile::Absent,
            Some(_) => code_file(&answer, "exit_code_copy", "exit_code_copy_b64")?,
        },
        ceiling_struck: answer.get("ceiling_struck") == Some("yes"),
        launch_age_sec: answer.number("launch_age_s")?,
    };
    let (state, exit_code, note) = judge(&found);
    let leftovers = answer.bytes("leftovers_b64")?.unwrap_or_default();
    Ok(JobStatus {
        state,
        exit_code,
        ceiling_struck: found.ceiling_struck,
        lives_on: answer.get("lives_on") == Some("yes"),
        meta: answer.bytes("meta_b64")?.and_then(|json| serde_json::from_slice(&json).ok()),
        log: LogSlice {
            offset: answer.number("log_offset")?.unwrap_or(0),
            size: answer.number("log_size")?.unwrap_or(0),
            bytes: answer.bytes("log_b64")?.unwrap_or_default(),
        },
        log_age: answer.number("log_age_s")?.map(Duration::from_secs),
        leftovers: String::from_utf8_lossy(&leftovers).lines().map(str::to_owned).collect(),
        note,
    })
}

fn code_file(answer: &Answer, key: &str, content: &str) -> Result<CodeFile, AnswerError> {
    match answer.get(key) {
        Some("absent") => Ok(CodeFile::Absent),
        Some("unreadable") => Ok(CodeFile::Unreadable),
        Some("present") => {
            let bytes = answer.bytes(content)?.ok_or_else(|| answer.senseless(content))?;
            Ok(CodeFile::parse(&bytes))
        }
        _ => Err(answer.senseless(key)),
    }
}
