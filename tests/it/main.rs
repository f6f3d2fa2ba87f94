//! Integration tests, one binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::disallowed_methods,
    missing_docs,
    reason = "tests"
)]

mod chain;
mod config;
mod contract_client;
mod contract_twin;
mod crash;
mod deadman;
mod drill;
mod flows;
mod hostile_server;
mod jobs;
mod key_source;
mod link;
mod local_cloud;
mod mcp;
mod mcp_python;
mod metrics;
mod notify;
mod recipes;
mod runpod_client;
mod scripts;
mod ssh;
mod sshd;
mod swim;
mod training;
mod transfer;
