//! From a config file to a [`Tether`]: finds the file, the key and the cloud. Real and local are
//! never mixed: the local cloud's key and address come from its state folder and from nowhere else.

use super::{StopAll, Surroundings, Tether};
use crate::clock::SharedClock;
use crate::cloud::local;
use crate::cloud::runpod::{LOCAL_KEY_PREFIX, RunPod, RunPodOptions};
use crate::config::{self, CloudChoice, Config, Environment};
use crate::deadman::{Access, Arming, OwnProgram, Telling};
use crate::error::{Failure, FailureKind, StillBilling};
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
    let path = config::find(start.config.as_deref(), &start.env, &start.cwd).map_err(broken)?;
    let config = config::load(&path, &start.env).map_err(broken)?;
    let options = options(&config, start).await?;
    let secrets = vec![options.key.clone()];
    let arming = arming(&config, start, &options);
    let cloud = RunPod::new(options, Arc::clone(&clock)).map_err(mixed)?;
    let surroundings = Surroundings {
        program: start.program.clone(),
        path: start.env.path().map(OsStr::to_owned),
        ssh_auth_sock: start.env.ssh_auth_sock().map(Path::to_owned),
    };
    let ledger = journal(start, &config, Arc::clone(&clock));
    let tether = Tether::new(config, Arc::new(cloud), clock, surroundings).with_ledger(ledger);
    Ok((tether.with_arming(arming), secrets))
}

/// What a fuse of this machine needs, so that it has to ask for nothing when it fires.
fn arming(config: &Config, start: &Start, options: &RunPodOptions) -> Arming {
    let local_state = match &config.cloud {
        CloudChoice::Local { state_dir } => Some(state_dir.clone()),
        CloudChoice::RunPod => None,
    };
    Arming {
        starts: Arc::new(OwnProgram(start.program.clone())),
        config: config.path.clone(),
        access: Access {
            base_url: options.base_url.clone(),
            key: options.key.clone(),
            is_local: options.is_local,
            allow_loopback_http: options.allow_loopback_http,
            local_state,
        },
        telling: Telling {
            desktop: config.notify.desktop,
            webhook: config.notify.webhook.map(|shape| shape.as_str().to_owned()),
            keychain_account: config.keychain_account.clone(),
        },
    }
}

/// The project's journal, in the user's state folder; one for the real cloud and one for the local
/// one, which never mix. Without a home it lies beside the config. By whatever path the config was
/// named, it is the same project: a link must not open a second journal with a lock of its own (B05).
pub(super) fn journal(start: &Start, config: &Config, clock: SharedClock) -> Ledger {
    let path = config.path.canonicalize().unwrap_or_else(|_| config.path.clone());
    let beside = || path.with_file_name(".podtether");
    let state = start.env.state_dir().unwrap_or_else(beside);
    let cloud = match config.cloud {
        CloudChoice::Local { .. } => "local",
        CloudChoice::RunPod => "runpod",
    };
    Ledger::new(project_folder(&state, &path).join(cloud), &path, clock)
}

/// How the cloud of that config is reached.
async fn options(config: &Config, start: &Start) -> Result<RunPodOptions, Failure> {
    let api_url = start.env.api_url().map_err(broken)?;
    match &config.cloud {
        CloudChoice::Local { state_dir } => {
            if api_url.is_some() {
                return Err(mixed(
                    "the config says cloud: local, and PODTETHER_API_URL names another cloud; unset it",
                ));
            }
            local_options(state_dir, &start.program).await
        }
        CloudChoice::RunPod => {
            let key = key(start, config.keychain_account.as_deref())?;
            Ok(provider_options(key, api_url))
        }
    }
}

/// Opens the way to a stop, which needs no more than a key. A config that cannot be read is no
/// obstacle: then the key in the environment decides which cloud it is, since a key of the local
/// cloud is told by its beginning.
///
/// # Errors
/// When there is no key, or when the broken config was for the local cloud and the key is not.
pub async fn open_for_stop(start: &Start, clock: SharedClock) -> Result<StopAll, Failure> {
    // Whatever ran before runs on.
    let opened = stop_all(start, clock).await;
    opened.map_err(|failure| failure.billing(StillBilling::Unknown))
}

