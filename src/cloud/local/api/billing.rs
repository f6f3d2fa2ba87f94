//! `/v2/billing`: what pods and volumes cost, in buckets, about an hour late.

use super::super::document::Span;
use super::super::faults::{BILLING_HOLES, BILLING_LAG};
use super::super::problem::Problem;
use super::super::twin::Twin;
use super::call::{Answer, Call};
use super::{catalog, view};
use crate::domain::{Usd, UsdPerHour};
use chrono::{DateTime, Datelike as _, Days, Months, NaiveDate, NaiveTime, TimeDelta, Utc};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// More buckets than this are refused.
const MOST_BUCKETS: usize = 20_000;

/// The span of time that is asked for, cut into buckets.
struct Window {
    size: String,
    /// Starts of the buckets, and the end of the last one.
    edges: Vec<DateTime<Utc>>,
}

impl Window {
    /// Start and end are snapped outwards to buckets, as the provider does (I04).
    fn read(call: &Call, now: DateTime<Utc>) -> Result<Self, Problem> {
        let size = call.query("bucketSize").unwrap_or("day");
        catalog::check("bucketSize", &[size], &["hour", "day", "week", "month", "year"])?;
        let time = |name: &str| match call.query(name) {
            None => Ok(None),
            Some(text) => DateTime::parse_from_rfc3339(text)
                .map(|time| Some(time.to_utc()))
                .map_err(|_| Problem::bad_request(format!("{name} is not an RFC 3339 time"))),
        };
        let (start, end) = (time("startTime")?, time("endTime")?);
        let (start, end) = match call.query("lastN") {
            None => {
                let end = end.unwrap_or(now);
                (start.unwrap_or(end - TimeDelta::days(30)), end)
            }
            Some(_) if start.is_some() || end.is_some() => {
                return Err(Problem::bad_request("lastN excludes startTime and endTime"));
            }
            Some(text) => (last_buckets(size, text, now)?, now),
        };
        let too_many = || Problem::bad_request("the window has too many buckets");
        let mut edges = vec![floor(size, start).ok_or_else(too_many)?];
        while let Some(last) = edges.last().copied().filter(|last| *last < end) {
            edges.push(after(size, last).ok_or_else(too_many)?);
            if edges.len() > MOST_BUCKETS {
                return Err(too_many());
            }
        }
        Ok(Self { size: size.to_owned(), edges })
    }

    fn buckets(&self) -> impl Iterator<Item = (DateTime<Utc>, DateTime<Utc>)> {
        self.edges.iter().copied().zip(self.edges.iter().copied().skip(1))
    }

    fn query(&self, filter: &str, value: Option<&str>) -> Value {
        json!({
            "startTime": self.edges.first().copied().map(view::timestamp),
            "endTime": self.edges.last().copied().map(view::timestamp),
            "bucketSize": self.size,
            filter: value,
        })
    }
}

fn last_buckets(size: &str, count: &str, now: DateTime<Utc>) -> Result<DateTime<Utc>, Problem> {
    let refuse = || Problem::bad_request(format!("lastN must be 1 to {MOST_BUCKETS}"));
    let count: usize = count.parse().map_err(|_| refuse())?;
    if !(1..=MOST_BUCKETS).contains(&count) {
        return Err(refuse());
    }
    let mut edge = floor(size, now).ok_or_else(refuse)?;
    for _ in 1..count {
        edge = floor(size, edge - TimeDelta::seconds(1)).ok_or_else(refuse)?;
    }
    Ok(edge)
}

/// Start of the bucket that `time` is in, in UTC.
fn floor(size: &str, time: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let date = time.date_naive();
    let date = match size {
        "hour" => {
            let seconds = time.timestamp();
            return DateTime::from_timestamp(seconds - seconds.rem_euclid(3600), 0);
        }
        "week" => {
            date.checked_sub_days(Days::new(u64::from(date.weekday().num_days_from_monday())))
        }
        "month" => date.with_day(1),
        "year" => NaiveDate::from_ymd_opt(date.year(), 1, 1),
        _ => Some(date),
    };
    date.map(|date| date.and_time(NaiveTime::MIN).and_utc())
}

