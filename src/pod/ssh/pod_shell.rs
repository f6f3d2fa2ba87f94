//! The pod's shell as everybody uses it: one connection, made when first needed and made anew when
//! it has died.

use super::connection::{Connection, NotStarted};
use super::{Proof, SshTarget, Tuning};
use crate::domain::RemoteCommand;
use crate::pod::{ExecLimits, ExecOutput, Shell, ShellError};
use async_trait::async_trait;
use std::sync::Arc;
use tokio::sync::Mutex;

/// A shell on one boot of one pod. A command whose link was lost after it was sent is reported as
/// lost and never run again: it may have run (F04).
pub struct PodShell {
    target: SshTarget,
    tuning: Tuning,
    proof: Option<Proof>,
    connection: Mutex<Option<Arc<Connection>>>,
}

impl PodShell {
    /// A shell that connects when the first command comes.
    #[must_use]
    pub fn new(target: SshTarget, tuning: Tuning) -> Self {
        Self { target, tuning, proof: None, connection: Mutex::new(None) }
    }

    /// The same for a machine that has to prove which pod it is before it is sent anything else.
    #[must_use]
    pub fn proving(self, proof: Proof) -> Self {
        Self { proof: Some(proof), ..self }
    }

    /// Where it leads to.
    #[must_use]
    pub const fn target(&self) -> &SshTarget {
        &self.target
    }

    /// How its connection behaves.
    #[must_use]
    pub const fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    /// The connection, made now if there is none that lives.
    ///
    /// # Errors
    /// As [`Connection::connect`].
    pub async fn connection(&self) -> Result<Arc<Connection>, ShellError> {
        // Held while connecting: many commands at once make one connection, not many.
        let mut current = self.connection.lock().await;
        if let Some(connection) = current.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(Arc::clone(connection));
        }
        let made = match &self.proof {
            Some(proof) => proof.connect(&self.target, &self.tuning).await?,
            None => Connection::connect(&self.target, &self.tuning).await?,
        };
        let connection = Arc::new(made);
        *current = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// Forgets `failed`, unless somebody has already replaced it.
    async fn discard(&self, failed: &Arc<Connection>) {
        let mut current = self.connection.lock().await;
        if current.as_ref().is_some_and(|connection| Arc::ptr_eq(connection, failed)) {
            *current = None;
        }
    }
}

#[async_trait]
impl Shell for PodShell {
    async fn run(
        &self,
        command: &RemoteCommand,
        limits: ExecLimits,
    ) -> Result<ExecOutput, ShellError> {
        let connection = self.connection().await?;
        match connection.run_once(command, limits).await {
            Ok(outcome) => outcome,
            // Nothing was sent, so a second connection can not run it twice.
            Err(NotStarted(_)) => {
                self.discard(&connection).await;
                self.connection().await?.run(command, limits).await
            }
        }
    }
}
