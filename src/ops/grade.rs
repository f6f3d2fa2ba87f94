//! How much is known of a stop: that it was asked, that the API says so, or that the bill is flat.
//! The bill comes about an hour late, so at the time of a stop nothing better than the API's word can
//! be had; whoever looks later finds the rest.

use crate::cloud::BilledSpan;
use crate::domain::{PodId, Usd};
use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use schemars::JsonSchema;
use serde::Serialize;

/// The grades, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// It was asked; nobody has seen it off.
    Asked,
    /// The provider's API says that it is off.
    ApiSays,
    /// The bill has gone on past the stop, without compute of this pod.
    BillingFlat,
}

/// One thing that is known: what was read, where, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Evidence {
    /// What it is about: status, rate, volume, billing.
    pub field: String,
    /// What was read.
    pub value: String,
    /// Where it was read.
    pub source: String,
    /// When it was read, UTC.
    pub at: DateTime<Utc>,
    /// How old it is, in seconds.
    pub age_sec: u64,
}

impl Evidence {
    pub(super) fn new(
        field: &str,
        value: impl std::fmt::Display,
        source: impl std::fmt::Display,
        at: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Self {
        let age_sec = u64::try_from((now - at).num_seconds()).unwrap_or(0);
        let (value, source) = (value.to_string(), source.to_string());
        Self { field: field.to_owned(), value, source, at, age_sec }
    }
}

/// When a pod went off the bill, as far as it is known: not before the stop was asked, and by the
/// time at which EXITED was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exit {
    pub after: DateTime<Utc>,
    pub by: DateTime<Utc>,
}

/// What the bill says of a pod that the API shows as stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Billing {
    /// No compute since; the bill is known until then.
    Flat { until: DateTime<Utc> },
    /// It cannot be told yet, and why.
    NotYet(String),
    /// Compute was billed in a span that begins after the stop.
    GoesOn { from: DateTime<Utc> },
}

/// How far the clocks of this machine and of the provider may be apart.
const SKEW: TimeDelta = TimeDelta::minutes(5);
/// A volume's bill says less about the pods' bill than a pod's does: it has to be that much further.
const VOLUMES_AHEAD: TimeDelta = TimeDelta::hours(1);

/// Reads the bill. `pods` and `volumes` are the account's records since the boot or longer; `booted_at`
/// is when the pod's last container was started. A disk that goes on billing is no compute.
pub(super) fn billing(
    pod: &PodId,
    pods: &[BilledSpan],
    volumes: &[BilledSpan],
    booted_at: Option<DateTime<Utc>>,
    exit: Option<Exit>,
    now: DateTime<Utc>,
) -> Billing {
    let own: Vec<&BilledSpan> = pods.iter().filter(|span| span.id == pod.0).collect();
    // An exit from before the last start is that of another boot.
    let exit = exit.filter(|exit| booted_at.is_none_or(|at| exit.by >= at));
    let (reached, last) = match exit {
        Some(exit) => (exit.after - SKEW, exit.by + SKEW),
        None => {
            let computed = own.iter().filter(|span| compute(span) != Some(Usd::ZERO));
            let Some(end) = computed.map(|span| span.end).max() else {
                return Billing::NotYet("the bill has no record of this pod yet".to_owned());
            };
            // The last instant of that record, so that its bucket is the one of the stop.
            (booted_at.unwrap_or(end), end - TimeDelta::milliseconds(1))
        }
    };
    let bucket = own.iter().filter(|span| span.start <= last && last < span.end);
    let edge = bucket.map(|span| span.end).max().unwrap_or_else(|| hour_after(last));
    for span in own.iter().filter(|span| span.start >= edge) {
        match compute(span) {
            Some(usd) if usd <= Usd::ZERO => {}
            Some(_) => return Billing::GoesOn { from: span.start },
            None => {
                return Billing::NotYet(
                    "a record after the stop has no readable amount".to_owned(),
                );
            }
        }
    }
    if !own.iter().any(|span| span.end >= reached) {
        return Billing::NotYet("the bill has not come to the stop yet".to_owned());
    }
    // A bucket that is not over yet may still grow.
    let over = |span: &&BilledSpan| span.end <= now;
    let of_pods = pods.iter().filter(over).filter(|span| span.start >= edge);
    let of_volumes = volumes.iter().filter(over).filter(|span| span.start >= edge + VOLUMES_AHEAD);
    match of_pods.chain(of_volumes).map(|span| span.end).max() {
        Some(until) => Billing::Flat { until },
        None => Billing::NotYet("the bill has not gone on past the stop yet".to_owned()),
    }
}

/// What was billed beside disks; `None` when the amount could not be read.
fn compute(span: &BilledSpan) -> Option<Usd> {
    Some(span.total?.saturating_sub(span.disk.unwrap_or(Usd::ZERO)))
}