/// End of the bucket that starts at `start`.
fn after(size: &str, start: DateTime<Utc>) -> Option<DateTime<Utc>> {
    match size {
        "hour" => start.checked_add_signed(TimeDelta::hours(1)),
        "week" => start.checked_add_days(Days::new(7)),
        "month" => start.checked_add_months(Months::new(1)),
        "year" => start.checked_add_months(Months::new(12)),
        _ => start.checked_add_days(Days::new(1)),
    }
}

/// The part of `span` in a bucket that is billed by now.
fn billed(
    span: &Span,
    bucket: (DateTime<Utc>, DateTime<Utc>),
    known_until: DateTime<Utc>,
) -> Duration {
    let start = span.start.max(bucket.0);
    let end = span.end.unwrap_or(known_until).min(known_until).min(bucket.1);
    (end - start).to_std().unwrap_or_default()
}

/// Whole hours of a volume's life that begin in a bucket and are over by now.
fn billed_hours(
    span: &Span,
    bucket: (DateTime<Utc>, DateTime<Utc>),
    known_until: DateTime<Utc>,
) -> i64 {
    let end = span.end.unwrap_or(known_until).min(known_until);
    let hours_until = |time: DateTime<Utc>| ((time - span.start).num_seconds() + 3599) / 3600;
    let over = ((end - span.start).num_seconds() / 3600).max(0);
    let first = hours_until(bucket.0).clamp(0, over);
    let last = hours_until(bucket.1).clamp(0, over);
    last - first
}

fn ids(spans: &[Span], only: Option<&str>) -> BTreeSet<String> {
    let wanted = spans.iter().filter(|span| only.is_none_or(|id| span.of == id));
    wanted.map(|span| span.of.clone()).collect()
}

/// How far billing is behind.
fn lag(twin: &Twin) -> Duration {
    let more = twin.faults().seconds(BILLING_LAG).unwrap_or(0);
    twin.timing.billing_lag + Duration::from_secs(more.into())
}

/// Takes every other record out of an answer whose totals go on counting it.
fn with_holes(twin: &Twin, records: Vec<Value>) -> Vec<Value> {
    if !twin.faults().happens(BILLING_HOLES) {
        return records;
    }
    records.into_iter().skip(1).step_by(2).collect()
}

pub fn pods(twin: &Twin, call: &Call) -> Result<Answer, Problem> {
    let now = twin.clock.now();
    let window = Window::read(call, now)?;
    let known_until = now - lag(twin);
    let spans = twin.document().pod_spans.clone();
    let only = call.query("podId");
    let (mut records, mut seen) = (Vec::new(), BTreeSet::new());
    let (mut all_gpu, mut all_disk) = (Usd::ZERO, Usd::ZERO);
    for bucket in window.buckets() {
        for id in ids(&spans, only) {
            let (mut gpu, mut disk) = (Usd::ZERO, Usd::ZERO);
            for span in spans.iter().filter(|span| span.of == id) {
                let time = billed(span, bucket, known_until);
                gpu = gpu + UsdPerHour::new(Usd::from_micros(span.rate)).cost_of(time);
                disk = disk + UsdPerHour::new(Usd::from_micros(span.disk_rate)).cost_of(time);
            }
            if gpu + disk == Usd::ZERO {
                continue;
            }
            (all_gpu, all_disk) = (all_gpu + gpu, all_disk + disk);
            records.push(json!({
                "startTime": view::timestamp(bucket.0),
                "endTime": view::timestamp(bucket.1),
                "podId": id,
                "totalAmount": gpu + disk,
                "gpuAmount": gpu,
                "cpuAmount": 0.0,
                "diskAmount": disk,
            }));
            seen.insert(id);
        }
    }
    let records = with_holes(twin, records);
    let metadata = json!({
        "query": window.query("podId", only),
        "recordCount": records.len(),
        "uniquePodCount": seen.len(),
        "totals": {
            "totalAmount": all_gpu + all_disk,
            "gpuAmount": all_gpu,
            "cpuAmount": 0.0,
            "diskAmount": all_disk,
        },
    });
    Ok(Answer::Json(200, json!({"records": records, "metadata": metadata})))
}

