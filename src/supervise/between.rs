//! What happens between two looks at a job, and what each look adds to the summary.

use super::follow::Found;
use super::options::Note;
use super::run::{Run, Signals, save};
use super::state::Event;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

impl Run<'_> {
    /// C03: says for how long this computer slept, and writes it down.
    pub(super) fn after_sleep(&mut self, tell: &mut (dyn FnMut(Note) + Send)) {
        if let Some(time) = self.slept.look(self.tether) {
            self.summary.slept(time);
            self.look_at_once = true;
            tell(Note::Said(format!(
                "this computer slept for {} min, or its clock was put forward; looking at once",
                time.as_secs().div_ceil(60)
            )));
        }
    }

    /// Waits for the end of the job, for `time`, for a signal or for this computer to wake, and brings
    /// results home meanwhile.
    pub(super) async fn wait(
        &mut self,
        time: Duration,
        signals: &mut Signals,
        tell: &mut (dyn FnMut(Note) + Send),
    ) -> Option<Event> {
        let pod = self.follower.pod().clone();
        let held = self.spending.beside(self.follower.hold(time), &self.vehicle.name.0);
        let (mut held, mut woke) = (pin!(held), pin!(self.slept.wakes(self.tether)));
        loop {
            let round = tokio::select! {
                // In one order always, so that a simulated run can be told again.
                biased;
                event = signals.recv() => return Some(event.unwrap_or(Event::Leave)),
                () = &mut held => return None,
                () = &mut woke => return None,
                round = self.meanwhile.round(&pod) => round,
            };
            let is_first = self.summary.pulled.while_running.is_none();
            if round.note(&mut self.summary.pulled, self.tether.clock().now()) {
                save(&mut self.summary, tell);
                if is_first {
                    tell(Note::Said("results come home while the job runs".to_owned()));
                }
            }
            if let Some(trouble) = round.trouble {
                tell(Note::Said(format!("not home yet: {trouble}; asked again later")));
            }
        }
    }

    /// Takes down what a look found.
    pub(super) fn saw(&mut self, found: &Found, tell: &mut (dyn FnMut(Note) + Send)) {
        self.summary.state = Some(found.state.to_string());
        self.summary.exit_code = found.exit_code;
        self.summary.metrics.set(self.follower.latest());
        let now = self.tether.clock().now();
        let (fuses, asleep) = self.tether.fuses_seen(self.vehicle, self.pod, &found.look);
        if let Some(risk) = self.risk.look(&fuses, &asleep, now)
            && !found.state.has_ended()
        {
            tell(Note::Said(risk));
        }
        let elapsed = (now - self.launched_at).to_std().unwrap_or_default();
        tell(Note::Progress {
            state: found.state,
            metrics: self.follower.latest(),
            elapsed,
            ceiling: self.ceiling,
            cost: self.pod.price.known().map(|rate| rate.cost_of(elapsed)),
            armed: self.risk.armed(),
        });
    }

    /// Takes the last numbers from the log that came home, when no look got to its end.
    pub(super) fn read_the_rest(&mut self) {
        let pulled = &self.summary.pulled.job_dir;
        if let Some(folder) = pulled.as_ref().filter(|_| self.follower.is_behind()) {
            self.follower.catch_up(&Path::new(&folder.to).join("out.log"));
            self.summary.metrics.set(self.follower.latest());
        }
    }
}
