//! Failures that a log shows in words. Fed line by line; pure. Words alone are weak evidence: what
//! counts is a known cause, or a traceback, with no progress of the run after it. Where several stand
//! in a row the last one is mostly the cause, since helpers die first and are reported first.

use crate::watch::metrics::without_rank;
use regex::RegexSet;
use std::sync::OnceLock;

/// The closed list of what ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCause {
    /// The GPU's or the machine's memory was not enough, or the kernel killed the process for it.
    OutOfMemory,
    /// A loss or the reward is no number any more.
    Nan,
    /// The numbers run away or stand still in a way that training does not come back from.
    Diverged,
    /// A device-side assert, an illegal access, or another error of CUDA.
    Cuda,
    /// A collective of several GPUs hung and was given up.
    Nccl,
    /// A segmentation fault, an abort, or another death by a signal of the process's own making.
    NativeCrash,
    /// The disk or its quota is full.
    DiskFull,
    /// An exception that nothing caught.
    Exception,
    /// Somebody or something outside ended it: Ctrl-C, a cancelled job, SIGTERM.
    StoppedFromOutside,
    /// It ended with an exit code that is not 0, and the log does not say why.
    NonZeroExit,
}

/// What a log says went wrong.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Finding {
    /// The cause.
    pub cause: FailureCause,
    /// The line that says so, cut.
    pub evidence: String,
}

/// Reads a log for failures.
#[derive(Debug, Default)]
pub(in crate::watch) struct FailureReader {
    found: Option<(u8, Finding)>,
    inside: Inside,
    /// The last line was an error of a Kit extension: a traceback right after it is its own.
    after_kit_error: bool,
}

/// Where in a traceback the reader is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Inside {
    #[default]
    Nothing,
    /// A traceback that counts, waiting for the line of its exception.
    Traceback,
    /// One that does not.
    HarmlessTraceback,
}

/// How much of a line is kept as evidence.
const EVIDENCE: usize = 300;

/// Weak words lose against strong ones, whichever came first. Equal ones: the last counts.
mod weight {
    /// Says that something died, not why: the helper of a process that was killed.
    pub(super) const CONSEQUENCE: u8 = 0;
    /// An exception, or a stop from outside. One is mostly the consequence of the other, so the first counts.
    pub(super) const END: u8 = 1;
    /// The process died of something below Python; often itself a consequence.
    pub(super) const NATIVE: u8 = 2;
    /// A cause by name.
    pub(super) const CAUSE: u8 = 3;
}

impl FailureReader {
    /// The run went on: what was found did not end it.
    pub(in crate::watch) fn progress(&mut self) {
        self.found = None;
        self.inside = Inside::Nothing;
    }

    /// What was found and not overtaken by progress.
    pub(in crate::watch) fn found(&self) -> Option<&Finding> {
        self.found.as_ref().map(|(_, finding)| finding)
    }

    /// Reads one line.
    pub(in crate::watch) fn line(&mut self, line: &str) {
        if self.inside == Inside::Nothing && !self.after_kit_error && !words().is_match(line) {
            return;
        }
        let text = without_rank(line);
        if text.starts_with("Traceback (most recent call last):") {
            let harmless = std::mem::take(&mut self.after_kit_error);
            self.inside = if harmless { Inside::HarmlessTraceback } else { Inside::Traceback };
            return;
        }
        self.after_kit_error = text.contains("[Error] [omni.") || text.contains("[Error] [carb.");
        if self.inside != Inside::Nothing && text.starts_with([' ', '\t']) {
            return;
        }
        let inside = std::mem::take(&mut self.inside);
        if inside == Inside::HarmlessTraceback {
            return;
        }
        if let Some((weight, cause)) = cause_of(text, inside == Inside::Traceback) {
            self.take(weight, cause, text);
        }
    }

    fn take(&mut self, weight: u8, cause: FailureCause, text: &str) {
        let replaces = match &self.found {
            None => true,
            Some((END_WEIGHT, before)) if weight == END_WEIGHT => {
                (before.cause == FailureCause::StoppedFromOutside)
                    == (cause == FailureCause::StoppedFromOutside)
            }
            Some((before, _)) => weight >= *before,
        };
        if replaces {
            let evidence = text.trim().chars().take(EVIDENCE).collect();
            self.found = Some((weight, Finding { cause, evidence }));
        }
    }
}

const END_WEIGHT: u8 = weight::END;

