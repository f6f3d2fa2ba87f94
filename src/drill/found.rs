//! What a drill notes: a receipt for every fuse, and what each boot has cost.

use super::armed::Armed;
use super::at_work::{Drill, Strike, Unread};
use crate::domain::{DrillFuse, DrillOutcome, FuseReceipt, Usd};
use chrono::{DateTime, Utc};

impl Drill<'_> {
    /// Notes a fuse that struck, with the proof that it was this one, or why there is none.
    pub(super) fn struck(
        &mut self,
        strike: &Strike,
        proof: Result<String, String>,
        usd: Usd,
        tell: &mut (dyn FnMut(String) + Send),
    ) {
        let after = (strike.off_at - strike.due_at).num_seconds().max(0);
        let (outcome, words) = match proof {
            Ok(words) => (DrillOutcome::Proven, words),
            Err(words) => (DrillOutcome::Failed, words),
        };
        let observed = format!("EXITED was read back {after} s after it was due; {words}");
        tell(format!("  {}: {}: {observed}", strike.fuse.as_str(), outcome.as_str()));
        let times = Some((strike.armed_at, strike.due_at));
        self.keep(strike.fuse, outcome, observed, times, Some(after), usd);
    }

    pub(super) fn note(
        &mut self,
        fuse: DrillFuse,
        outcome: DrillOutcome,
        observed: String,
        armed: Option<&Armed>,
        usd: Usd,
    ) {
        self.keep(fuse, outcome, observed, armed.map(|armed| (armed.at, armed.due)), None, usd);
    }

    /// `times` are when it was armed and due, `after` how many seconds later the pod was off.
    fn keep(
        &mut self,
        fuse: DrillFuse,
        outcome: DrillOutcome,
        observed: String,
        times: Option<(DateTime<Utc>, DateTime<Utc>)>,
        after: Option<i64>,
        usd: Usd,
    ) {
        self.found.push(FuseReceipt {
            fuse,
            outcome,
            at: self.now(),
            armed_at: times.map(|(armed, _)| armed),
            due_at: times.map(|(_, due)| due),
            struck_after_sec: after,
            observed,
            pod: self.pod.clone(),
            micros: usd.micros(),
            with: self.with.clone(),
        });
    }

    /// Notes a fuse that came to nothing, unless something of it is noted already.
    pub(super) fn came_to_nothing(&mut self, fuse: DrillFuse, why: String) {
        let is_unread = self.unread.as_ref().is_some_and(|unread| unread.strike.fuse == fuse);
        if !is_unread && self.found.iter().all(|receipt| receipt.fuse != fuse) {
            self.note(fuse, DrillOutcome::NotTried, why, None, Usd::ZERO);
        }
    }

    /// Notes that nobody could read what a strike has left.
    pub(super) fn give_up_unread(&mut self, why: &str, tell: &mut (dyn FnMut(String) + Send)) {
        if let Some(Unread { strike, usd, .. }) = self.unread.take() {
            let words = format!("what struck could not be read: {why}");
            self.struck(&strike, Err(words), usd, tell);
        }
    }

    /// Whether this boot is, or must be taken to be, on the bill.
    pub(super) const fn is_on(&self) -> bool {
        self.on_since.is_some()
    }

    pub(super) fn off_the_bill(&mut self, off_at: DateTime<Utc>) -> Usd {
        let Some(since) = self.on_since.take() else { return Usd::ZERO };
        let usd = self.rate.cost_of((off_at - since).to_std().unwrap_or_default());
        self.spent = self.spent.saturating_add(usd);
        usd
    }
}
