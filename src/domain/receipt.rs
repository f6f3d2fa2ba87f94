//! Receipts of a drill: which fuses were seen to stop a pod by themselves, when and under which
//! circumstances. A receipt expires: by age, or when what it was proven with is another now.

use super::{FuseName, PodId, Usd};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

/// What a drill lets strike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DrillFuse {
    /// A job's own stop at its end.
    AutoStop,
    /// The pod's watchdog, after a time without use.
    WatchdogIdle,
    /// The pod's watchdog, at its deadline.
    WatchdogDeadline,
    /// The pod's watchdog, after a supervisor's lease ran out.
    Lease,
    /// The laptop's fuse.
    Deadman,
    /// What supervise does when `max_wait` has passed.
    Supervise,
}

/// Where a fuse lives. What takes one of a domain away may take all of it: a pod without a key that
/// may stop it, a laptop without power.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureDomain {
    /// On the pod.
    Pod,
    /// On this machine.
    Laptop,
}

impl FailureDomain {
    /// Every one.
    pub const ALL: [Self; 2] = [Self::Pod, Self::Laptop];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pod => "pod",
            Self::Laptop => "laptop",
        }
    }
}

impl DrillFuse {
    /// Every one, in the order in which a drill takes them: what only the next boot can tell of a
    /// fuse on the pod is read when one of the laptop's is tried.
    pub const ALL: [Self; 6] = [
        Self::AutoStop,
        Self::WatchdogIdle,
        Self::WatchdogDeadline,
        Self::Lease,
        Self::Deadman,
        Self::Supervise,
    ];

    /// The word for it, everywhere.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AutoStop => "auto_stop",
            Self::WatchdogIdle => "watchdog_idle",
            Self::WatchdogDeadline => "watchdog_deadline",
            Self::Lease => "lease",
            Self::Deadman => "deadman",
            Self::Supervise => "supervise",
        }
    }

    /// The fuse of that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fuse| fuse.as_str() == word)
    }

    /// Where it lives.
    #[must_use]
    pub const fn domain(self) -> FailureDomain {
        match self {
            Self::AutoStop | Self::WatchdogIdle | Self::WatchdogDeadline | Self::Lease => {
                FailureDomain::Pod
            }
            Self::Deadman | Self::Supervise => FailureDomain::Laptop,
        }
    }

    /// The row of `pod_status` that shows it.
    #[must_use]
    pub const fn row(self) -> FuseName {
        match self {
            Self::AutoStop => FuseName::AutoStop,
            Self::WatchdogIdle | Self::WatchdogDeadline | Self::Lease => FuseName::Watchdog,
            Self::Deadman => FuseName::Deadman,
            Self::Supervise => FuseName::Supervise,
        }
    }
}

/// What a drill found of one fuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DrillOutcome {
    /// The pod was read back as off, and what was left tells that this fuse did it.
    Proven,
    /// It did not strike in time, or nothing tells that it was this one.
    Failed,
    /// It did not come to it.
    NotTried,
}

impl DrillOutcome {
    /// In words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::Failed => "failed",
            Self::NotTried => "not tried",
        }
    }
}

/// What a proof depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Circumstances {
    /// The container image.
    pub image: String,
    /// A fingerprint of the API key, salted and cut: it tells two keys apart and gives none away.
    pub account: String,
    /// The same of this machine.
    pub host: String,
    /// podtether's version, major and minor.
    pub podtether: String,
}

impl Circumstances {
    /// What is another now.
    #[must_use]
    pub fn changed(&self, now: &Self) -> Vec<&'static str> {
        let pairs = [
            ("the image", &self.image, &now.image),
            ("the API key", &self.account, &now.account),
            ("this machine", &self.host, &now.host),
            ("podtether's version", &self.podtether, &now.podtether),
        ];
        pairs.into_iter().filter(|(_, then, now)| then != now).map(|(what, ..)| what).collect()
    }
}

/// One fuse's receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FuseReceipt {
    /// Which.
    pub fuse: DrillFuse,
    /// What was found.
    pub outcome: DrillOutcome,
    /// When that was, UTC.
    pub at: DateTime<Utc>,
    /// When it was armed, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub armed_at: Option<DateTime<Utc>>,
    /// When it was due, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<DateTime<Utc>>,
    /// From when it was due until the pod was read back as off, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub struck_after_sec: Option<i64>,
    /// What was seen, in words.
    pub observed: String,
    /// On which pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<PodId>,
    /// What trying it has cost, in micro-dollars, as far as the price was known.
    pub micros: i64,
    /// What the proof depends on.
    #[serde(flatten)]
    pub with: Circumstances,
}

