//! A pod of the local cloud: a folder, an SSH server, and processes that carry its mark.

mod folder;
mod host;
mod link;
mod mishap;
mod processes;
mod session;
mod sshd;

pub use folder::{EnvironmentShape, Folder, Machine, OddPrograms, find_program};
pub use mishap::{Mishap, give_pids_away};
pub use processes::{kill_all, kill_wrapper};
pub use sshd::{Setup as SshdSetup, Sshd};
