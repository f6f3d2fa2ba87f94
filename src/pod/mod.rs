//! One rented machine: its shell over SSH, files over rsync, jobs.

pub mod jobs;
mod probe;
mod shell;
pub mod ssh;
pub mod transfer;

pub use probe::{GpuUse, MountKind, PodProbe, ProbeError, parse_probe, probe_command};
pub use shell::{
    Captured, ExecLimits, ExecOutput, ExecStatus, Shell, ShellError, ShellErrorKind, Shells,
};
pub use ssh::PodShell;
