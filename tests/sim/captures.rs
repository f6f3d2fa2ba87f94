//! How results come home from simulated pods: a pull takes its time, breaks with the link or the pod,
//! and is whole only when the job had written its last before it began.

use super::dice::Dice;
use super::faults::State;
use super::world::Shared;
use async_trait::async_trait;
use podtether::pod::transfer::{Carrier, Progress, PullReport, PullRequest, Pulls, TransferError};
use podtether::pod::{Shell, ShellError, ShellErrorKind};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Who brings files home for one session.
pub struct SimPulls {
    pub world: Shared,
    pub dice: Mutex<Dice>,
}

fn lost() -> TransferError {
    let (tried, detail) = ("a simulated pull".to_owned(), "the link was lost".to_owned());
    TransferError::Shell(ShellError { kind: ShellErrorKind::Lost, tried, detail })
}

#[async_trait]
impl Pulls for SimPulls {
    async fn pull(
        &self,
        request: &PullRequest,
        _: &dyn Shell,
        _: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<PullReport, TransferError> {
        let (takes, is_broken) = {
            let mut dice = self.dice.lock().unwrap_or_else(PoisonError::into_inner);
            (dice.time(1_000, 900_000), dice.percent(15))
        };
        let folder = request.remote_dir.clone();
        let port = request.target.endpoint.port;
        let reached = |began: Option<usize>| {
            let world = self.world.now();
            let now = world.truth();
            let down = [State::ShellDown, State::ShellLost, State::Offline];
            let pod = world.pods.iter().find_map(|pod| {
                let (at, run) = pod.run_at(now)?;
                let is_up =
                    run.port == port && pod.bills_at(now) && run.up.is_some_and(|up| up <= now);
                (is_up && began.is_none_or(|began| began == at)).then_some(at)
            });
            pod.filter(|_| !down.iter().any(|state| world.is_wrong(*state)))
        };
        // rsync gives up when nothing has come for a minute.
        let hangs = self.world.now().hangs_for();
        if !hangs.is_zero() {
            tokio::time::sleep(hangs.min(Duration::from_secs(60))).await;
            return Err(lost());
        }
        let Some(began) = reached(None) else { return Err(lost()) };
        // The volume outlives the pod: what a job of an earlier boot has written is there too.
        let (exists, is_final) = {
            let world = self.world.now();
            let job = world.jobs.iter().find(|job| job.dir == folder);
            (job.is_some(), job.is_some_and(|job| world.job_end(job) <= world.truth()))
        };
        if !exists {
            return Err(TransferError::NoSuchFolder { folder });
        }
        tokio::time::sleep(takes).await;
        if reached(Some(began)).is_none() || !self.world.now().hangs_for().is_zero() {
            return Err(lost());
        }
        let complete = is_final && !is_broken;
        let mut world = self.world.now();
        if complete {
            world.home.insert(folder.clone());
        }
        world.say(|| format!("          pulled {}, complete: {complete}", folder.len()));
        Ok(PullReport {
            files: 3,
            bytes: 1_000,
            received_bytes: 1_000,
            complete,
            missing: if complete { Vec::new() } else { vec!["out.log".to_owned()] },
            warnings: Vec::new(),
            hashed: 3,
            equal: Vec::new(),
            unchanged: 0,
            unchanged_since: None,
            carrier: Carrier::Rsync,
            elapsed: Duration::ZERO,
        })
    }
}