impl FuseReceipt {
    /// What trying it has cost.
    #[must_use]
    pub const fn usd(&self) -> Usd {
        Usd::from_micros(self.micros)
    }

    /// Why it proves nothing any more; `None` while it is fresh.
    #[must_use]
    pub fn expired(
        &self,
        with: &Circumstances,
        now: DateTime<Utc>,
        lasts: TimeDelta,
    ) -> Option<String> {
        let changed = self.with.changed(with);
        if !changed.is_empty() {
            return Some(format!("{} changed since", changed.join(", ")));
        }
        // A receipt from the future is of a clock that was wrong, then or now.
        let age = now - self.at;
        if age > lasts {
            return Some(format!("it is {} days old", age.num_days()));
        }
        (age < -TimeDelta::days(1)).then(|| "it is dated in the future".to_owned())
    }
}

/// The receipts of one vehicle on one cloud.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipts {
    /// The version of this file's shape.
    pub version: u32,
    /// The vehicle.
    pub vehicle: String,
    /// `local` or `runpod`; one never counts for the other.
    pub cloud: String,
    /// What the fingerprints are salted with.
    pub salt: String,
    /// The newest receipt of each fuse.
    pub fuses: Vec<FuseReceipt>,
}

impl Receipts {
    /// The version that is written and read here.
    pub const VERSION: u32 = 1;

    /// Takes newer receipts in place of older ones. One that tells only that a fuse was not tried
    /// replaces none that tells more.
    pub fn take(&mut self, newer: Vec<FuseReceipt>) {
        for receipt in newer {
            let has = self.fuses.iter().position(|older| older.fuse == receipt.fuse);
            match has {
                Some(_) if receipt.outcome == DrillOutcome::NotTried => {}
                Some(at) => self.fuses[at] = receipt,
                None => self.fuses.push(receipt),
            }
        }
    }
}

/// What receipts are worth now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProvenFuses {
    /// Whether it is a drill that asks: it is how receipts come to be, and needs none.
    pub is_a_drill: bool,
    /// The failure domains in which a fuse is freshly proven.
    pub domains: Vec<FailureDomain>,
    /// What is proven and what is not, by domain; empty when nobody looked.
    pub told: String,
    /// For each row of `pod_status` what its receipts say; none when it has none.
    pub rows: Vec<(FuseName, String)>,
}

impl ProvenFuses {
    /// Weighs receipts. Without any, nothing is proven.
    #[must_use]
    pub fn of(
        receipts: Option<&Receipts>,
        with: &Circumstances,
        now: DateTime<Utc>,
        lasts: TimeDelta,
    ) -> Self {
        let fuses = receipts.map_or(&[][..], |receipts| &receipts.fuses);
        let worth = |receipt: &FuseReceipt| {
            let (name, day) = (receipt.fuse.as_str(), receipt.at.format("%Y-%m-%d %H:%M UTC"));
            match (receipt.outcome, receipt.expired(with, now, lasts)) {
                (DrillOutcome::Proven, None) => (true, format!("{name} proven by drill {day}")),
                (DrillOutcome::Proven, Some(why)) => {
                    (false, format!("{name} was proven by drill {day}, expired: {why}"))
                }
                (DrillOutcome::Failed, _) => (false, format!("{name} FAILED its drill {day}")),
                (DrillOutcome::NotTried, _) => (false, format!("{name} not tried in drill {day}")),
            }
        };
        let mut all = Self::default();
        let mut parts = Vec::new();
        for domain in FailureDomain::ALL {
            let of_domain = fuses.iter().filter(|receipt| receipt.fuse.domain() == domain);
            let (proven, words): (Vec<bool>, Vec<String>) = of_domain.map(worth).unzip();
            if proven.contains(&true) {
                all.domains.push(domain);
            }
            let words =
                if words.is_empty() { "never drilled".to_owned() } else { words.join(", ") };
            parts.push(format!("{}: {words}", domain.as_str()));
        }
        all.told = parts.join("; ");
        for fuse in fuses {
            let words = worth(fuse).1;
            match all.rows.iter_mut().find(|(row, _)| *row == fuse.fuse.row()) {
                Some((_, said)) => *said = format!("{said}, {words}"),
                None => all.rows.push((fuse.fuse.row(), words)),
            }
        }
        all
    }

