//! One rented machine: its shell over SSH, files over rsync, jobs.

mod shell;
pub mod ssh;
pub mod transfer;

pub use shell::{Captured, ExecLimits, ExecOutput, ExecStatus, Shell, ShellError, ShellErrorKind};