/// What any line that matters has in it, so that all others cost one search.
fn words() -> &'static RegexSet {
    static WORDS: OnceLock<RegexSet> = OnceLock::new();
    WORDS.get_or_init(|| {
        RegexSet::new([
            r"Traceback \(most recent call last\)",
            r"\[Error\] \[(?:omni|carb)\.",
            "(?i)out of ?memory|oom[_-]kill|OOM Killed|can't allocate memory|MemoryError",
            r"core dumped|Segmentation fault|Bus error|terminate called",
            r"Killed|killed by signal|CANCELLED|KeyboardInterrupt|Terminated|SIGTERM|death signal|signal: 15",
            r"CUDA error|CUDA_ERROR|CUBLAS_STATUS|CUDNN_STATUS|device-side assert|cudaError",
            "No space left on device|Disk quota exceeded",
            "returned nan values|collective operation timeout|Node failure on",
        ])
        .unwrap_or_else(|_| RegexSet::empty())
    })
}

/// What a line says by itself, or as the line of the exception below a traceback.
fn cause_of(text: &str, is_exception: bool) -> Option<(u8, FailureCause)> {
    use FailureCause as Cause;
    let lower = text.to_ascii_lowercase();
    let has = |word: &str| lower.contains(word);
    // Below a traceback the line is the exception. Elsewhere only the forms of those who report deaths
    // count: a program may print any of these words about something it has dealt with.
    let is_error = is_exception || is_error_line(text);
    let cause = |cause| Some((weight::CAUSE, cause));
    if has("oom_kill event") || has("oom killed") || has("oom-kill event") {
        return cause(Cause::OutOfMemory);
    }
    if is_killed_by_shell(text) {
        return cause(Cause::OutOfMemory);
    }
    if text.starts_with("slurmstepd:") && has("cancelled")
        || text.starts_with("srun:") && has("cancelled")
    {
        return Some((weight::END, Cause::StoppedFromOutside));
    }
    if has("srun: error: node failure on") {
        return cause(Cause::StoppedFromOutside);
    }
    if has("watchdog caught collective operation timeout") {
        return Some((weight::NATIVE, Cause::Nccl));
    }
    if has("(core dumped)")
        || text.starts_with("Segmentation fault")
        || text.starts_with("Fatal Python error:")
    {
        return Some((weight::NATIVE, Cause::NativeCrash));
    }
    if text.starts_with("terminate called") {
        return Some((weight::CONSEQUENCE, Cause::NativeCrash));
    }
    if text.trim() == "Terminated" || has("got signal: 15") || has("death signal, shutting down") {
        return Some((weight::END, Cause::StoppedFromOutside));
    }
    if !is_error {
        return None;
    }
    if has("out of memory")
        || has("outofmemory")
        || has("can't allocate memory")
        || has("memoryerror")
        || has("status_alloc_failed")
        || has("resource_exhausted")
    {
        return cause(Cause::OutOfMemory);
    }
    if has("no space left on device") || has("disk quota exceeded") {
        return cause(Cause::DiskFull);
    }
    if has("returned nan values") || has("invalid values") && has("nan") {
        return cause(Cause::Nan);
    }
    if [
        "cuda error",
        "cuda_error",
        "cublas_status",
        "cudnn_status",
        "device-side assert",
        "cudaerror",
    ]
    .iter()
    .any(|word| has(word))
    {
        return cause(Cause::Cuda);
    }
    if text.starts_with("KeyboardInterrupt") || has("got signal: 15") || has("signal 15") {
        return Some((weight::END, Cause::StoppedFromOutside));
    }
    if has("killed by signal: killed") {
        return Some((weight::NATIVE, Cause::OutOfMemory));
    }
    // The parent of a helper that died reports its death; the parent's own end comes after it.
    if has("killed by signal:") {
        return Some((weight::CONSEQUENCE, Cause::NativeCrash));
    }
    is_exception.then_some((weight::END, Cause::Exception))
}

/// `SomeError: text` at the start of a line, as Python prints an exception.
fn is_error_line(text: &str) -> bool {
    let name = text.split([':', ' ']).next().unwrap_or_default();
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_name = !last.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_'));
    is_name && (last.ends_with("Error") || last == "KeyboardInterrupt")
}

/// A shell's word that a process was killed: `Killed`, or `run.sh: line 12: 991248 Killed  python …`,
/// also behind a progress bar that was not ended.
fn is_killed_by_shell(text: &str) -> bool {
    if text.trim() == "Killed" {
        return true;
    }
    let Some((before, _)) = text.split_once(" Killed ") else { return false };
    let mut words = before.rsplit(' ').filter(|word| !word.is_empty());
    let is_number = |word: Option<&str>| {
        word.is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit()))
    };
    // The number of the process, then "line 12:".
    is_number(words.next())
        && is_number(words.next().and_then(|word| word.strip_suffix(':')))
        && words.next() == Some("line")
}

#[cfg(test)]
mod tests;
