//! The pod's watchdog on the local cloud: what it stops, as the cloud itself tells it.

use super::fixture::{Fixture, POD, Request, exec};
use super::supervised::Run;
use podtether::domain::{FuseName, FuseReport, FuseState, Pod, PodId, Vehicle};
use podtether::ops::{EnsureAnswer, RunJobRequest, Tether};
use podtether::pod::watchdog::{StopProof, WatchdogReport, WatchdogState, WatchdogTerms};
use serde_json::json;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

/// So impatient that a test can wait for it. Ensure takes the terms of the config, an hour and five
/// minutes; these replace them.
const SHORT: WatchdogTerms = WatchdogTerms {
    idle: Duration::from_secs(4),
    tick: Duration::from_secs(1),
    deadline: Duration::from_secs(7_200),
};

/// The watchdog, of all the fuses of an answer.
fn fuse(fuses: &[FuseReport]) -> &FuseReport {
    fuses.iter().find(|fuse| fuse.name == FuseName::Watchdog).unwrap()
}

struct Watched {
    fixture: Fixture,
    tether: Tether,
    vehicle: Vehicle,
    answer: EnsureAnswer,
}

impl Watched {
    async fn with_faults(faults: &[&str]) -> Self {
        let fixture = Fixture::new();
        let tether = fixture.tether().await;
        fixture.set_faults(faults).await;
        let answer = fixture.running(&tether).await;
        let vehicle = tether.vehicle(None).unwrap();
        Self { fixture, tether, vehicle, answer }
    }

    fn pod_id(&self) -> String {
        self.answer.pod.as_ref().unwrap().id.0.clone()
    }

    async fn pod(&self) -> Pod {
        self.tether.pod_by_id(&PodId(self.pod_id())).await.unwrap().unwrap()
    }

    async fn arm(&self, terms: WatchdogTerms) -> WatchdogReport {
        self.tether.arm_watchdog(&self.vehicle, &self.pod().await, terms).await.unwrap()
    }

    /// The file of that name in the watchdog's folder on the container disk.
    fn file(&self, name: &str) -> String {
        let disk = self.fixture.state().join("pods").join(self.pod_id()).join("disk");
        fs::read_to_string(disk.join("tmp/podtether/watchdog").join(name)).unwrap_or_default()
    }

    async fn until_exited(&self) {
        self.fixture
            .until("the watchdog's stop", async || self.fixture.status().await == "EXITED")
            .await;
    }

    /// Waits for so many looks that all say `why`, and that the pod runs after them.
    async fn stays(&self, looks: usize, why: &str) {
        let before = self.file("log").matches(why).count();
        self.fixture
            .until(why, async || {
                assert_eq!(self.fixture.status().await, "RUNNING", "{}", self.file("log"));
                self.file("log").matches(why).count() >= before + looks
            })
            .await;
        assert_eq!(self.fixture.status().await, "RUNNING");
    }

