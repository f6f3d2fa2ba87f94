//! The end of a link: what it has left and cost is looked at, and recorded.

use super::before;
use super::judge;
use super::link::{BETWEEN, PATIENCE};
use super::prepared::Prepared;
use super::record::Outcome;
use super::run::{Runner, Signals};
use super::state::Event;
use crate::supervise::Note;

impl Runner<'_> {
    /// Looks at what a link has left and cost, and records it.
    pub(super) async fn judge(
        &mut self,
        link: usize,
        signals: &mut Signals,
        tell: &mut (dyn FnMut(Note) + Send),
    ) -> Event {
        let Some(prepared) = self.links.get(link).cloned() else { return Event::Leave };
        let name = prepared.link.name.clone();
        let time = (self.pass_time() - self.link_began).to_std().unwrap_or_default();
        let spent = self.rate.map(|rate| rate.cost_of(time));
        let Some(mut record) = self.record.of(&name).cloned() else { return Event::Leave };
        record.spent_usd = spent;
        let (recipe, vehicle) = (self.recipe(&prepared), self.vehicle.clone());
        let (summary, kept) = (self.summary.clone(), record.clone());
        let one = prepared.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let summary = summary.as_ref();
            let faults = judge::faults(&one, recipe.as_ref(), &vehicle, summary, &mut record);
            (record, faults)
        });
        let (mut record, mut faults) = match looked.await {
            Ok(looked) => looked,
            Err(error) => (kept, vec![format!("what it left could not be looked at: {error}")]),
        };
        let Some(gates) = self.gates_after(&prepared, signals, tell).await else {
            return Event::Leave;
        };
        faults.extend(gates);
        let well = faults.is_empty();
        if well {
            record.outcome = Outcome::Succeeded;
            record.ended_at = Some(self.tether.clock().now());
            record.reason = None;
        }
        let spent = spent.map_or_else(|| "an unknown amount".to_owned(), |usd| usd.to_string());
        let files = match record.artifacts.len() {
            0 => String::new(),
            1 => "; 1 expected file is home".to_owned(),
            n => format!("; {n} expected files are home"),
        };
        self.record.begin(record);
        if well {
            tell(Note::Said(format!(
                "{}: done; it cost {spent} of max_usd {}{files}",
                self.place(link),
                prepared.link.max_usd
            )));
        } else {
            self.reason = Some(faults.join("; "));
        }
        Event::Judged { well }
    }

    /// What of the gates after a link does not hold; `None` when a signal ended the questions.
    async fn gates_after(
        &mut self,
        prepared: &Prepared,
        signals: &mut Signals,
        tell: &mut (dyn FnMut(Note) + Send),
    ) -> Option<Vec<String>> {
        let gates = &prepared.link.after;
        if gates.is_empty() {
            return Some(Vec::new());
        }
        let start = self.tether.clock().monotonic();
        loop {
            let looked = async {
                let pod = self.tether.pod_of_links(&self.vehicle).await?;
                before::markers(self.tether, &self.vehicle, &pod, gates).await
            };
            let looked = looked.await;
            let waited = self.tether.clock().monotonic().saturating_sub(start);
            match looked {
                Ok(faults) => return Some(faults),
                Err(failure) if failure.retryable && waited < PATIENCE => {
                    // Minutes without a word look like a hang, and the pod bills meanwhile.
                    let name = &prepared.link.name;
                    tell(Note::Said(format!(
                        "{name}: gates after it: {}; asked again",
                        failure.message
                    )));
                    if self.waited(BETWEEN, signals).await {
                        return None;
                    }
                }
                Err(failure) => return Some(vec![format!("gates after it: {}", failure.message)]),
            }
        }
    }
}
