//! What every command that reads the config shares: its arguments and the runtime.

use super::print;
use crate::clock::SystemClock;
use crate::config::{self, Config, Environment};
use crate::error::{Failure, FailureKind, StillBilling};
use crate::ops::Start;
use std::path::PathBuf;
use std::time::Duration;

/// `--config`.
#[derive(Clone, Debug, clap::Args)]
pub struct ConfigArgs {
    /// The config file; else `PODTETHER_CONFIG`, else podtether.yaml found upwards from here.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl ConfigArgs {
    /// What a command is started with.
    ///
    /// # Errors
    /// When podtether's own program or the current folder cannot be told.
    pub fn start(&self) -> Result<Start, Failure> {
        let unknown = |what: &str, error: std::io::Error| {
            Failure::new(
                FailureKind::Internal,
                format!("{what} cannot be told: {error}"),
                "start podtether from an existing folder",
            )
        };
        Ok(Start {
            config: self.config.clone(),
            env: Environment::from_process(),
            cwd: std::env::current_dir().map_err(|error| unknown("the current folder", error))?,
            program: std::env::current_exe()
                .map_err(|error| unknown("podtether's own program", error))?,
        })
    }
}

/// Runs a command's future to its end on a runtime of its own.
pub fn block_on<T>(future: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| {
            Failure::new(FailureKind::Internal, error, "the machine is short of threads or files")
        })?;
    let value = runtime.block_on(future);
    // Long enough that what was in flight is dropped and ends its children (rsync); a pending read
    // of stdin or a hung name look-up must not hold the process.
    runtime.shutdown_timeout(Duration::from_millis(300));
    Ok(value)
}

/// The clock that commands run on.
pub fn clock() -> crate::clock::SharedClock {
    SystemClock::shared()
}

/// Says a failure and returns the exit code that goes with it: 2 for a refusal or bad input, else 1.
pub fn failed(failure: &Failure, json: bool) -> u8 {
    if json {
        let value = serde_json::json!({"ok": false, "failure": failure});
        print::data(&value.to_string());
    }
    print::note(&format!("podtether: {failure}"));
    match failure.kind {
        FailureKind::Refused | FailureKind::BadInput | FailureKind::Config | FailureKind::NoPod => {
            2
        }
        _ => 1,
    }
}

/// The same for what looks after a pod that may run: unless the failure knows that there is none, nobody has
/// looked.
pub(super) fn failed_over_a_pod(failure: &Failure, json: bool) -> u8 {
    failed(&unless_known(failure), json)
}

/// The failure, with what it does not know of the bill said to be unknown.
pub(super) fn unless_known(failure: &Failure) -> Failure {
    let is_known = failure.still_billing != StillBilling::No || failure.kind == FailureKind::NoPod;
    let failure = failure.clone();
    if is_known { failure } else { failure.billing(StillBilling::Unknown) }
}

/// The config, without the key: enough to find the vehicles' folders.
pub(super) fn config_of(start: &Start) -> Result<Config, Failure> {
    let broken =
        |error| Failure::new(FailureKind::Config, error, "mend the config; nothing was changed");
    let path = config::find(start.config.as_deref(), &start.env, &start.cwd).map_err(broken)?;
    config::load(&path, &start.env).map_err(broken)
}