fn hour_after(at: DateTime<Utc>) -> DateTime<Utc> {
    at.duration_trunc(TimeDelta::hours(1)).unwrap_or(at) + TimeDelta::hours(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(clock: &str) -> DateTime<Utc> {
        DateTime::parse_from_rfc3339(&format!("2026-07-03T{clock}Z")).unwrap().to_utc()
    }

    fn hour(id: &str, hour: u32, micros: Option<i64>, disk: i64) -> BilledSpan {
        let start = at(&format!("{hour:02}:00:00"));
        BilledSpan {
            id: id.into(),
            start,
            end: start + TimeDelta::hours(1),
            total: micros.map(Usd::from_micros),
            disk: Some(Usd::from_micros(disk)),
        }
    }

    fn paid(id: &str, from: u32) -> BilledSpan {
        hour(id, from, Some(690_000), 0)
    }

    fn exit(after: &str, by: &str) -> Option<Exit> {
        Some(Exit { after: at(after), by: at(by) })
    }

    fn read(pods: &[BilledSpan], volumes: &[BilledSpan], exit: Option<Exit>, now: &str) -> Billing {
        let booted_at = Some(at("09:10:00"));
        billing(&PodId("pod1".into()), pods, volumes, booted_at, exit, at(now))
    }

    fn not_yet(billing: &Billing) -> bool {
        matches!(billing, Billing::NotYet(_))
    }

    /// The bill is late: an hour without a record is flat only when a later one has come.
    #[test]
    fn a_bill_is_flat_only_when_it_has_gone_on_past_the_stop() {
        let stop = exit("10:29:50", "10:30:00");
        let own = [paid("pod1", 9), paid("pod1", 10)];
        assert!(not_yet(&read(&[], &[], stop, "10:30:05")));
        assert!(not_yet(&read(&own, &[], stop, "11:59:00")));
        let later = [&own[..], &[paid("pod2", 11)]].concat();
        assert!(not_yet(&read(&later, &[], stop, "11:59:59")), "the bucket is not over");
        let flat = Billing::Flat { until: at("12:00:00") };
        assert_eq!(read(&later, &[], stop, "12:00:00"), flat);
        assert_eq!(
            read(&later, &[], None, "12:00:00"),
            flat,
            "its last record stands for the stop"
        );
        let goes_on = [&later[..], &[paid("pod1", 11)]].concat();
        let from = at("11:00:00");
        assert_eq!(read(&goes_on, &[], stop, "13:00:00"), Billing::GoesOn { from });
    }

    /// The bill of volumes may be ahead of that of pods, so it has to be an hour further.
    #[test]
    fn a_volume_shows_that_the_bill_went_on_an_hour_later_than_a_pod_does() {
        let stop = exit("10:29:50", "10:30:00");
        let own = [paid("pod1", 10)];
        assert!(not_yet(&read(&own, &[paid("vol", 11)], stop, "20:00:00")));
        let flat = Billing::Flat { until: at("13:00:00") };
        assert_eq!(read(&own, &[paid("vol", 11), paid("vol", 12)], stop, "20:00:00"), flat);
    }

    /// I03: a stopped pod without a network volume goes on paying for its disk.
    #[test]
    fn a_disk_that_bills_on_is_no_compute() {
        let stop = exit("10:29:50", "10:30:00");
        let disk = [paid("pod1", 10), hour("pod1", 11, Some(5_000), 5_000)];
        assert_eq!(read(&disk, &[], stop, "12:00:00"), Billing::Flat { until: at("12:00:00") });
        assert_eq!(read(&disk, &[], None, "12:00:00"), Billing::Flat { until: at("12:00:00") });
        let unread = [paid("pod1", 10), hour("pod1", 11, None, 0)];
        assert!(not_yet(&read(&unread, &[], stop, "12:00:00")));
    }

    /// A hole is not a stop: without the record of the stop's own hour the bill has not come so far.
    #[test]
    fn a_hole_in_the_bill_is_not_taken_for_a_flat_bill() {
        let stop = exit("10:29:50", "10:30:00");
        let hole = [paid("pod1", 9), paid("pod2", 9), paid("pod2", 10), paid("pod2", 11)];
        assert!(not_yet(&read(&hole, &[], stop, "12:00:00")));
        assert!(not_yet(&read(&hole[1..], &[], None, "12:00:00")), "no record of this pod at all");
    }

    /// A stop at the full hour, and clocks that are some minutes apart.
    #[test]
    fn the_edges_of_buckets_and_of_clocks_do_not_make_a_bill_go_on() {
        let flat = |until| Billing::Flat { until: at(until) };
        for (stop, pods, expected) in [
            // To the hour: the last record ends with it.
            (
                exit("10:59:55", "11:00:00"),
                vec![paid("pod1", 10), paid("pod2", 12)],
                flat("13:00:00"),
            ),
            // The provider counted some seconds into the next hour.
            (
                exit("10:58:00", "10:59:00"),
                vec![paid("pod1", 10), hour("pod1", 11, Some(1_000), 0), paid("pod2", 12)],
                flat("13:00:00"),
            ),
            // Read late: anything between the request and the reading may be the stop.
            (
                exit("10:10:00", "12:30:00"),
                vec![paid("pod1", 10), paid("pod2", 13)],
                flat("14:00:00"),
            ),
        ] {
            assert_eq!(read(&pods, &[], stop, "20:00:00"), expected, "{stop:?}");
        }
        // A day's record covers the stop whole; what comes after it counts.
        let day = BilledSpan { end: at("00:00:00") + TimeDelta::days(1), ..paid("pod1", 0) };
        assert!(not_yet(&read(
            &[day, paid("pod2", 12)],
            &[],
            exit("10:00:00", "10:01:00"),
            "20:00:00"
        )));
    }

    /// A stop from before the last start says nothing about this boot.
    #[test]
    fn the_stop_of_an_earlier_boot_does_not_count() {
        let early = exit("07:00:00", "07:01:00");
        let pods = [paid("pod1", 6), paid("pod1", 9), paid("pod2", 10)];
        assert_eq!(read(&pods, &[], early, "12:00:00"), Billing::Flat { until: at("11:00:00") });
        // And records of an earlier boot do not show that this one is in the bill.
        let old = [paid("pod1", 6), paid("pod2", 10)];
        assert!(not_yet(&read(&old, &[], None, "12:00:00")));
    }
}
