//! How the process of a fuse comes to be: from podtether's own program, unless somebody else stands in
//! for it.

use super::arm_error::ArmError;
use super::order::Order;
use async_trait::async_trait;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

/// How long a new fuse may take to settle and prove its key.
const SETTLE: Duration = Duration::from_secs(30);

/// Where the process of a fuse comes from.
#[async_trait]
pub trait Starts: fmt::Debug + Send + Sync {
    /// Starts one with this order, which outlives whoever asks. Returns the one line that it answers
    /// once it has settled, as [`super::fuse`] gives it; its own words go to `log`.
    ///
    /// # Errors
    /// When there is no process, or none that answers in time.
    async fn start(&self, order: Order, log: &Path) -> Result<String, ArmError>;
}

/// podtether's own program, at this path.
#[derive(Clone, Debug)]
pub struct OwnProgram(pub PathBuf);

#[async_trait]
impl Starts for OwnProgram {
    async fn start(&self, order: Order, log: &Path) -> Result<String, ArmError> {
        let failed =
            |what: &str, error: &dyn fmt::Display| ArmError::Failed(format!("{what}: {error}"));
        let wire =
            order.to_wire().map_err(|error| failed("its order cannot be written", &error))?;
        let unusable =
            |source| ArmError::Folder { folder: log.parent().unwrap_or(log).to_owned(), source };
        let log = std::fs::File::options().create(true).append(true).open(log);
        let log = log.map_err(unusable)?;
        #[expect(clippy::disallowed_methods, reason = "the fuse outlives whatever armed it")]
        let mut command = tokio::process::Command::new(&self.0);
        // The environment is passed on without the key: a proxy or certificates that are named there
        // are what reaches the provider. The fuse starts no programs that could inherit it (H04).
        let mut child = command
            .args(["deadman", "fuse"])
            .env_remove("RUNPOD_API_KEY")
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(|error| failed("its process cannot be started", &error))?;
        let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(ArmError::Failed("its process has no pipes".to_owned()));
        };
        let said = async {
            stdin.write_all(&wire).await?;
            drop(stdin);
            let mut line = String::new();
            BufReader::new(stdout).read_line(&mut line).await?;
            // The process that was started is only the first of two, and gone by now.
            let _ = child.wait().await;
            Ok::<_, io::Error>(line)
        };
        match tokio::time::timeout(SETTLE, said).await {
            Ok(Ok(line)) => Ok(line),
            Ok(Err(error)) => Err(failed("its process did not listen", &error)),
            Err(_) => Err(ArmError::Failed("its process did not answer in 30 s".to_owned())),
        }
    }
}