pub fn volumes(twin: &Twin, call: &Call) -> Result<Answer, Problem> {
    let now = twin.clock.now();
    let window = Window::read(call, now)?;
    let known_until = now - lag(twin);
    let spans = twin.document().volume_spans.clone();
    let only = call.query("networkVolumeId");
    let (mut records, mut seen, mut all) = (Vec::new(), BTreeSet::new(), Usd::ZERO);
    for bucket in window.buckets() {
        for span in spans.iter().filter(|span| only.is_none_or(|id| span.of == id)) {
            let hours = billed_hours(span, bucket, known_until);
            if hours == 0 {
                continue;
            }
            let amount = Usd::from_micros(span.rate.saturating_mul(hours));
            all = all + amount;
            records.push(json!({
                "startTime": view::timestamp(bucket.0),
                "endTime": view::timestamp(bucket.1),
                "networkVolumeId": span.of,
                "totalAmount": amount,
                "standardAmount": amount,
                "highPerformanceAmount": 0.0,
            }));
            seen.insert(span.of.clone());
        }
    }
    let records = with_holes(twin, records);
    let metadata = json!({
        "query": window.query("networkVolumeId", only),
        "recordCount": records.len(),
        "uniqueNetworkVolumeCount": seen.len(),
        "totals": {"totalAmount": all, "standardAmount": all, "highPerformanceAmount": 0.0},
    });
    Ok(Answer::Json(200, json!({"records": records, "metadata": metadata})))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn span(start: &str, end: Option<&str>) -> Span {
        Span {
            of: "local1".to_owned(),
            rate: 690_000,
            disk_rate: 0,
            start: at(start),
            end: end.map(at),
        }
    }

    /// I04: a window is snapped outwards to buckets, in UTC.
    #[test]
    fn buckets_start_at_their_natural_edges() {
        let time = at("2026-11-26T13:45:10Z");
        for (size, start, end) in [
            ("hour", "2026-11-26T13:00:00Z", "2026-11-26T14:00:00Z"),
            ("day", "2026-11-26T00:00:00Z", "2026-11-27T00:00:00Z"),
            ("week", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"),
            ("month", "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"),
            ("year", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ] {
            let floor = floor(size, time).unwrap();
            assert_eq!((floor, after(size, floor).unwrap()), (at(start), at(end)), "{size}");
        }
    }

    /// I02: only the time between start and stop is billed, each second in one bucket.
    #[test]
    fn a_span_is_billed_once_over_all_buckets_and_not_before_it_is_known() {
        let span = span("2026-11-26T10:30:00Z", Some("2026-11-26T12:15:00Z"));
        let bucket = |hour: u32| {
            let start = at("2026-11-26T00:00:00Z") + TimeDelta::hours(i64::from(hour));
            (start, start + TimeDelta::hours(1))
        };
        let minutes = |known: &str| -> Vec<u64> {
            (9..14).map(|hour| billed(&span, bucket(hour), at(known)).as_secs() / 60).collect()
        };
        assert_eq!(minutes("2026-11-27T00:00:00Z"), [0, 30, 60, 15, 0]);
        assert_eq!(minutes("2026-11-26T11:10:00Z"), [0, 30, 10, 0, 0]);
    }

    #[test]
    fn a_volume_bills_whole_hours_each_in_the_bucket_it_begins_in() {
        let span = span("2026-11-26T10:30:00Z", None);
        let bucket = |start: &str, end: &str| (at(start), at(end));
        let known = at("2026-11-26T13:29:59Z");
        let morning = bucket("2026-11-26T00:00:00Z", "2026-11-26T12:00:00Z");
        let evening = bucket("2026-11-26T12:00:00Z", "2026-11-27T00:00:00Z");
        assert_eq!(billed_hours(&span, morning, known), 2);
        assert_eq!(billed_hours(&span, evening, known), 0);
        assert_eq!(billed_hours(&span, evening, at("2026-11-26T13:30:00Z")), 1);
    }
}
