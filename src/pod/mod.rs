//! One rented machine: its shell over SSH, files over rsync, jobs, the watchdog.

pub mod drill;
pub mod jobs;
mod look;
mod recipe_look;
mod shell;
pub mod ssh;
pub mod transfer;
pub mod watchdog;

pub use look::{
    GpuUse, JobLook, Look, LookAt, MountKind, PodProbe, look_answer_bytes, look_command,
    parse_look, who_command,
};
pub use recipe_look::{
    Ask, FILE_MAX, Told, parse_recipe_look, recipe_answer_bytes, recipe_look_command,
};
pub use shell::{
    Captured, ExecLimits, ExecOutput, ExecStatus, Shell, ShellError, ShellErrorKind, Shells,
};
pub use ssh::PodShell;
