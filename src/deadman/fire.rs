//! One ask of a fuse that fires: the pods of the vehicle's name, through plan, guard and apply, with
//! nothing but the provider and a key. A pod of another name is never touched.

use super::state::{Asked, Form};
use crate::apply::{self, OffOutcome, OffSettings, Ports, Settings, StepOutcome};
use crate::clock::Clock;
use crate::cloud::{Cloud, CloudError, CloudErrorKind};
use crate::domain::{Limits, Pod, PodId, PodStatus, Vehicle, VehicleName};
use crate::guard::review;
use crate::plan::{self, Facts};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One ask, as the summary keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// When it began, UTC.
    pub at: DateTime<Utc>,
    /// `graceful` or `forced`.
    pub form: String,
    /// What it came to.
    pub result: String,
    /// How often the provider was asked to stop a pod in it.
    pub asked: u32,
    /// The status that was read last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// In words.
    pub message: String,
}

/// Whose pod is stopped.
pub(super) struct Target {
    vehicle: Vehicle,
    /// The ids that are known: the one that was armed for, and those that carried the name.
    pub ids: Vec<PodId>,
}

impl Target {
    pub fn new(vehicle: &str, pod_name: &str, id: Option<PodId>) -> Self {
        let vehicle = Vehicle::of_pod_name(VehicleName(vehicle.to_owned()), pod_name.to_owned());
        Self { vehicle, ids: id.into_iter().collect() }
    }

    fn name(&self) -> &str {
        &self.vehicle.pod_name
    }
}

/// How long one ask reads back. In time, not in tries.
const OFF: OffSettings = OffSettings {
    budget: Duration::from_secs(60),
    read_every: Duration::from_secs(1),
    ask_again_after: Duration::from_secs(8),
};
/// How many lists it takes to say that a pod is not there (A05).
const LOOKS: u32 = 3;

/// What was found before anything was asked.
enum Found {
    Pods(Vec<Pod>),
    Absent,
    NotOurs(Box<Pod>),
}

/// Asks the pod off the bill and reads it back.
pub(super) async fn ask(
    cloud: &dyn Cloud,
    clock: &dyn Clock,
    target: &mut Target,
    form: Form,
) -> (Asked, Attempt) {
    let mut attempt = Attempt {
        at: clock.now(),
        form: match form {
            Form::Graceful => "graceful".to_owned(),
            Form::Forced => "forced".to_owned(),
        },
        result: String::new(),
        asked: 0,
        status: None,
        message: String::new(),
    };
    let found = match form {
        Form::Forced if !target.ids.is_empty() => by_id(cloud, target).await,
        _ => by_list(cloud, target).await,
    };
    let (asked, message) = match found {
        Err(error) => of_error(&error),
        Ok(Found::Absent) => {
            attempt.status = Some("no_pod".to_owned());
            (Asked::Absent, format!("the account shows no pod named {:?}", target.name()))
        }
        Ok(Found::NotOurs(pod)) => (
            Asked::NotOurs,
            format!(
                "pod {} is named {:?} now, which is not vehicle {}'s, and no pod is named {:?}: left alone, it may bill ({})",
                pod.id,
                pod.name,
                target.vehicle.name,
                target.name(),
                pod.status
            ),
        ),
        Ok(Found::Pods(pods)) => stop(cloud, clock, target, pods, &mut attempt).await,
    };
    attempt.result = word(asked).to_owned();
    attempt.message = message;
    (asked, attempt)
}

const fn word(asked: Asked) -> &'static str {
    match asked {
        Asked::Off => "off",
        Asked::Absent => "absent",
        Asked::NotOurs => "not_ours",
        Asked::Unreachable { .. } => "unreachable",
        Asked::Refused => "refused",
        Asked::NoEffect => "no_effect",
    }
}

/// What a failure says: whether anybody answered who could know.
fn of_error(error: &CloudError) -> (Asked, String) {
    let asked = match &error.kind {
        CloudErrorKind::RateLimited(wait) => Asked::Unreachable { wait: *wait },
        _ if error.is_transient() => Asked::Unreachable { wait: None },
        _ => Asked::Refused,
    };
    (asked, error.to_string())
}

