//! sync_logs.

use crate::error::Failure;
use crate::mcp::progress;
use crate::mcp::tool::{Effect, TetherTool};
use crate::ops::{SyncAnswer, SyncProgress, Tether};
use std::time::Duration;

pub struct SyncLogs;

/// Arguments of sync_logs.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The folder, relative to the mount path, such as "jobs" or "logs/run1".
    subdir: String,
    /// The vehicle; the config's default when left out.
    vehicle: Option<String>,
    /// Hash all files anew.
    #[serde(default)]
    rehash: bool,
}

impl TetherTool for SyncLogs {
    type Arguments = Arguments;
    type Answer = SyncAnswer;
    const NAME: &'static str = "sync_logs";
    const TITLE: &'static str = "Pull results";
    const DESCRIPTION: &'static str = "Pulls a folder of the pod's volume into the local log folder and proves every file by SHA-256. Deletes nothing. complete=false names what is missing: call again to go on. Past 45 s it fails with kind timeout and goes on in the background: call again in a minute.";
    const EFFECT: Effect = Effect::Changes { idempotent: true };
    const PATIENCE: Option<Duration> = Some(Duration::from_secs(45));
    const CANCELS: bool = true;

    async fn call(tether: &Tether, arguments: Arguments) -> Result<SyncAnswer, Failure> {
        let Arguments { subdir, vehicle, rehash } = arguments;
        let teller = progress::Teller::of_call();
        let tell = |progress: SyncProgress| teller.tell(progress);
        tether.sync_logs(&subdir, vehicle.as_deref(), rehash, tell).await
    }
}
