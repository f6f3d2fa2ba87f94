//! One step: boots the pod, reads what the boot before left, arms one fuse and waits for it to strike.

use super::armed::{Armed, NotArmed};
use super::at_work::{Drill, Strike, Unread, delta};
use super::evidence;
use super::net::Net;
use super::off::{make_off, wait_off};
use super::pace::Pace;
use crate::deadman::{self, Seen};
use crate::domain::{
    Circumstances, DrillFuse, DrillOutcome, FailureDomain, Pod, Usd, UsdPerHour, Vehicle,
};
use crate::error::{Failure, FailureKind};
use crate::notify::Notifier;
use crate::ops::{EnsureRequest, EnsureStatus, RunJobRequest, Tether};
use crate::supervise::{self, Note, Options};
use chrono::{DateTime, Utc};
use std::time::Duration;
use tokio::sync::mpsc;

/// How long the laptop's fuse may take to write its summary once the pod is off.
const SUMMARY: Duration = Duration::from_secs(30);

impl<'a> Drill<'a> {
    pub(super) fn new(
        tether: &'a Tether,
        vehicle: &'a Vehicle,
        pace: Pace,
        net: Net<'a>,
        rate: UsdPerHour,
        with: Circumstances,
    ) -> Self {
        Self {
            tether,
            vehicle,
            pace,
            net,
            rate,
            with,
            pod: None,
            found: Vec::new(),
            unread: None,
            notices: 0,
            on_since: None,
            spent: Usd::ZERO,
            is_foreign: false,
        }
    }

    pub(super) fn now(&self) -> DateTime<Utc> {
        self.tether.clock().now()
    }

    /// Goes through one boot. What is found is noted; an error says why this fuse came to nothing.
    pub(super) async fn step(
        &mut self,
        fuse: Option<DrillFuse>,
        tell: &mut (dyn FnMut(String) + Send),
    ) -> Result<(), Failure> {
        self.is_still_off().await?;
        let fires_at = self.net.set(self.pace.step(fuse), self.pod.as_ref()).await?;
        tell(format!("  the outer net stops the pod at {}", fires_at.format("%H:%M:%S UTC")));
        let pod = self.boot().await?;
        self.read_traces(&pod, tell).await?;
        match fuse {
            Some(fuse) => self.strike(fuse, &pod, tell).await,
            None => Ok(()),
        }
    }

    /// Between two boots the pod is off. One that is not was started by somebody else.
    async fn is_still_off(&mut self) -> Result<(), Failure> {
        let Some(id) = &self.pod else { return Ok(()) };
        let pod = self.tether.pod_by_id(id).await?;
        let Some(pod) = pod.filter(|pod| pod.status.bills_compute()) else { return Ok(()) };
        self.is_foreign = true;
        Err(Failure::new(
            FailureKind::Conflict,
            format!(
                "pod {} is {} and the drill did not start it: it is left alone",
                pod.id, pod.status
            ),
            "look who uses it",
        ))
    }

    async fn boot(&mut self) -> Result<Pod, Failure> {
        let clock = self.tether.clock();
        let began = clock.monotonic();
        self.on_since = Some(clock.now());
        loop {
            let left = self.pace.boot.saturating_sub(clock.monotonic().saturating_sub(began));
            let request = EnsureRequest {
                vehicle: Some(self.vehicle.name.0.clone()),
                dry_run: false,
                wait: left.min(Duration::from_secs(45)),
            };
            let answer = self.tether.ensure_pod(&request).await?;
            if let Some(pod) = &answer.pod {
                self.pod = Some(pod.id.clone());
            }
            match answer.status {
                Some(EnsureStatus::Running | EnsureStatus::Adopted) => {
                    return self.tether.pod_of_the_drill(self.vehicle).await;
                }
                Some(EnsureStatus::StillInitializing) if !left.is_zero() => {}
                _ => {
                    let hint = "ensure_pod tells more";
                    return Err(Failure::new(FailureKind::Unconfirmed, answer.message, hint));
                }
            }
        }
    }

    /// Reads what the boot before has left, and notes what it proves.
    async fn read_traces(
        &mut self,
        pod: &Pod,
        tell: &mut (dyn FnMut(String) + Send),
    ) -> Result<(), Failure> {
        let job = self.unread.as_ref().and_then(|unread| unread.strike.job.clone());
        let left = self.tether.drill_evidence(self.vehicle, pod, job.as_ref()).await?;
        if let Some(Unread { strike, notices, usd }) = self.unread.take() {
            let proof = evidence::of_pod(strike.fuse, &pod.id, notices, &left);
            self.struck(&strike, proof, usd, tell);
        }
        self.notices = left.notices;
        Ok(())
    }

