//! Who brings files home: rsync or tar over SSH, unless somebody else stands in for the pods.

use super::{Progress, PullReport, PullRequest, TransferError};
use crate::pod::Shell;
use async_trait::async_trait;

/// Who brings files home.
#[async_trait]
pub trait Pulls: Send + Sync {
    /// Pulls one folder, as [`super::pull`] does.
    ///
    /// # Errors
    /// [`TransferError`] when nothing was put in place.
    async fn pull(
        &self,
        request: &PullRequest,
        shell: &dyn Shell,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<PullReport, TransferError>;
}

/// rsync or tar over SSH.
#[derive(Clone, Copy, Debug)]
pub struct OverSsh;

#[async_trait]
impl Pulls for OverSsh {
    async fn pull(
        &self,
        request: &PullRequest,
        shell: &dyn Shell,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<PullReport, TransferError> {
        super::pull(request, shell, progress).await
    }
}
