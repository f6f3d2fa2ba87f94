//! One rented machine: its shell over SSH, files over rsync, jobs, the watchdog.

pub mod jobs;
mod probe;
mod shell;
pub mod ssh;
pub mod transfer;
pub mod watchdog;

pub use probe::{GpuUse, MountKind, PodProbe, ProbeError, parse_probe, probe_command};
pub use shell::{Captured, ExecLimits, ExecOutput, ExecStatus, Shell, ShellError, ShellErrorKind};
pub use ssh::PodShell;
