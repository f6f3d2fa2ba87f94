//! What the links of a campaign cost: at worst, link by link, and as it is expected. Pure.

use crate::domain::{Ceiling, Link, Usd, UsdPerHour, Work};
use crate::ops::campaign::LinkJob;
use crate::supervise::CAPTURE_MAX;
use std::time::Duration;

/// How long a job is followed beyond its ceiling and the kill grace.
pub(super) const BACKSTOP: Duration = Duration::from_secs(300);
/// Before a link is tried again, once.
pub(super) const REST: Duration = Duration::from_secs(60);
/// Looks at pins, gates and facts before a link and after it, the plan of its launch, and the pause
/// before it is tried again.
const AROUND: Duration = Duration::from_secs(600);
/// Patches, with the waits of their commands.
const PATCHES: Duration = Duration::from_secs(300);

/// What one link takes and costs.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LinkBill {
    /// Its name.
    pub name: String,
    /// What it does, in words.
    pub work: String,
    /// Of a job: the longest it may run, in seconds.
    pub ceiling_sec: Option<u32>,
    /// How long it may take at worst, in seconds: the job, its end, and bringing results home.
    pub worst_case_sec: u64,
    /// What that costs; null when the price is not known.
    pub worst_case_usd: Option<Usd>,
    /// How long it is expected to take, in seconds; null when nobody knows.
    pub expected_sec: Option<u64>,
    /// What that costs.
    pub expected_usd: Option<Usd>,
    /// Its envelope.
    pub max_usd: Usd,
}

/// How long a link may take at worst, before what ends the campaign.
pub(super) fn worst_time(link: &Link, ceiling: Option<Ceiling>) -> Duration {
    match (&link.work, ceiling) {
        (Work::Nothing, _) => Duration::ZERO,
        (Work::Patches, _) => PATCHES + AROUND,
        (_, None) => CAPTURE_MAX + AROUND,
        (_, Some(ceiling)) => {
            let grace = Duration::from_secs(u64::from(Ceiling::KILL_GRACE_SEC));
            ceiling.duration() + grace + BACKSTOP + CAPTURE_MAX + AROUND
        }
    }
}

/// The bill of a link at this price.
pub(super) fn of(link: &Link, job: Option<&LinkJob>, rate: Option<UsdPerHour>) -> LinkBill {
    let ceiling = job.map(|job| job.ceiling);
    let worst = worst_time(link, ceiling);
    let expected = job.and_then(|job| job.expected);
    let cost = |time: Duration| rate.map(|rate| rate.cost_of(time));
    LinkBill {
        name: link.name.clone(),
        work: link.work.told(),
        ceiling_sec: ceiling.map(Ceiling::as_secs),
        worst_case_sec: worst.as_secs(),
        worst_case_usd: cost(worst),
        expected_sec: expected.map(|time| time.as_secs()),
        expected_usd: expected.and_then(cost),
        max_usd: link.max_usd,
    }
}

impl LinkBill {
    /// Why the link may not begin with this bill; `None` when it fits its envelope.
    pub(super) fn beyond_envelope(&self) -> Option<String> {
        match self.worst_case_usd {
            Some(worst) if worst <= self.max_usd => None,
            Some(worst) => Some(format!(
                "link {} can cost ${} at worst, more than its max_usd {}; max_usd: {} would pass, or a shorter max_runtime_sec",
                self.name,
                worst.to_decimal(),
                self.max_usd,
                worst.to_decimal()
            )),
            None => {
                Some(format!("what link {} costs is not known: the pod's price is not", self.name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{LinkEnd, LinkExpected};

    fn link(work: Work, max_usd: i64) -> Link {
        Link {
            name: "a".to_owned(),
            line: 1,
            work,
            max_runtime_sec: None,
            pull: None,
            needs: Vec::new(),
            pins: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            max_usd: Usd::from_micros(max_usd),
            expect: LinkExpected::default(),
            end: LinkEnd::Next,
        }
    }

    /// Exactly the envelope passes; a price that nobody knows does not.
    #[test]
    fn a_link_begins_only_when_its_worst_case_fits_its_envelope() {
        let rate = UsdPerHour::new(Usd::from_micros(3_600_000));
        let sync = |max_usd| link(Work::Sync { folder: "a".to_owned() }, max_usd);
        assert_eq!(of(&sync(4_200_000), None, Some(rate)).beyond_envelope(), None);
        let beyond = of(&sync(4_199_999), None, Some(rate)).beyond_envelope().unwrap();
        assert!(beyond.contains("max_usd: 4.20 would pass"), "{beyond}");
        assert!(of(&sync(4_200_000), None, None).beyond_envelope().is_some());
        assert_eq!(of(&link(Work::Nothing, 0), None, Some(rate)).beyond_envelope(), None);
    }
}
