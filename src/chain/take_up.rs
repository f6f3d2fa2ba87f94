//! A link that an earlier process began and whose end is not recorded: its run is taken up by its
//! summary, or what its job came to is looked up. Nothing is launched here.

use super::link::passing_on;
use super::record::Outcome;
use super::run::{Runner, Signals};
use super::state::Event;
use crate::domain::{JobState, Pod, PodId};
use crate::error::Failure;
use crate::ops::PodOfRun;
use crate::supervise::{self, Note, ResumeOptions, later_boot, read_summary, resume_link};
use chrono::{DateTime, Utc};
use std::path::Path;

impl Runner<'_> {
    pub(super) async fn take_up(
        &mut self,
        link: usize,
        signals: &mut Signals,
        tell: &mut (dyn FnMut(Note) + Send),
    ) -> Event {
        let Some(prepared) = self.links.get(link).cloned() else { return Event::Leave };
        let name = prepared.link.name.clone();
        let Some(record) = self.record.of(&name).cloned() else { return Event::NoJob };
        let Some(path) = record.summary_path.clone() else { return Event::NoJob };
        // Its time counts from its own begin, also what passed while nobody was there.
        self.link_began = self.link_began.min(record.started_at);
        let summary = match read_summary(&path) {
            Ok(Some(summary)) => summary,
            // It is written before the launch: without it nothing was launched.
            Ok(None) => return self.never_begun(&name),
            Err(failure) => return self.cannot(failure.message),
        };
        if summary.job_id.is_none() {
            return self.never_begun(&name);
        }
        match (summary.ended_at, summary.process_exit_code) {
            (Some(_), Some(0)) => {
                self.has_begun = true;
                return self.ended(summary, &name);
            }
            // Seen to its end, and not well, with the pod still there: nothing is left to follow.
            (Some(_), Some(code)) if code != 6 && summary.pod_may_still_be_running => {
                self.has_begun = true;
                return self.ended(summary, &name);
            }
            _ => {}
        }
        let pod_id = record.pod_id.clone().or_else(|| summary.pod_id.clone());
        let began = record.pod_started_at.or(summary.pod_started_at);
        // A pod that was seen off and is on again is in another boot, however soon.
        let was_off = summary.ended_at.is_some() && !summary.pod_may_still_be_running;
        match self.boot_of(pod_id.as_ref(), began.unwrap_or(summary.started_at)).await {
            Err(failure) => return self.cannot(failure.message),
            Ok(Boot::Off(what)) => {
                return self.cannot(format!(
                    "{what}; have it running again (ensure_pod) and run the campaign again: what its job came to is looked up on the volume first"
                ));
            }
            Ok(Boot::Later(pod)) => return self.look_up(&path, &name, &pod, tell).await,
            Ok(Boot::Same(Some(pod))) if was_off => {
                return self.look_up(&path, &name, &pod, tell).await;
            }
            Ok(Boot::Same(_)) => {}
        }
        self.has_begun = true;
        let asked = ResumeOptions {
            summary: path,
            vehicle: Some(self.vehicle.name.0.clone()),
            interval: self.options.interval,
            pull_every: self.options.pull_every,
            notifier: self.options.notifier.clone(),
        };
        let (inner, mut passed_on) = tokio::sync::mpsc::unbounded_channel();
        let run = resume_link(self.tether, &asked, &mut passed_on, tell);
        let (taken_up, heard) = passing_on(run, &inner, signals).await;
        self.heard = heard;
        match taken_up {
            // Its process died between the record and the launch. A launch of the next try calls off
            // first what may still be on its way of this one.
            Ok(summary) if summary.state.as_deref() == Some(JobState::NotFound.as_str()) => {
                tell(Note::Said(format!("link {name}: nothing of it was begun")));
                self.never_begun(&name)
            }
            Ok(summary) => self.ended(summary, &name),
            Err(failure) => self.cannot(failure.message),
        }
    }

    /// The pod was started again since: the job ended with the boot before. What it came to is asked of
    /// the volume, and brought home when it is good.
    async fn look_up(
        &mut self,
        path: &Path,
        name: &str,
        pod: &Pod,
        tell: &mut (dyn FnMut(Note) + Send),
    ) -> Event {
        let since = pod.started_at.map(|at| at.format(" at %Y-%m-%d %H:%M UTC").to_string());
        tell(Note::Said(format!(
            "pod {} was started again{}: what the job of link {name} came to before that is looked up on the volume",
            pod.id,
            since.unwrap_or_default()
        )));
        let found = supervise::look_up(self.tether, &self.vehicle, path, tell).await;
        match found {
            Err(failure) => self.cannot(failure.message),
            Ok(summary) if summary.process_exit_code == Some(0) => {
                self.has_begun = true;
                // The pod was off in between: its time is not this link's.
                self.link_began = self.pass_time();
                self.ended(summary, name)
            }
            Ok(summary) => {
                let state = summary.state.as_deref().unwrap_or("unknown");
                let why = format!(
                    "its job ended with the boot before as {state}; run the campaign again, which runs this link anew"
                );
                let now = self.tether.clock().now();
                if let Some(record) = self.record.of_mut(name) {
                    record.outcome = Outcome::Failed;
                    record.reason = Some(why.clone());
                    record.ended_at = Some(now);
                }
                self.cannot(why)
            }
        }
    }

    fn never_begun(&mut self, name: &str) -> Event {
        if let Some(record) = self.record.of_mut(name) {
            (record.job_id, record.summary_path) = (None, None);
        }
        Event::NoJob
    }

    fn cannot(&mut self, why: String) -> Event {
        self.reason = Some(why);
        Event::CannotTakeUp
    }

    async fn boot_of(&self, pod: Option<&PodId>, began: DateTime<Utc>) -> Result<Boot, Failure> {
        let Some(id) = pod else { return Ok(Boot::Same(None)) };
        Ok(match self.tether.pod_of_run(&self.vehicle, id).await? {
            PodOfRun::Off(pod) => Boot::Off(format!("pod {} is {}", pod.id, pod.status)),
            PodOfRun::Gone { .. } => Boot::Off(format!("the account shows pod {id} no more")),
            PodOfRun::On(pod) if later_boot(&pod, began).is_some() => Boot::Later(pod),
            PodOfRun::On(pod) => Boot::Same(Some(pod)),
        })
    }
}

/// In which boot the pod is, seen from a run.
enum Boot {
    Same(Option<Pod>),
    Later(Pod),
    Off(String),
}