async fn stop_all(start: &Start, clock: SharedClock) -> Result<StopAll, Failure> {
    let found = config::find(start.config.as_deref(), &start.env, &start.cwd);
    let config = found.and_then(|path| config::load(&path, &start.env));
    let options = match &config {
        Ok(config) => options(config, start).await?,
        Err(error) => options_without_config(start, error)?,
    };
    let cloud = RunPod::new(options, Arc::clone(&clock)).map_err(mixed)?;
    let ledger = config.as_ref().ok().map(|config| journal(start, config, Arc::clone(&clock)));
    Ok(StopAll::new(config, Arc::new(cloud), clock).with_ledger(ledger))
}

fn options_without_config(
    start: &Start,
    error: &config::ConfigError,
) -> Result<RunPodOptions, Failure> {
    let api_url = start.env.api_url().map_err(broken)?;
    let key = key(start, None).map_err(|failure| Failure {
        message: format!("{error}; and to stop pods without a config: {}", failure.message),
        ..failure
    })?;
    match (key.reveal().starts_with(LOCAL_KEY_PREFIX), api_url) {
        (true, Some(url)) => Ok(RunPodOptions::local(&url, key)),
        (false, _) if says_local(start) => {
            Err(mixed(format!("{error}; it says cloud: local, and the key at hand is RunPod's")))
        }
        (_, api_url) => Ok(provider_options(key, api_url)),
    }
}

/// Whether a config that cannot be read was for the local cloud, as far as its lines tell: a
/// rehearsal with a misspelt key must not stop what runs for real.
fn says_local(start: &Start) -> bool {
    let Ok(path) = config::find(start.config.as_deref(), &start.env, &start.cwd) else {
        return false;
    };
    chooses_local(&String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()))
}

fn chooses_local(text: &str) -> bool {
    const AROUND: [char; 5] = [' ', '\t', '"', '\'', '{'];
    text.lines().filter_map(|line| line.split_once(':')).any(|(key, value)| {
        key.trim_matches(AROUND) == "cloud" && value.trim_start_matches(AROUND).starts_with("local")
    })
}

fn key(start: &Start, account: Option<&str>) -> Result<Secret, Failure> {
    key_source::find(&start.env, account)
        .map_err(|error| Failure::new(FailureKind::Auth, error, "nothing was changed"))
}

fn provider_options(key: Secret, api_url: Option<String>) -> RunPodOptions {
    let options = RunPodOptions::new(key);
    match api_url {
        // The environment has checked that http leads nowhere but to this machine.
        Some(url) => RunPodOptions { base_url: url, allow_loopback_http: true, ..options },
        None => options,
    }
}

fn broken(error: config::ConfigError) -> Failure {
    Failure::new(FailureKind::Config, error, "mend the config; nothing was changed")
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Read from a text that is no YAML any more, so it errs on the side of local.
    #[test]
    fn a_broken_config_for_the_local_cloud_is_known_by_its_line() {
        for text in [
            "cloud: local\nvehicles: [",
            "# x\n\"cloud\" : 'local' # y\n  - :",
            "{cloud: local, vehicles: {",
            "\tcloud:local\r\n",
        ] {
            assert!(chooses_local(text), "{text}");
        }
        for text in [
            "",
            "cloud: runpod",
            "local:\n  state_dir: cloud",
            "cloud_type: local",
            "# cloud: local",
        ] {
            assert!(!chooses_local(text), "{text}");
        }
    }

    #[tokio::test]
    async fn a_stop_without_config_and_key_says_both_and_a_local_key_needs_its_address() {
        let folder = tempfile::tempdir().unwrap();
        let failure = async |variables: &[(&str, &str)]| {
            let start = Start {
                config: None,
                env: Environment::isolated(variables.to_vec()),
                cwd: folder.path().to_owned(),
                program: "podtether".into(),
            };
            let opened = open_for_stop(&start, crate::clock::SystemClock::shared()).await;
            opened.map(|_| ()).unwrap_err()
        };
        let none = failure(&[]).await;
        assert!(none.message.contains("podtether.yaml") && none.message.contains("RUNPOD_API_KEY"));
        assert_eq!(none.still_billing, StillBilling::Unknown);
        let local = failure(&[("RUNPOD_API_KEY", "local-0123456789")]).await;
        assert!(local.message.contains("never mixed"), "{local}");
    }
}
