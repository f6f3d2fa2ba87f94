//! A pod of the local cloud: a folder, an SSH server, and processes that carry its mark.

mod folder;
mod host;
mod processes;
mod session;
mod sshd;

pub use folder::{EnvironmentShape, Folder, Machine, OddPrograms};
pub use processes::kill_all;
pub use sshd::{Setup as SshdSetup, Sshd};