    /// What the receipts say of one row of `pod_status`.
    #[must_use]
    pub fn of_row(&self, row: FuseName) -> Option<&str> {
        self.rows.iter().find(|(name, _)| *name == row).map(|(_, words)| words.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;
    const DAYS: TimeDelta = TimeDelta::days(30);

    fn with() -> Circumstances {
        Circumstances {
            image: "image:1".into(),
            account: "a1".into(),
            host: "h1".into(),
            podtether: "0.1".into(),
        }
    }

    fn receipt(fuse: DrillFuse, outcome: DrillOutcome) -> FuseReceipt {
        FuseReceipt {
            fuse,
            outcome,
            at: NOW,
            armed_at: None,
            due_at: None,
            struck_after_sec: Some(4),
            observed: String::new(),
            pod: None,
            micros: 23_000,
            with: with(),
        }
    }

    fn receipts(fuses: Vec<FuseReceipt>) -> Receipts {
        let (vehicle, cloud, salt) = ("rover".into(), "local".into(), "00".into());
        Receipts { version: Receipts::VERSION, vehicle, cloud, salt, fuses }
    }

    fn worth(fuses: Vec<FuseReceipt>) -> ProvenFuses {
        ProvenFuses::of(Some(&receipts(fuses)), &with(), NOW, DAYS)
    }

    #[test]
    fn a_receipt_expires_by_age_and_names_what_changed() {
        use DrillFuse::Deadman;
        let proven = receipt(Deadman, DrillOutcome::Proven);
        assert_eq!(proven.expired(&with(), NOW + DAYS, DAYS), None);
        let old = proven.expired(&with(), NOW + DAYS + TimeDelta::seconds(1), DAYS);
        assert_eq!(old.as_deref(), Some("it is 30 days old"));
        for (words, now) in [
            ("the image", Circumstances { image: "image:2".into(), ..with() }),
            ("the API key", Circumstances { account: "a2".into(), ..with() }),
            ("this machine", Circumstances { host: "h2".into(), ..with() }),
            ("podtether's version", Circumstances { podtether: "0.2".into(), ..with() }),
        ] {
            let why = proven.expired(&now, NOW, DAYS);
            assert_eq!(why, Some(format!("{words} changed since")));
            let worth = ProvenFuses::of(Some(&receipts(vec![proven.clone()])), &now, NOW, DAYS);
            assert!(worth.domains.is_empty() && worth.told.contains(words), "{worth:?}");
        }
        assert!(proven.expired(&with(), NOW - TimeDelta::days(2), DAYS).is_some());
    }

    #[test]
    fn many_fuses_of_the_pod_are_one_failure_domain() {
        use DrillFuse::{AutoStop, Lease, Supervise, WatchdogIdle};
        use DrillOutcome::{Failed, NotTried, Proven};
        let pods = vec![receipt(AutoStop, Proven), receipt(Lease, Proven)];
        assert_eq!(worth(pods.clone()).domains, [FailureDomain::Pod]);
        let failed = [pods, vec![receipt(Supervise, Failed)]].concat();
        let worth_failed = worth(failed);
        assert_eq!(worth_failed.domains, [FailureDomain::Pod]);
        assert!(worth_failed.told.contains("laptop: supervise FAILED"), "{}", worth_failed.told);
        let both = worth(vec![receipt(WatchdogIdle, Proven), receipt(Supervise, Proven)]);
        assert_eq!(both.domains, FailureDomain::ALL);
        let none = worth(vec![receipt(WatchdogIdle, NotTried)]);
        assert!(none.domains.is_empty() && none.told.contains("laptop: never drilled"));
        assert!(ProvenFuses::of(None, &with(), NOW, DAYS).domains.is_empty());
    }

    #[test]
    fn a_newer_receipt_replaces_an_older_one_of_its_fuse_and_no_other() {
        use DrillFuse::{Deadman, Lease};
        use DrillOutcome::{Failed, NotTried, Proven};
        let mut kept = receipts(vec![receipt(Lease, Proven), receipt(Deadman, Proven)]);
        kept.take(vec![receipt(Lease, Failed), receipt(Deadman, NotTried)]);
        assert_eq!(kept.fuses, [receipt(Lease, Failed), receipt(Deadman, Proven)]);
    }

    #[test]
    fn every_fuse_has_a_word_of_its_own() {
        for fuse in DrillFuse::ALL {
            assert_eq!(DrillFuse::parse(fuse.as_str()), Some(fuse));
        }
        assert_eq!(DrillFuse::parse("watchdog"), None);
    }

    /// A file of a released version is read for ever.
    #[test]
    fn the_first_version_of_the_file_is_read() {
        let text = include_str!("../../fixtures/state/receipts-v1.json");
        let read: Receipts = serde_json::from_str(text).unwrap();
        assert_eq!((read.version, read.fuses.len()), (1, 3));
        assert_eq!(read.fuses[0].outcome, DrillOutcome::Proven);
        let again = serde_json::to_value(&read).unwrap();
        assert_eq!(again, serde_json::from_str::<serde_json::Value>(text).unwrap());
    }
}
