//! One link: what must hold before it, its run, and the pause before it is tried again.

use super::before;
use super::bill::{self, BACKSTOP, REST};
use super::prepared::Prepared;
use super::preview::review_all;
use super::record::LinkRecord;
use super::run::{Runner, Signals};
use super::state::Event;
use crate::domain::{Recipe, Work};
use crate::error::Failure;
use crate::ops::PatchRequest;
use crate::supervise::{self, Note, Summary, Watched, arm_fuse, later, longest_stop};
use std::pin::pin;
use std::time::Duration;

/// How long a pod or a provider that does not answer is asked again before a link is given up.
pub(super) const PATIENCE: Duration = Duration::from_secs(300);
/// Between two of these questions.
pub(super) const BETWEEN: Duration = Duration::from_secs(5);

impl Runner<'_> {
    /// Pins, gates, money and fuses of a link, before anything of it is begun.
    pub(super) async fn check(
        &mut self,
        link: usize,
        signals: &mut Signals,
        tell: &mut (dyn FnMut(Note) + Send),
    ) -> Event {
        let Some(prepared) = self.links.get(link).cloned() else { return Event::Leave };
        let start = self.tether.clock().monotonic();
        let faults = loop {
            let looked = self.faults_before(&prepared, tell).await;
            let waited = self.tether.clock().monotonic().saturating_sub(start);
            match looked {
                Err(failure) if failure.retryable && waited < PATIENCE => {
                    tell(Note::Said(format!("{}; asked again", failure.message)));
                    if self.waited(BETWEEN, signals).await {
                        return Event::Leave;
                    }
                }
                Err(failure) => break vec![failure.message],
                Ok(faults) => break faults,
            }
        };
        if faults.is_empty() {
            return Event::Checked { holds: true };
        }
        self.reason = Some(faults.join("; "));
        // So that a reader of the record finds it there, too.
        let record = self.fresh_record(&prepared);
        self.record.begin(record);
        Event::Checked { holds: false }
    }

    async fn faults_before(
        &mut self,
        prepared: &Prepared,
        tell: &mut (dyn FnMut(Note) + Send),
    ) -> Result<Vec<String>, Failure> {
        let (tether, link) = (self.tether, &prepared.link);
        let pod = tether.pod_of_links(&self.vehicle).await?;
        self.rate = pod.price.known().or(self.rate);
        self.pod = Some(pod.clone());
        if !self.is_reviewed {
            let standings = self.unchanged.standings(&self.links, &self.record, Some(&pod)).await;
            let review = review_all(tether, &self.vehicle, &self.links, &standings).await?;
            if let Some(refusal) = review.refusal {
                return Ok(vec![refusal.message]);
            }
            self.is_reviewed = true;
        }
        let bill = bill::of(link, prepared.job.as_ref(), self.rate);
        let mut faults: Vec<String> = bill.beyond_envelope().into_iter().collect();
        faults.extend(before::faults(tether, &self.vehicle, &pod, link).await?);
        if link.work == Work::Sweep {
            faults.extend(tether.check_patched(&self.vehicle).await.err().map(|it| it.message));
        }
        if !faults.is_empty() {
            return Ok(faults);
        }
        // The laptop's fuse covers the link and what ends the campaign before anything is begun; a job
        // extends it again to its own deadline.
        self.has_begun = true;
        let worst = Duration::from_secs(bill.worst_case_sec);
        let over = later(tether.clock().now(), worst + longest_stop(tether.settings().off));
        arm_fuse(tether, &self.vehicle, &pod, over, tell).await?;
        // Between jobs the pod's watchdog is told as well that somebody goes on with the pod.
        Watched::of(tether, &self.vehicle, &pod, Some(self.options.interval)).renew().await;
        let told = bill.worst_case_usd.map_or_else(String::new, |usd| usd.to_string());
        tell(Note::Said(format!(
            "{}: what must hold before it does; worst case {told} of max_usd {}",
            link.name, link.max_usd
        )));
        Ok(Vec::new())
    }

    /// Waits; whether a signal ended it.
    pub(super) async fn waited(&mut self, time: Duration, signals: &mut Signals) -> bool {
        let (tether, vehicle, interval) = (self.tether, &self.vehicle, self.options.interval);
        let watched =
            self.pod.as_ref().map(|pod| Watched::of(tether, vehicle, pod, Some(interval)));
        let keep = async {
            match &watched {
                Some(watched) => watched.keep().await,
                None => std::future::pending().await,
            }
        };
        let heard = tokio::select! {
            biased;
            signal = signals.recv() => Some(signal.unwrap_or(supervise::Event::Leave)),
            () = tokio::time::sleep(time) => None,
            () = keep => None,
        };
        self.heard = heard;
        self.heard.is_some()
    }

    /// The pause before a link that made no job is tried again.
    pub(super) async fn rest(
        &mut self,
        link: usize,
        signals: &mut Signals,
        tell: &mut (dyn FnMut(Note) + Send),
    ) -> Event {
        let rest = self.options.rest.unwrap_or(REST);
        let why = self.reason.clone().unwrap_or_default();
        tell(Note::Said(format!(
            "{}: it made no job ({why}); it is tried once more in {} s",
            self.place(link),
            rest.as_secs()
        )));
        self.waited(rest, signals).await;
        Event::Rested
    }

    /// What is recorded of a link that begins now.
    fn fresh_record(&self, prepared: &Prepared) -> LinkRecord {
        let bill = bill::of(&prepared.link, prepared.job.as_ref(), self.rate);
        let (name, now) = (&prepared.link.name, self.tether.clock().now());
        LinkRecord {
            pod_id: self.pod.as_ref().map(|pod| pod.id.clone()),
            pod_started_at: self.pod.as_ref().and_then(|pod| pod.started_at),
            worst_case_usd: bill.worst_case_usd,
            ..LinkRecord::begun(name, &prepared.inputs_sha256, now)
        }
    }

    /// Begins a link and goes with it to its end.
    pub(super) async fn run_link(
        &mut self,
        link: usize,
        signals: &mut Signals,
        tell: &mut (dyn FnMut(Note) + Send),
    ) -> Event {
        let Some(prepared) = self.links.get(link).cloned() else { return Event::Leave };
        let record = self.fresh_record(&prepared);
        self.record.begin(record);
        if let Some(job) = &prepared.job {
            let options = self.options_of(&prepared, job.request.clone());
            return self.run_job(&prepared, &options, signals, tell).await;
        }
        self.save(tell);
        let Some(pod) = self.pod.clone() else { return Event::NoJob };
        let (tether, vehicle) = (self.tether, self.vehicle.clone());
        let watched = Watched::of(tether, &vehicle, &pod, Some(self.options.interval));
        let work = async {
            match &prepared.link.work {
                Work::Patches => {
                    let request = PatchRequest::default();
                    let answer = tether.apply_bluerov_patches(request).await?;
                    Ok((answer.patched, answer.next_step))
                }
                Work::Sync { folder } => {
                    let pulling = |progress| tell(Note::Pulling(progress));
                    let name = Some(vehicle.name.0.as_str());
                    let answer = tether.sync_logs(folder, name, false, pulling).await?;
                    let told = match answer.complete {
                        true => {
                            format!("{} from {}, complete", answer.brought(), answer.from)
                        }
                        false => format!(
                            "{} did not come whole; missing: {}",
                            answer.from,
                            answer.missing.join(", ")
                        ),
                    };
                    Ok((answer.complete, told))
                }
                _ => Ok((true, String::new())),
            }
        };
        let done: Result<(bool, String), Failure> = tokio::select! {
            biased;
            done = work => done,
            signal = signals.recv() => {
                // What came so far is kept, and patches that were interrupted are put back first when
                // they are applied again.
                self.heard = Some(signal.unwrap_or(supervise::Event::Leave));
                return Event::Leave;
            }
            () = watched.keep() => return Event::NoJob,
        };
        match done {
            Ok((well, told)) => {
                self.reason = Some(told.clone());
                tell(Note::Said(told));
                Event::Ended { well }
            }
            Err(failure) => {
                self.reason = Some(failure.message);
                Event::NoJob
            }
        }
    }

    fn options_of(
        &self,
        prepared: &Prepared,
        job: crate::ops::RunJobRequest,
    ) -> supervise::Options {
        let root = self.recipe(prepared).and_then(|recipe| recipe.logs.root.clone());
        supervise::Options {
            job,
            interval: self.options.interval,
            max_wait: None,
            backstop: BACKSTOP,
            no_stop: true,
            sync_subdir: prepared.link.pull.clone().or(root),
            pull_every: self.options.pull_every,
            notifier: self.options.notifier.clone(),
            summary_path: None,
        }
    }

    pub(super) fn recipe(&self, prepared: &Prepared) -> Option<Recipe> {
        let Work::Training { training, .. } = &prepared.link.work else { return None };
        self.tether.config().training(training).ok().cloned()
    }

    async fn run_job(
        &mut self,
        prepared: &Prepared,
        options: &supervise::Options,
        signals: &mut Signals,
        tell: &mut (dyn FnMut(Note) + Send),
    ) -> Event {
        let (tether, record) = (self.tether, &mut self.record);
        let name = &prepared.link.name;
        // Before the launch, so that whoever comes after this process finds what it launched.
        let mut begins = |summary: &Summary| -> Result<(), Failure> {
            if let Some(link) = record.of_mut(name) {
                link.job_id.clone_from(&summary.job_id);
                link.summary_path.clone_from(&summary.summary_path);
                link.pod_id.clone_from(&summary.pod_id);
                link.pod_started_at = summary.pod_started_at;
            }
            record.write().map_err(|error| {
                let message = format!("the campaign's record could not be written: {error}");
                let kind = crate::error::FailureKind::Internal;
                Failure::new(kind, message, "mend the log folder; nothing was launched")
            })
        };
        let (inner, mut passed_on) = tokio::sync::mpsc::unbounded_channel();
        let run = supervise::run_link(tether, options, &mut begins, &mut passed_on, tell);
        let (summary, heard) = passing_on(run, &inner, signals).await;
        self.heard = heard;
        self.ended(summary, name)
    }

    /// What a run has come to.
    pub(super) fn ended(&mut self, summary: Summary, name: &str) -> Event {
        if summary.job_id.is_none() {
            self.reason = summary.reason.clone();
            if let Some(link) = self.record.of_mut(name) {
                (link.job_id, link.summary_path) = (None, None);
            }
            return Event::NoJob;
        }
        // What the link's run claimed of the fuse, its process may be another.
        self.claim = self.claim.take().or_else(|| summary.fuse_claim.clone());
        let well = summary.process_exit_code == Some(0);
        if !well {
            self.reason = Some(why_not(&summary));
        }
        self.summary = Some(summary);
        Event::Ended { well }
    }
}