async fn by_list(cloud: &dyn Cloud, target: &mut Target) -> Result<Found, CloudError> {
    for look in 0..LOOKS {
        if look > 0 {
            tokio::time::sleep(OFF.read_every).await;
        }
        let pods = cloud.pods().await?;
        let listed = ours(target, pods);
        if !listed.is_empty() {
            return Ok(read_again(cloud, target, listed).await);
        }
    }
    by_id(cloud, target).await
}

/// A05: a list that shows a pod off may be old; each such pod is read by its id as well. One that is
/// known and not listed, or cannot be read, is asked to stop all the same: doubt means yes.
async fn read_again(cloud: &dyn Cloud, target: &mut Target, listed: Vec<Pod>) -> Found {
    let (mut pods, mut renamed) = (Vec::new(), None);
    let unlisted = target.ids.iter().filter(|id| listed.iter().all(|pod| pod.id != **id));
    for id in unlisted.cloned().collect::<Vec<_>>() {
        if let Ok(Some(pod)) = cloud.pod(&id).await
            && pod.name == target.name()
        {
            pods.push(doubted(pod));
        }
    }
    for pod in listed {
        if pod.status.bills_compute() {
            pods.push(pod);
            continue;
        }
        match cloud.pod(&pod.id).await {
            Ok(Some(now)) if now.name == target.name() => pods.push(now),
            Ok(Some(other)) => renamed = Some(other),
            Ok(None) | Err(_) => pods.push(doubted(pod)),
        }
    }
    match renamed.filter(|_| pods.is_empty()) {
        Some(pod) => Found::NotOurs(Box::new(pod)),
        None => Found::Pods(pods),
    }
}

/// A pod that only one answer shows off counts as one that may run.
fn doubted(mut pod: Pod) -> Pod {
    if !pod.status.bills_compute() && !pod.is_deleted() {
        pod.status = PodStatus::Other(DOUBTED.to_owned());
    }
    pod
}

/// The status of a pod that one answer alone shows off.
const DOUBTED: &str = "UNREAD";

/// Past the list, which may not show them. What one answer shows off is asked to stop all the same.
async fn by_id(cloud: &dyn Cloud, target: &mut Target) -> Result<Found, CloudError> {
    let (mut pods, mut missing) = (Vec::new(), Vec::new());
    for id in target.ids.clone() {
        match cloud.pod(&id).await? {
            Some(pod) => pods.push(pod),
            None => missing.push(id),
        }
    }
    // A 404 beside a pod that is there would pass unseen once that one is stopped.
    if !pods.is_empty() && !missing.is_empty() {
        let listed = cloud.pods().await?;
        pods.extend(listed.into_iter().filter(|pod| missing.contains(&pod.id)));
    }
    let renamed = pods.iter().find(|pod| pod.name != target.name() && !pod.is_deleted()).cloned();
    let ours: Vec<Pod> = ours(target, pods).into_iter().map(doubted).collect();
    Ok(match (ours.is_empty(), renamed) {
        (false, _) => Found::Pods(ours),
        (true, Some(pod)) => Found::NotOurs(Box::new(pod)),
        (true, None) => Found::Absent,
    })
}

fn ours(target: &mut Target, mut pods: Vec<Pod>) -> Vec<Pod> {
    pods.retain(|pod| pod.name == target.name() && !pod.is_deleted());
    for pod in &pods {
        if !target.ids.contains(&pod.id) {
            target.ids.push(pod.id.clone());
        }
    }
    pods
}