    async fn strike(
        &mut self,
        fuse: DrillFuse,
        pod: &Pod,
        tell: &mut (dyn FnMut(String) + Send),
    ) -> Result<(), Failure> {
        let armed = match self.arm(fuse, pod).await {
            Ok(armed) => armed,
            Err(NotArmed::Otherwise(failure)) => return Err(failure),
            Err(NotArmed::InVain(why)) => {
                self.note(fuse, DrillOutcome::Failed, why, None, Usd::ZERO);
                return Ok(());
            }
        };
        if fuse == DrillFuse::Supervise {
            return self.supervised(pod, &armed, tell).await;
        }
        tell(format!("  {} is armed, due at {}", fuse.as_str(), armed.due.format("%H:%M:%S UTC")));
        let until = armed.due + delta(self.pace.grace);
        let folder = &self.vehicle.local_log_dir;
        let cloud = self.tether.cloud_name().as_str();
        let is_lost = || {
            let seen = deadman::seen(folder, cloud).filter(|_| armed.nonce.is_some());
            let lost = seen.is_some_and(|seen| seen.lives == Some(false));
            lost.then(|| "its process is gone without having stopped the pod".to_owned())
        };
        let off_at = wait_off(self.tether, &pod.id, until, self.pace.poll, is_lost).await;
        let off_at = match off_at {
            Ok(off_at) => off_at,
            Err(why) => {
                let late = (self.now() - armed.due).num_seconds();
                let observed = format!("{late} s after it was due it had not struck: {why}");
                self.note(fuse, DrillOutcome::Failed, observed, Some(&armed), Usd::ZERO);
                return Ok(());
            }
        };
        let usd = self.off_the_bill(off_at);
        let Armed { at, due, job, nonce } = armed;
        let strike = Strike { fuse, armed_at: at, due_at: due, off_at, job };
        if fuse.domain() == FailureDomain::Pod {
            tell("  the pod is off; what struck it is read by the next boot".to_owned());
            self.unread = Some(Unread { strike, notices: self.notices, usd });
            return Ok(());
        }
        let proof = self.deadman_left(nonce.as_deref()).await;
        self.struck(&strike, proof, usd, tell);
        Ok(())
    }

    /// Waits for the summary of the laptop's fuse, which reads the pod back by itself.
    async fn deadman_left(&self, nonce: Option<&str>) -> Result<String, String> {
        let mut waited = Duration::ZERO;
        loop {
            match deadman::look(&self.vehicle.local_log_dir) {
                Seen::Nothing(Some(last)) if Some(last.record.nonce.as_str()) == nonce => {
                    return evidence::of_deadman(&last);
                }
                Seen::Lost(_) | Seen::LostUnread(_) => {
                    return Err("the fuse is gone without a summary".to_owned());
                }
                _ if waited >= SUMMARY => return Err("the fuse left no summary".to_owned()),
                _ => tokio::time::sleep(self.pace.poll).await,
            }
            waited += self.pace.poll;
        }
    }

    /// The laptop's other fuse: a job that does not end, and a supervise that may not wait for it.
    async fn supervised(
        &mut self,
        pod: &Pod,
        armed: &Armed,
        tell: &mut (dyn FnMut(String) + Send),
    ) -> Result<(), Failure> {
        let fuse = DrillFuse::Supervise;
        let options = Options {
            job: RunJobRequest {
                name: "drill-supervise".into(),
                command: "sleep 300".into(),
                max_runtime_sec: Some(300),
                vehicle: Some(self.vehicle.name.0.clone()),
                ..RunJobRequest::default()
            },
            interval: Duration::from_secs(5),
            max_wait: Some(self.pace.max_wait),
            backstop: Duration::ZERO,
            no_stop: false,
            sync_subdir: None,
            pull_every: supervise::PULL_EVERY,
            notifier: Notifier::silent(),
            summary_path: None,
        };
        // A signal ends the drill's step, and with it this run.
        let (_nobody, mut signals) = mpsc::unbounded_channel();
        let mut say = |note: Note| {
            if let Note::Said(text) = note {
                tell(format!("  {text}"));
            }
        };
        let (summary, _) = supervise::run(self.tether, &options, &mut signals, &mut say).await;
        if let Some(reason) = &summary.reason {
            let message = format!("supervise did not begin: {reason}");
            return Err(Failure::new(FailureKind::Refused, message, "nothing was launched"));
        }
        let until = self.now() + delta(Duration::from_secs(10));
        match wait_off(self.tether, &pod.id, until, self.pace.poll, || None).await {
            Ok(off_at) => {
                let usd = self.off_the_bill(off_at);
                let due_at = summary.started_at + delta(self.pace.max_wait);
                let (armed_at, job) = (summary.started_at, None);
                let strike = Strike { fuse, armed_at, due_at, off_at, job };
                self.struck(&strike, evidence::of_supervise(&summary), usd, tell);
            }
            Err(why) => {
                let said = evidence::of_supervise(&summary).unwrap_or_else(|said| said);
                let observed = format!("the pod was not off after it: {why}; {said}");
                self.note(fuse, DrillOutcome::Failed, observed, Some(armed), Usd::ZERO);
            }
        }
        Ok(())
    }

    /// Has the pod off at the end of a step. Whatever that cost is the fuse's that was tried.
    ///
    /// # Errors
    /// In words: the pod may still bill.
    pub(super) async fn end_step(&mut self, fuse: Option<DrillFuse>) -> Result<String, String> {
        // From before the stop: the drill holds the vehicle, and whoever arms by hand after this keeps it.
        let claim = deadman::last_claim(&self.vehicle.local_log_dir);
        let off = make_off(self.tether, self.vehicle, self.pod.as_ref()).await?;
        let now = self.now();
        let usd = self.off_the_bill(now);
        if let Some(receipt) = self.found.iter_mut().find(|receipt| Some(receipt.fuse) == fuse) {
            receipt.micros = receipt.micros.saturating_add(usd.micros());
        }
        if fuse == Some(DrillFuse::Deadman) {
            // One that did not strike must not strike at the next boot.
            let why = "the drill stopped the pod and read it back";
            let call_off = deadman::CallOff::ReadOff { why, claim: claim.as_ref() };
            let folder = &self.vehicle.local_log_dir;
            let cut = deadman::cancel(folder, call_off, self.tether.clock()).await;
            if let Err(error) = cut {
                return Ok(format!("{off}; but the fuse that did not strike stays armed: {error}"));
            }
        }
        Ok(off)
    }
}
