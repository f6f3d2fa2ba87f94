//! The RunPod client against a server that answers from a script, over real sockets.

pub mod approved;
mod balance;
mod changes;
mod reads;
pub mod server;

use podtether::clock::SystemClock;
use podtether::cloud::runpod::{RunPod, RunPodOptions};
use podtether::secret::Secret;
use server::Server;
use std::time::Duration;

pub const KEY: &str = "rpa_TESTONLY0123456789";

/// A client of `server` that asks again for `budget`.
pub fn client(server: &Server, budget: Duration) -> RunPod {
    RunPod::new(options(&server.base, budget), SystemClock::shared()).unwrap()
}

pub fn options(base: &str, budget: Duration) -> RunPodOptions {
    RunPodOptions {
        base_url: base.to_owned(),
        retry_budget: budget,
        allow_loopback_http: true,
        ..RunPodOptions::new(Secret::new(KEY).unwrap())
    }
}

/// A reply that was written by hand in `fixtures/runpod`.
pub fn fixture(name: &str) -> String {
    let path = format!("{}/fixtures/runpod/{name}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Ask once, never again.
pub const ONCE: Duration = Duration::ZERO;
/// Time enough for any scripted failure to pass.
pub const AMPLE: Duration = Duration::from_secs(60);