/// Why a run did not end well, in words.
fn why_not(summary: &Summary) -> String {
    let job = summary.job_id.as_deref().unwrap_or("none");
    let state = summary.state.as_deref().unwrap_or("unknown");
    let code = summary.exit_code.map_or_else(String::new, |code| format!(", exit code {code}"));
    let errors: Vec<String> = summary
        .errors
        .iter()
        .map(|trouble| format!("{}: {}", trouble.step, trouble.error))
        .collect();
    let errors =
        if errors.is_empty() { String::new() } else { format!(" ({})", errors.join("; ")) };
    let home = if summary.capture_complete { "" } else { "; what came home is not whole" };
    format!("job {job} ended as {state}{code}{errors}{home}")
}

/// Waits for `run` and passes on what comes to it; the last of it that counts for the campaign, too.
pub(super) async fn passing_on<T>(
    run: impl Future<Output = T>,
    to: &tokio::sync::mpsc::UnboundedSender<supervise::Event>,
    signals: &mut Signals,
) -> (T, Option<supervise::Event>) {
    let mut run = pin!(run);
    let mut heard = None;
    let mut is_open = true;
    loop {
        tokio::select! {
            biased;
            signal = signals.recv(), if is_open => match signal {
                Some(signal) => {
                    let _ = to.send(signal.clone());
                    heard = Some(signal);
                }
                None => is_open = false,
            },
            done = &mut run => return (done, heard),
        }
    }
}
