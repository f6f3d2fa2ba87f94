//! The bill as the provider shows it: by the hour, late, and with holes where the script has some.

use super::faults::State;
use super::world::World;
use chrono::{DateTime, TimeDelta, Timelike as _, Utc};
use podtether::cloud::BilledSpan;
use podtether::domain::Usd;
use std::time::Duration;

/// One record for each hour, of as much of it as was billed by then.
pub fn hours(
    world: &World,
    id: &str,
    from: DateTime<Utc>,
    since: DateTime<Utc>,
    cost: impl Fn(DateTime<Utc>, DateTime<Utc>) -> Usd,
) -> Vec<BilledSpan> {
    let more = world.wrong().find_map(|wrong| match wrong {
        State::BillLag(seconds) => Some(Duration::from_secs(seconds)),
        _ => None,
    });
    let lag = world.bill_lag + more.unwrap_or_default();
    let known = world.truth() - TimeDelta::from_std(lag).unwrap();
    let hour_of = |at: DateTime<Utc>| {
        at.with_minute(0).and_then(|at| at.with_second(0)).and_then(|at| at.with_nanosecond(0))
    };
    let mut records = Vec::new();
    let Some(mut start) = hour_of(from.max(since)) else { return records };
    while start < known {
        let end = start + TimeDelta::hours(1);
        let total = cost(start, end.min(known));
        if total > Usd::ZERO {
            records.push(BilledSpan {
                id: id.to_owned(),
                start,
                end,
                total: Some(total),
                disk: None,
            });
        }
        start = end;
    }
    if world.is_wrong(State::BillHoles) {
        let mut keep = false;
        records.retain(|_| {
            keep = !keep;
            keep
        });
    }
    records
}
