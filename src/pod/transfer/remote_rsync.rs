//! The rsync on the pod: whether it is there, and how it is brought back. It lies on the container disk,
//! which every stop empties (D05).

use crate::domain::{RemoteCommand, Script};
use crate::pod::{ExecLimits, ExecStatus, Shell, ShellError};
use std::time::Duration;

const INSTALL_RSYNC: Script = Script {
    name: "install_rsync.sh",
    parts: &["install_rsync.sh"],
    text: include_str!("../../../remote/install_rsync.sh"),
};

/// How long the pod may take to install it. A mirror that does not answer must not hold up a pull
/// that tar can carry.
const INSTALL: Duration = Duration::from_secs(90);

/// Whether the pod has one.
pub(super) async fn is_there(shell: &dyn Shell) -> Result<bool, ShellError> {
    let limits =
        ExecLimits { timeout: Duration::from_secs(30), stdout_bytes: 200, stderr_bytes: 200 };
    let asked = RemoteCommand::shell_line("command -v rsync");
    Ok(shell.run(&asked, limits).await?.succeeded())
}

/// Installs it.
///
/// # Errors
/// In words, why it is still missing.
pub(super) async fn install(shell: &dyn Shell) -> Result<(), String> {
    let command = RemoteCommand::script(INSTALL_RSYNC, [INSTALL.as_secs().to_string()]);
    let limits = ExecLimits {
        timeout: INSTALL + Duration::from_secs(15),
        stdout_bytes: 1000,
        stderr_bytes: 1000,
    };
    let output = shell.run(&command, limits).await.map_err(|error| error.to_string())?;
    let said = output.stderr.text();
    match output.status {
        ExecStatus::Code(0) => Ok(()),
        _ if said.trim().is_empty() => Err(format!("{:?}", output.status)),
        _ => Err(said.split_whitespace().collect::<Vec<_>>().join(" ")),
    }
}
