//! podtether keeps cloud GPU pods on a tether: an agent may start, use and stop them, limits in
//! code decide what it may not do, and something always stops the bill.
//!
//! Data flows one way: a face (`mcp`, `cli`) turns words into a request, `ops` gathers facts,
//! `plan` drafts steps, `guard` approves or refuses them, `apply` carries them out through `cloud`
//! and `pod`. `domain`, `plan`, `guard` and every `state.rs` are pure; `tests/arch.rs` holds that.

pub mod apply;
pub mod chain;
pub mod cli;
pub mod clock;
pub mod cloud;
pub mod config;
pub mod deadman;
pub mod demo;
pub mod digest;
pub mod domain;
pub mod drill;
pub mod error;
pub mod guard;
pub mod held;
pub mod key_source;
pub mod ledger;
pub mod mcp;
pub mod notify;
pub mod ops;
pub mod plan;
pub mod plot;
pub mod pod;
pub mod runs;
pub mod secret;
pub mod supervise;
pub mod training;
pub mod watch;
pub mod whole_file;
