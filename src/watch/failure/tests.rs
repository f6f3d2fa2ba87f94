//! What counts as a failure in a log, and what only looks like one.

use super::*;

fn read(log: &str) -> Option<Finding> {
    let mut reader = FailureReader::default();
    log.lines().for_each(|line| reader.line(line));
    reader.found().cloned()
}

fn cause(log: &str) -> Option<FailureCause> {
    read(log).map(|finding| finding.cause)
}

const TRACEBACK: &str =
    "Traceback (most recent call last):\n  File \"a.py\", line 1\n    run()\n    ^^^^\n";

#[test]
fn the_line_of_the_exception_tells_the_cause() {
    use FailureCause as Cause;
    for (line, expected) in [
        ("ValueError: bad shape", Cause::Exception),
        ("my.pkg.CustomException: no", Cause::Exception),
        ("KeyboardInterrupt", Cause::StoppedFromOutside),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to", Cause::OutOfMemory),
        ("RuntimeError: CUDA error: out of memory", Cause::OutOfMemory),
        ("RuntimeError: DefaultCPUAllocator: can't allocate memory", Cause::OutOfMemory),
        ("MemoryError", Cause::OutOfMemory),
        ("RuntimeError: CUDA error: device-side assert triggered", Cause::Cuda),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", Cause::Cuda),
        ("OSError: [Errno 28] No space left on device", Cause::DiskFull),
        ("OSError: [Errno 122] Disk quota exceeded", Cause::DiskFull),
        ("RuntimeError: Function 'MulBackward0' returned nan values.", Cause::Nan),
        ("ValueError: Expected loc, but found invalid values: tensor([[nan", Cause::Nan),
        ("elastic.SignalException: Process 7 got signal: 15", Cause::StoppedFromOutside),
    ] {
        let log = format!("{TRACEBACK}{line}");
        let finding = read(&log).unwrap();
        assert_eq!((finding.cause, finding.evidence.as_str()), (expected, line));
        let ranked: String = log.lines().map(|line| format!("[rank1]: {line}\n")).collect();
        assert_eq!(cause(&ranked), Some(expected), "{line} with a rank");
    }
}

#[test]
fn deaths_that_others_report_are_read_without_a_traceback() {
    use FailureCause as Cause;
    for (line, expected) in [
        (
            "/a/python.sh: line 46: 60079 Segmentation fault      (core dumped) $a",
            Cause::NativeCrash,
        ),
        ("Fatal Python error: Bus error", Cause::NativeCrash),
        ("Killed", Cause::OutOfMemory),
        ("  1%|  | 1/157 [01:40<4:21]a.sh: line 12: 991248 Killed    python a", Cause::OutOfMemory),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=1.batch.", Cause::OutOfMemory),
        ("slurmstepd: error: *** JOB 4 ON n1 CANCELLED AT 2024 ***", Cause::StoppedFromOutside),
        ("Terminated", Cause::StoppedFromOutside),
        ("[rank0]:[E1 a.cpp:6] Watchdog caught collective operation timeout: W", Cause::Nccl),
    ] {
        assert_eq!(cause(line), Some(expected), "{line}");
    }
}

#[test]
fn words_about_failures_are_none() {
    for log in [
        "Metrics/base_velocity/error_vel_xy: 0.02",
        "UserWarning: Error detected in X. Traceback of forward call that caused the error:\n  File",
        "[Error] [omni.kit.app._impl] [py stderr]: Traceback (most recent call last):",
        "GLFWError: (65537) b'The GLFW library is not initialized'",
        "retrying after CUDA out of memory with half the batch",
        "epoch checkpoint was not in top 1, 3 workers Killed by us earlier",
        "Sending process 12 closing signal SIGTERM",
        "note: No space left on device is handled",
    ] {
        assert_eq!(read(log), None, "{log}");
    }
}

/// A Kit extension that does not load prints a traceback at the start of a line, and Kit boots on.
#[test]
fn a_traceback_below_an_error_of_a_kit_extension_is_its_own() {
    let kit = "2026-01-01 [1ms] [Error] [omni.ext._impl._internal] Failed to import module a.\n";
    let tail = "AttributeError: module 'torch' has no attribute 'jit'\n\n[4.7s] [ext: b] startup\n";
    assert_eq!(read(&format!("{kit}{TRACEBACK}{tail}")), None);
    let then = format!("{kit}{TRACEBACK}{tail}{TRACEBACK}ValueError: ours\n");
    assert_eq!(cause(&then), Some(FailureCause::Exception));
}

#[test]
fn the_last_traceback_is_the_cause_when_helpers_died_first() {
    let worker = "RuntimeError: DataLoader worker (pid 3) is killed by signal: Aborted. \n";
    let log = format!(
        "terminate called without an active exception\n{TRACEBACK}{worker}Process Process-1:\n\
         {TRACEBACK}torch.cuda.OutOfMemoryError: CUDA out of memory.\n"
    );
    assert_eq!(cause(&log), Some(FailureCause::OutOfMemory));
    let log = format!(
        "{TRACEBACK}RuntimeError: CUDA error: an illegal memory access\n\
         terminate called after throwing\nx.sh: line 1: 5 Aborted (core dumped) python\n"
    );
    assert_eq!(cause(&log), Some(FailureCause::Cuda));
}

#[test]
fn a_stop_from_outside_stays_one_through_the_tracebacks_that_follow() {
    let log = format!("{TRACEBACK}KeyboardInterrupt\n\n{TRACEBACK}BrokenPipeError: [Errno 32]\n");
    assert_eq!(cause(&log), Some(FailureCause::StoppedFromOutside));
    let log = format!("{TRACEBACK}ValueError: ours\n\n{TRACEBACK}KeyboardInterrupt\n");
    assert_eq!(cause(&log), Some(FailureCause::Exception));
}

#[test]
fn progress_after_a_traceback_takes_it_back() {
    let mut reader = FailureReader::default();
    format!("{TRACEBACK}ValueError: caught\n").lines().for_each(|line| reader.line(line));
    assert!(reader.found().is_some());
    reader.progress();
    assert_eq!(reader.found(), None);
}

#[test]
fn the_evidence_is_cut() {
    let finding = read(&format!("{TRACEBACK}ValueError: {}\n", "é".repeat(2000))).unwrap();
    assert_eq!(finding.evidence.chars().count(), EVIDENCE);
}