/// Plan, guard, apply.
async fn stop(
    cloud: &dyn Cloud,
    clock: &dyn Clock,
    target: &Target,
    pods: Vec<Pod>,
    attempt: &mut Attempt,
) -> (Asked, String) {
    let vehicle = &target.vehicle;
    attempt.status = pods.first().map(|pod| pod.status.to_string());
    let facts = Facts::of_pods(pods, vec![(vehicle.name.clone(), vehicle.pod_name.clone())]);
    let settings = Settings { off: OFF, ..Settings::default() };
    // Without a journal: a stop needs none, and one that is locked or full must not hold it up.
    let ports = Ports { cloud, shell: None, clock, notes: None, settings };
    let approved = match review(plan::stop(vehicle, true, &facts), &facts, &Limits::default()) {
        Ok(approved) => approved,
        Err(refusals) => {
            let words: Vec<String> = refusals.iter().map(ToString::to_string).collect();
            return (Asked::Refused, format!("the guard refused: {}", words.join("; ")));
        }
    };
    if approved.steps().is_empty() {
        return (Asked::Off, "it was off the bill before".to_owned());
    }
    let outcomes = match apply::apply(&approved, &ports).await {
        Ok(outcomes) => outcomes,
        Err(error) => return (Asked::Refused, error.to_string()),
    };
    let offs: Vec<&OffOutcome> = outcomes.iter().filter_map(StepOutcome::off).collect();
    attempt.asked = offs.iter().map(|off| off.asked).sum();
    let Some(off) = offs.iter().find(|off| !off.confirmed).or(offs.last()) else {
        return (Asked::NoEffect, "nothing was asked".to_owned());
    };
    if off.observed_at.is_some() {
        attempt.status =
            Some(off.observed.as_ref().map_or("not listed".into(), ToString::to_string));
    }
    if off.confirmed {
        let read = attempt.status.as_deref().unwrap_or("gone");
        return (Asked::Off, format!("pod {}: {read} was read back", off.pod));
    }
    match (&off.blocked, &off.error) {
        (Some(why), _) => (Asked::Refused, format!("pod {}: {why}", off.pod)),
        (None, Some(error)) => of_error(error),
        (None, None) => {
            let read = attempt.status.as_deref().unwrap_or("unknown");
            (Asked::NoEffect, format!("pod {}: asked and accepted, but it is {read}", off.pod))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::cloud::scripted::{Look, Scripted};
    use crate::domain::sample;

    fn shows(status: &str) -> Look {
        Ok(vec![Pod { status: status.into(), ..sample::pod() }])
    }

    async fn asked(lists: Vec<Look>, pages: Vec<Look>, form: Form) -> (Asked, usize) {
        let cloud = Scripted::new(lists, pages);
        let pod = sample::pod();
        let mut target = Target::new("hippocampus", &pod.name, Some(pod.id));
        let (asked, _) = ask(&cloud, &SystemClock::default(), &mut target, form).await;
        (asked, cloud.sent())
    }

    /// A05: what a list alone shows off, or one page alone, may be old. It is asked to stop.
    #[tokio::test]
    async fn one_answer_alone_takes_no_pod_off_the_bill() {
        let (lists, pages) = (vec![shows("EXITED")], vec![shows("RUNNING"), shows("EXITED")]);
        assert_eq!(asked(lists, pages, Form::Graceful).await, (Asked::Off, 1));
        let (lists, pages) = (vec![shows("EXITED")], vec![Ok(vec![]), shows("EXITED")]);
        assert_eq!(asked(lists, pages, Form::Graceful).await, (Asked::Off, 1));
        let pages = vec![shows("EXITED")];
        assert_eq!(asked(vec![], pages, Form::Forced).await, (Asked::Off, 1));
        // Two that agree are believed.
        let (lists, pages) = (vec![shows("EXITED")], vec![shows("EXITED")]);
        assert_eq!(asked(lists, pages, Form::Graceful).await, (Asked::Off, 0));
    }

    /// B08: the list may be older than the name that somebody gave it.
    #[tokio::test]
    async fn a_pod_that_its_own_page_shows_renamed_is_left_alone() {
        let renamed = Ok(vec![Pod { name: "stranger".into(), ..sample::pod() }]);
        let (lists, pages) = (vec![shows("EXITED")], vec![renamed]);
        assert_eq!(asked(lists, pages, Form::Graceful).await, (Asked::NotOurs, 0));
    }
}
