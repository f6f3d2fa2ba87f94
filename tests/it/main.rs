//! Integration tests, one binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    missing_docs,
    reason = "tests"
)]

mod hostile_server;
mod ssh;
mod sshd;
mod transfer;
