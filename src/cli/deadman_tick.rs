//! `podtether deadman tick`: one look for fuses whose process is gone, as the system's scheduler has it made.

use super::deadman_timer::TimerArgs;
use super::open::{self, config_of};
use super::{logging, print};
use crate::config::Config;
use crate::deadman::{self, Record, Seen, Wish};
use crate::domain::{Usd, Vehicle};
use crate::error::Failure;
use crate::notify::{Notice, NoticeKind, Notifier};
use crate::ops::{self, Start};
use chrono::TimeDelta;
use serde_json::json;
use std::time::Duration;

/// What a look came to.
#[derive(Default)]
struct Found {
    /// Whose fuse has a process again, and which.
    taken_over: Vec<(String, u32)>,
    /// Whose fuse is gone and cannot be had again, and why.
    may_bill: Vec<(Vehicle, String)>,
}

/// How long people are not told the same again: a look comes every minute.
const AGAIN: TimeDelta = TimeDelta::hours(1);

/// One look: whatever was armed and has no process any more is armed again for its old time, and fires
/// at once when that has passed. 0, or 1 when a pod may bill without a fuse.
pub fn run(args: &TimerArgs) -> u8 {
    match open::block_on(look(args)) {
        Ok(Ok(found)) => {
            show(&found, args.json);
            u8::from(!found.may_bill.is_empty())
        }
        Ok(Err(failure)) | Err(failure) => open::failed_over_a_pod(&failure, args.json),
    }
}

async fn look(args: &TimerArgs) -> Result<Found, Failure> {
    let start = args.config.start()?;
    let _log = logging::start(&start.env);
    let config = config_of(&start)?;
    let (mut lost, mut found) = (Vec::new(), Found::default());
    for vehicle in &config.vehicles {
        if let Some(record) = deadman::overdue(&vehicle.local_log_dir) {
            lost.push((vehicle, record));
        } else if let Seen::LostUnread(why) = deadman::look(&vehicle.local_log_dir) {
            let why = format!("what it said of itself cannot be read: {why}");
            found.may_bill.push((vehicle.clone(), why));
        } else {
            looked(vehicle);
        }
    }
    take_up(&start, lost, &mut found).await;
    tell(&start, &config, &found).await;
    Ok(found)
}

/// Notes that the look was well.
fn looked(vehicle: &Vehicle) {
    if let Err(error) = deadman::note_tick(&vehicle.local_log_dir, open::clock().now()) {
        print::note(&format!("{}: {error}", vehicle.name));
    }
}

async fn take_up(start: &Start, lost: Vec<(&Vehicle, Record)>, found: &mut Found) {
    if lost.is_empty() {
        return;
    }
    // Only now, so that a look with nothing to do asks no keychain.
    let tether = match ops::open(start, open::clock()).await {
        Ok((tether, _)) => tether,
        Err(failure) => {
            let why = format!("no new one can be armed: {}", failure.apart_from_the_bill());
            let lost = lost.into_iter().map(|(vehicle, _)| (vehicle.clone(), why.clone()));
            found.may_bill.extend(lost);
            return;
        }
    };
    for (vehicle, record) in lost {
        let Some(arming) = tether.arming() else { continue };
        let ours = arming.access.cloud();
        if record.cloud != ours {
            // Real and local are never mixed up: here it would ask for the stop of another pod.
            match record.cloud.as_str() {
                "local" => looked(vehicle),
                theirs => found.may_bill.push((
                    vehicle.clone(),
                    format!(
                        "it was armed on the {theirs} cloud, and the config is for the {ours} one"
                    ),
                )),
            }
            continue;
        }
        let wish = Wish {
            // The pod that it was armed for, whatever the config calls the vehicle's by now.
            pod_name: record.pod_name.clone(),
            retries: record.retries,
            spacing: Duration::from_secs(record.spacing_sec),
            pod: record.pod_id.clone(),
            usd_per_hour: record.micros_per_hour.map(Usd::from_micros),
            ..Wish::new(vehicle, record.fire_at)
        };
        match deadman::ensure_armed(arming, &wish, tether.clock()).await {
            Ok(armed) => {
                found.taken_over.push((vehicle.name.0.clone(), armed.record.pid));
                looked(vehicle);
            }
            Err(error) => found.may_bill.push((vehicle.clone(), error.to_string())),
        }
    }
}

fn words(vehicle: &Vehicle, why: &str) -> String {
    let name = &vehicle.name;
    format!(
        "THE POD MAY BILL: its fuse was armed and its process is gone; {why}. podtether stop --vehicle {name}"
    )
}

/// Nobody reads what a scheduler's program writes: whoever the config names is told.
async fn tell(start: &Start, config: &Config, found: &Found) {
    let now = open::clock().now();
    let is_due = |vehicle: &Vehicle| {
        let told = deadman::told_at(&vehicle.local_log_dir);
        told.is_none_or(|at| now - at >= AGAIN || at > now)
    };
    for (vehicle, why) in found.may_bill.iter().filter(|(vehicle, _)| is_due(vehicle)) {
        // One for each: it takes no more once it was waited for, and what came of a notice is noted.
        let notifier = Notifier::new(config, &start.env, &[]);
        let notice = Notice::of(NoticeKind::StopFailed, &vehicle.name.0, words(vehicle, why));
        let errors = notifier.tell(&notice).await;
        for error in &errors {
            print::note(&format!("podtether: a notice did not get through: {error}"));
        }
        if errors.is_empty()
            && let Err(error) = deadman::note_told(&vehicle.local_log_dir, now)
        {
            print::note(&format!("{}: {error}", vehicle.name));
        }
    }
}

fn show(found: &Found, json: bool) {
    if json {
        let taken_over = found.taken_over.iter();
        let may_bill = found.may_bill.iter();
        let value = json!({
            "taken_over": taken_over.map(|(vehicle, pid)| json!({"vehicle": vehicle, "pid": pid})).collect::<Vec<_>>(),
            "may_bill": may_bill.map(|(vehicle, why)| json!({"vehicle": vehicle.name.0, "why": why})).collect::<Vec<_>>(),
        });
        print::data(&value.to_string());
    } else {
        for (vehicle, pid) in &found.taken_over {
            print::data(&format!("{vehicle}: its process was gone; process {pid} took over"));
        }
    }
    for (vehicle, why) in &found.may_bill {
        print::note(&format!("{}: {}", vehicle.name, words(vehicle, why)));
    }
}