    async fn run(&self, command: &str) -> String {
        let request = RunJobRequest {
            name: "job".to_owned(),
            command: command.to_owned(),
            max_runtime_sec: Some(600),
            ..RunJobRequest::default()
        };
        self.tether.run_job(&request).await.unwrap().job_id
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_with_nothing_to_do_is_stopped_by_its_watchdog() {
    let watched = Watched::with_faults(&[]).await;
    let armed = fuse(&watched.answer.fuses);
    assert_eq!(armed.state, FuseState::Armed, "{armed:?}");
    assert!(armed.proof.as_ref().unwrap().contains("key passed a trial stop"), "{armed:?}");
    assert!(armed.why.contains("after 60 min without use; in 1"), "{armed:?}");
    // Three hours of deadline, five minutes between two looks, and the look and stop.
    let bound = 10_700..=10_800 + 300 + 300;
    assert!(bound.contains(&armed.stops_within_sec.unwrap()), "{armed:?}");
    let status = watched.tether.pod_status(None).await.unwrap();
    assert_eq!(fuse(&status.fuses).state, FuseState::Armed, "{status:?}");
    assert_eq!(status.unattended.unwrap().seconds, fuse(&status.fuses).stops_within_sec);
    let report = watched.arm(SHORT).await;
    assert_eq!((report.state, report.proof), (WatchdogState::Armed, StopProof::Write));
    watched.until_exited().await;
    let path = format!("/v2/pods/{}/action", watched.pod_id());
    let is_stop =
        |request: &Request| request.path == path && request.body == json!({"action": "stop"});
    // It is recorded when it was carried out, a moment after the pod is EXITED.
    watched
        .fixture
        .until("the record", async || watched.fixture.requests_of_pods().iter().any(is_stop))
        .await;
    let notices = watched.fixture.volume().join(".podtether/watchdog/notices");
    let notices = fs::read_to_string(notices).unwrap();
    assert!(notices.contains("stop, nobody uses it: idle 0 of 0 min: jobs 0"), "{notices}");
    // A20: the next boot is watched anew, and now it is known that the watchdog can stop this pod.
    let again = watched.fixture.running(&watched.tether).await;
    let proof = fuse(&again.fuses).proof.as_deref();
    assert_eq!(proof, Some("a watchdog of this pod has stopped it before"), "{again:?}");
}

/// E06: also when wrapper and keeper were killed, and with them everything that would have stopped it.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_with_a_live_job_is_kept_until_the_job_is_over() {
    let watched = Watched::with_faults(&["no-runpodctl", "environment-unexported"]).await;
    let id = watched.run("while ! [ -e over ]; do sleep 0.1; done").await;
    watched.arm(SHORT).await;
    watched.stays(8, "jobs 1").await;
    let job = watched.fixture.volume().join("jobs").join(&id);
    let line = fs::read_to_string(job.join("pid")).unwrap();
    let wrapper = line.split(' ').next().unwrap();
    let killed = Command::new("pkill").args(["-KILL", "-g", wrapper]).status().unwrap();
    assert!(killed.success());
    watched.stays(6, "jobs 1").await;
    fs::write(watched.fixture.volume().join("over"), "").unwrap();
    watched.until_exited().await;
    assert!(!job.join("exit_code").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_with_somebody_on_a_terminal_is_kept_and_our_looks_keep_nothing() {
    let watched = Watched::with_faults(&["pod-clock-ahead"]).await;
    let pods = watched.fixture.pods_named(POD).await;
    let port = pods[0]["ssh"]["direct"]["port"].to_string();
    let mut person = Command::new("ssh")
        .args(["-tt", "-F", "none", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR", "-p", &port])
        .args(["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-i"])
        .arg(watched.fixture.path("id_ed25519"))
        .args(["root@127.0.0.1", "sleep 1000"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    watched.arm(SHORT).await;
    watched.stays(8, "terminals 1").await;
    person.kill().unwrap();
    person.wait().unwrap();
    // Looks over SSH go on to the end.
    watched
        .fixture
        .until("the watchdog's stop", async || {
            let _ = watched.tether.pod_status(None).await;
            let _ = watched.tether.exec_on_pod(&exec("true")).await;
            watched.fixture.status().await == "EXITED"
        })
        .await;
}

/// A07, A03: a key that may not write is told at arm time, and a stop that does nothing is tried again.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_path_that_may_not_stop_is_said_to_be_unverified() {
    let watched = Watched::with_faults(&["pod-key-read-only", "pod-clock-behind"]).await;
    let told = fuse(&watched.answer.fuses);
    assert_eq!((told.state, &told.proof), (FuseState::Unproven, &None), "{told:?}");
    let why = &told.why;
    assert!(why.contains("armed (stop path unverified)") && why.contains("403"), "{why}");
    watched.fixture.set_faults(&["pod-key-bound"]).await;
    let report = watched.arm(WatchdogTerms { tick: Duration::from_secs(60), ..SHORT }).await;
    assert_eq!((report.state, report.proof), (WatchdogState::ArmedUnverified, StopProof::Read));
    watched.fixture.set_faults(&["stop-without-effect"]).await;
    assert_eq!(watched.arm(SHORT).await.state, WatchdogState::Armed);
    watched.stays(2, "still here after stop").await;
    let status = watched.tether.pod_status(None).await.unwrap();
    let told = fuse(&status.fuses);
    assert_eq!(told.state, FuseState::Unproven, "what has failed proves nothing: {told:?}");
    assert!(told.why.contains("STOPS FAILED"), "{told:?}");
    watched.fixture.set_faults(&[]).await;
    watched.until_exited().await;
}

/// The environment file is late, or ends in the middle of the key.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_without_its_key_has_a_dead_watchdog_and_a_late_file_has_not() {
    let watched = Watched::with_faults(&["environment-cut"]).await;
    let told = fuse(&watched.answer.fuses);
    assert_eq!(told.state, FuseState::Dead, "{told:?}");
    assert!(told.why.contains("verdict 91"), "{told:?}");
    let watched = Watched::with_faults(&["late-environment=2"]).await;
    assert_eq!(fuse(&watched.answer.fuses).state, FuseState::Armed, "{:?}", watched.answer.fuses);
}

/// C07, both ends of it: what a lease says, and that it is supervise's silence that ends it.
#[tokio::test(flavor = "multi_thread")]
async fn supervise_renews_its_lease_while_it_follows_a_pod_that_it_stops() {
    let watched = Watched::with_faults(&[]).await;
    let left = Run::of(&watched.fixture, "true", &["--no-stop"]).end().await;
    assert_eq!(left.code, 0, "{left:#?}");
    let sessions = watched.fixture.sessions(&watched.pod_id());
    assert!(sessions.iter().all(|one| !one.command.contains("renew_lease.sh")), "{sessions:?}");
    assert_eq!(watched.file("lease"), "");
    let mut run =
        Run::of(&watched.fixture, "sleep 600", &["--max-runtime-sec", "600", "--interval", "1"]);
    run.says("launched").await;
    watched.fixture.until("a lease", async || !watched.file("lease").is_empty()).await;
    let first = watched.file("lease");
    watched.fixture.until("the next one", async || watched.file("lease") != first).await;
    let lease = watched.arm(watched.tether.watchdog_terms(&watched.vehicle)).await.lease_in_sec;
    assert!((800..=900).contains(&lease.unwrap()), "{lease:?}");
}

/// C07: the lease is told back.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_told_to_the_watchdog() {
    let watched = Watched::with_faults(&[]).await;
    let pod = watched.pod().await;
    let report = watched.tether.renew_lease(&watched.vehicle, &pod, Duration::from_secs(900)).await;
    assert!((890..=900).contains(&report.unwrap().lease_in_sec.unwrap()));
}
