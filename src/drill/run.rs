//! The drill from its plan to its receipts. Whatever goes wrong at whatever step, the pod is stopped
//! and read back, or it is said that it may still bill.

use super::at_work::Drill;
use super::net::Net;
use super::pace::Pace;
use super::plan::{DrillPlan, DrillRequest};
use super::report::DrillReport;
use crate::deadman::{self, CallOff, Claim, Seen};
use crate::domain::{UsdPerHour, Vehicle};
use crate::error::Failure;
use crate::ops::{CloudName, Tether, not_armed};
use crate::supervise::Event;
use tokio::sync::mpsc;

/// SIGINT ends the drill in good order, a second one or SIGTERM at once.
type Signals = mpsc::UnboundedReceiver<Event>;

/// Lets every fuse strike that is asked for, and writes what was found.
///
/// # Errors
/// Refusals and whatever keeps the drill from beginning; then nothing was started. What happens later
/// is in the report.
pub async fn run(
    tether: &Tether,
    request: &DrillRequest,
    signals: &mut Signals,
    tell: &mut (dyn FnMut(String) + Send),
) -> Result<DrillReport, Failure> {
    let vehicle = tether.vehicle(Some(&request.vehicle))?;
    let pace = Pace::of(tether.cloud_name() == CloudName::Local, &vehicle);
    let _place = match request.dry_run {
        true => None,
        false => Some(tether.drill_place(&vehicle).await?),
    };
    // From before the pod is read: whoever arms after this may have it run.
    let claim = deadman::last_claim(&vehicle.local_log_dir);
    let (plan, pod) = DrillPlan::draw(tether, &vehicle, request, &pace).await?;
    plan.told().into_iter().for_each(&mut *tell);
    if request.dry_run {
        return Ok(DrillReport::of_plan(plan));
    }
    let rate = UsdPerHour::new(plan.usd_per_hour);
    let net = Net::new(tether, &vehicle, rate)?;
    call_off_the_vehicles_own(tether, &vehicle, claim.as_ref(), tell).await?;
    net.set(pace.step(plan.boots.first().and_then(|boot| boot.fuse)), None).await?;

    let receipts = tether.receipts_to_add_to(&vehicle);
    let with = tether.circumstances(&vehicle, &receipts.salt);
    let mut drill = Drill::new(tether, &vehicle, pace, net, rate, with);
    drill.pod = pod.map(|pod| pod.id);
    let mut report = DrillReport { dry_run: false, ..DrillReport::of_plan(plan) };
    go_through(&mut drill, &mut report, signals, tell).await;

    drill.give_up_unread("the drill ended before", tell);
    if !report.pod_may_still_be_running
        && let Err(failure) = drill.net.cut().await
    {
        report.problems.push(format!("the outer net stays: {}", failure.message));
    }
    report.spent_usd = drill.spent;
    report.fuses.clone_from(&drill.found);
    match tether.keep_receipts(&vehicle, receipts, drill.found) {
        Ok(path) => report.receipts = Some(path),
        Err(error) => report.problems.push(format!("the receipts were not written: {error}")),
    }
    Ok(report.judged())
}

/// A fuse that is armed for a pod that is off has nothing to stop, and would strike in the drill.
async fn call_off_the_vehicles_own(
    tether: &Tether,
    vehicle: &Vehicle,
    claim: Option<&Claim>,
    tell: &mut (dyn FnMut(String) + Send),
) -> Result<(), Failure> {
    if !matches!(
        deadman::look(&vehicle.local_log_dir),
        Seen::Lives(_) | Seen::Lost(_) | Seen::LostUnread(_)
    ) {
        return Ok(());
    }
    let call_off = CallOff::ReadOff { why: "the pod was read as off, and a drill begins", claim };
    let called = deadman::cancel(&vehicle.local_log_dir, call_off, tether.clock()).await;
    called.map_err(|error| not_armed(vehicle, &error))?;
    tell("  the vehicle's own laptop fuse was called off: its pod is off".to_owned());
    Ok(())
}

/// Every boot of the plan; leaves the pod off, or says in the report that it may still bill.
async fn go_through(
    drill: &mut Drill<'_>,
    report: &mut DrillReport,
    signals: &mut Signals,
    tell: &mut (dyn FnMut(String) + Send),
) {
    let boots = report.plan.boots.clone();
    let mut why_ended: Option<String> = None;
    for (number, boot) in boots.iter().enumerate() {
        let would_be = drill.spent.saturating_add(boot.usd);
        if why_ended.is_none() && would_be > report.plan.max_usd {
            why_ended = Some(format!("with this boot it might cost {would_be}, above the cap"));
        }
        if let Some(why) = &why_ended {
            if let Some(fuse) = boot.fuse {
                drill.came_to_nothing(fuse, why.clone());
            }
            continue;
        }
        let name = boot.fuse.map_or("reading", |fuse| fuse.as_str());
        tell(format!("{} of {}: {name}", number + 1, boots.len()));
        let result = tokio::select! {
            biased;
            event = signals.recv() => Err((event.unwrap_or(Event::Leave), None)),
            result = drill.step(boot.fuse, tell) => result.map_err(|f| (Event::Tick, Some(f))),
        };
        let was_on = drill.is_on();
        if let Err((event, failure)) = result {
            let why =
                failure.map_or_else(|| "the drill was ended by a signal".to_owned(), |f| f.message);
            tell(format!("  {name}: {why}"));
            if let Some(fuse) = boot.fuse {
                drill.came_to_nothing(fuse, why.clone());
            }
            drill.give_up_unread(&why, tell);
            if drill.is_foreign || event == Event::Leave {
                // One that was not started yet by anybody is off.
                report.pod_may_still_be_running = drill.is_foreign || was_on;
                why_ended = Some(why);
                continue;
            }
            if event != Event::Tick {
                why_ended = Some(why);
            }
        }
        if !drill.is_on() {
            continue;
        }
        let off = tokio::select! {
            biased;
            () = leave(signals) => Err("told to leave at once".to_owned()),
            off = drill.end_step(boot.fuse) => off,
        };
        match off {
            Ok(said) => tell(format!("  stopped by the drill: {said}")),
            Err(said) => {
                report.pod_may_still_be_running = true;
                report.problems.push(format!("the stop is not confirmed: {said}"));
                why_ended = Some("the pod was not off after the step before".to_owned());
            }
        }
    }
    if report.pod_may_still_be_running {
        return;
    }
    // Once more at the end, whatever was read before.
    match super::off::make_off(drill.tether, drill.vehicle, drill.pod.as_ref()).await {
        Ok(said) => report.stop = Some(said),
        Err(said) => {
            report.pod_may_still_be_running = true;
            report.problems.push(format!("the pod could not be read as off at the end: {said}"));
        }
    }
}

/// Waits for the word to leave at once: in a stop, any further signal is one.
async fn leave(signals: &mut Signals) {
    match signals.recv().await {
        Some(_) => {}
        None => std::future::pending().await,
    }
}
