//! Launches of which nobody knows whether they started a job. A session that died in the middle of one may
//! have left its last command on the way, and no look at the live jobs shows that: the next launch calls
//! them off before anything else, so that no second job starts beside its own (F04); patches do, so that none
//! starts while its sources change.

use super::Tether;
use crate::apply::{ApplyError, StepError, StepOutcome};
use crate::domain::{JobId, Pod};
use crate::ledger::{Action, Book, Event};

/// Whether a launch of so many steps that failed may have started its job: only the last step does,
/// those before place files.
pub(super) fn may_have_started(error: &ApplyError, steps: usize) -> bool {
    error.done.len() + 1 >= steps && error.error != StepError::NoShell
}

impl Tether {
    /// Launches on this pod that have no end in the journal. Whoever wrote them is gone, or has given
    /// up waiting for the answer: the turn is ours.
    pub(super) fn unknown_launches(&self, pod: &Pod) -> (Vec<u64>, Vec<JobId>) {
        let book = self.ledger.as_ref().and_then(|ledger| ledger.book().ok());
        let open = book.iter().flat_map(Book::open_intents);
        open.filter_map(|intent| match &intent.action {
            Action::LaunchJob { pod: on, job, .. } if *on == pod.id => {
                Some((intent.id, JobId::parse(job)?))
            }
            _ => None,
        })
        .unzip()
    }

    /// Notes the launches that start nothing any more; with that their reservations are given back.
    pub(super) fn note_called_off(
        &self,
        pod: &Pod,
        unknown: &[u64],
        launched: &Result<Vec<StepOutcome>, ApplyError>,
    ) {
        let done = match launched {
            Ok(outcomes) => outcomes,
            Err(error) => &error.done,
        };
        let Some(ledger) = &self.ledger else { return };
        for (id, outcome) in unknown.iter().zip(done) {
            let StepOutcome::Ran(output) = outcome else { continue };
            let said = output.stdout.text();
            let event = match said.trim() {
                "called_off" => Event::Failed {
                    id: *id,
                    error: "called off before it began".to_owned(),
                    may_have_taken_effect: false,
                },
                "over" => Event::Done {
                    id: *id,
                    pod: Some(pod.id.clone()),
                    observed: "its job was over".to_owned(),
                },
                _ => continue,
            };
            if let Err(error) = ledger.append(event) {
                tracing::warn!(%error, "a launch that was called off could not be noted");
            }
        }
    }
}
