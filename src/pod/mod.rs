//! One rented machine: its shell over SSH, files over rsync, jobs.

mod shell;

pub use shell::{Captured, ExecLimits, ExecOutput, ExecStatus, Shell, ShellError, ShellErrorKind};
