//! From a config file to a [`Tether`]: finds the file, the key and the cloud. Real and local are
//! never mixed: the local cloud's key and address come from its state folder and from nowhere else.

use super::{Surroundings, Tether};
use crate::clock::SharedClock;
use crate::cloud::local;
use crate::cloud::runpod::{RunPod, RunPodOptions};
use crate::config::{self, CloudChoice, Config, Environment};
use crate::error::{Failure, FailureKind};
use crate::key_source;
use crate::ledger::{Ledger, project_folder};
use crate::secret::Secret;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What every command is started with.
#[derive(Clone, Debug)]
pub struct Start {
    /// `--config`.
    pub config: Option<PathBuf>,
    /// The environment.
    pub env: Environment,
    /// The current folder.
    pub cwd: PathBuf,
    /// podtether's own program.
    pub program: PathBuf,
}

/// Opens the config and the cloud that it names. For `cloud: local` the local cloud is started when
/// it does not run yet.
///
/// # Errors
/// What is wrong with the config, the key or the mix of both, in words, before anything is changed.
pub async fn open(start: &Start, clock: SharedClock) -> Result<(Tether, Vec<Secret>), Failure> {
    let broken = |error: config::ConfigError| {
        Failure::new(FailureKind::Config, error, "mend the config; nothing was changed")
    };
    let path = config::find(start.config.as_deref(), &start.env, &start.cwd).map_err(broken)?;
    let config = config::load(&path, &start.env).map_err(broken)?;
    let api_url = start.env.api_url().map_err(broken)?;
    let options = match &config.cloud {
        CloudChoice::Local { state_dir } => {
            if api_url.is_some() {
                return Err(mixed(
                    "the config says cloud: local, and PODTETHER_API_URL names another cloud; unset it",
                ));
            }
            local_options(state_dir, &start.program).await?
        }
        CloudChoice::RunPod => {
            let key = key_source::find(&start.env, config.keychain_account.as_deref())
                .map_err(|error| Failure::new(FailureKind::Auth, error, "nothing was changed"))?;
            let options = RunPodOptions::new(key);
            match api_url {
                // The environment has checked that http leads nowhere but to this machine.
                Some(url) => RunPodOptions { base_url: url, allow_loopback_http: true, ..options },
                None => options,
            }
        }
    };
    let secrets = vec![options.key.clone()];
    let cloud = RunPod::new(options, Arc::clone(&clock)).map_err(mixed)?;
    let surroundings = Surroundings {
        program: start.program.clone(),
        path: start.env.path().map(OsStr::to_owned),
        ssh_auth_sock: start.env.ssh_auth_sock().map(Path::to_owned),
    };
    let ledger = journal(start, &config, Arc::clone(&clock));
    Ok((Tether::new(config, Arc::new(cloud), clock, surroundings).with_ledger(ledger), secrets))
}

/// The project's journal, in the user's state folder; one for the real cloud and one for the local
/// one, which never mix. Without a home it lies beside the config.
fn journal(start: &Start, config: &Config, clock: SharedClock) -> Ledger {
    let beside = || config.path.with_file_name(".podtether");
    let state = start.env.state_dir().unwrap_or_else(beside);
    let cloud = match config.cloud {
        CloudChoice::Local { .. } => "local",
        CloudChoice::RunPod => "runpod",
    };
    Ledger::new(project_folder(&state, &config.path).join(cloud), &config.path, clock)
}

async fn local_options(state_dir: &Path, program: &Path) -> Result<RunPodOptions, Failure> {
    let running = local::ensure_running(state_dir, program, &[]).await.map_err(|error| {
        Failure::new(
            FailureKind::Network,
            error,
            "look into daemon.log in the state folder of the local cloud",
        )
        .retryable()
    })?;
    Ok(RunPodOptions::local(&running.url, running.key))
}

fn mixed(error: impl std::fmt::Display) -> Failure {
    Failure::new(FailureKind::Config, error, "real and local are never mixed; nothing was changed")
}
