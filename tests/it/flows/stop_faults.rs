//! A stop under everything the provider is known to do: each has its own right behaviour, its own
//! words and its own number of requests.

use super::fixture::{Fixture, POD, QUICK, Request, VEHICLE};
use podtether::apply::{OffSettings, Settings};
use podtether::error::{FailureKind, StillBilling};
use podtether::ops::{Grade, StopAnswer, StopStatus, Tether};
use serde_json::json;
use std::time::Duration;

/// A stop that gives up soon.
const SHORT: Settings = Settings {
    off: OffSettings {
        budget: Duration::from_millis(1500),
        read_every: Duration::from_millis(50),
        ask_again_after: Duration::from_millis(300),
    },
    ..QUICK
};

struct Scene {
    fixture: Fixture,
    tether: Tether,
    pod: String,
}

impl Scene {
    async fn new() -> Self {
        let fixture = Fixture::new();
        let tether = fixture.tether().await.with_settings(SHORT);
        let pod = fixture.running(&tether).await.pod.unwrap().id.0;
        Self { fixture, tether, pod }
    }

    /// A stop of the running pod with these faults, and the requests that it made.
    async fn stop(&self, faults: &[&str]) -> (StopAnswer, Vec<Request>) {
        self.fixture.set_faults(&[]).await;
        if self.fixture.status().await == "EXITED" {
            self.act("start").await;
        }
        self.fixture
            .until("a running pod", async || self.fixture.status().await == "RUNNING")
            .await;
        self.stop_as_it_is(faults).await
    }

    async fn stop_as_it_is(&self, faults: &[&str]) -> (StopAnswer, Vec<Request>) {
        self.fixture.set_faults(faults).await;
        let before = self.fixture.requests().len();
        let answer = self.tether.stop_pod(VEHICLE).await.unwrap();
        let requests = self.fixture.requests().split_off(before);
        self.fixture.set_faults(&[]).await;
        (answer, requests)
    }

    async fn act(&self, action: &str) {
        let path = format!("/v2/pods/{}/action", self.pod);
        self.fixture.api("POST", &path, Some(json!({"action": action}))).await;
    }
}

fn stops(requests: &[Request]) -> usize {
    requests.iter().filter(|request| request.body["action"] == "stop").count()
}

/// A02, A07, A08, A09, A10, I09: what stands in the way for good is said at once, in words that tell
/// what a person has to do, and is not repeated.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_that_only_a_person_can_finish_is_asked_once_and_says_why() {
    let scene = Scene::new().await;
    for (fault, words) in [
        ("status-error", "status ERROR and cannot be stopped, only terminated"),
        ("locked", "locked: unlock it in the RunPod console"),
        ("revoked-key", "does not accept the API key"),
        ("read-only-key", "the API key may not stop this pod"),
        ("retired@on:stop", "this version of the provider's API is gone"),
        ("stop-refused", "the provider refuses to stop this pod"),
    ] {
        let (answer, requests) = scene.stop(&[fault]).await;
        assert_eq!(answer.status, StopStatus::StopUnconfirmed, "{fault}: {answer:?}");
        let message = &answer.message;
        for said in [words, "MAY STILL BILL", &scene.pod, "asked once", "it said: "] {
            assert!(message.contains(said), "{fault}: no {said:?} in {message}");
        }
        assert_eq!((answer.asked, stops(&requests)), (1, 1), "{fault}");
        assert!(answer.needs_a_person, "{fault}");
        let of_pod = requests.iter().filter(|request| request.path.ends_with(&scene.pod)).count();
        assert_eq!(of_pod, 1, "{fault}: one read tells what there is to tell: {requests:?}");
        assert_eq!(scene.fixture.status().await, "RUNNING", "{fault}");
    }
}

/// A01, A04, A05, A08, A10, B06, B07, E16: what passes is outlived, and EXITED is read before the word
/// "stopped" is said. The number is that of the requests to stop.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_outlives_what_passes() {
    let scene = Scene::new().await;
    for (faults, asked) in [
        (&["not-found=1@on:stop"][..], 2),
        (&["not-found=2@on:get"], 1),
        (&["edge-html=1@on:stop"], 2),
        (&["edge-1010=1@on:stop"], 2),
        (&["empty-reply=1@on:stop"], 1),
        (&["reply-lost=1@on:stop"], 1),
        (&["request-lost=2@on:stop"], 3),
        (&["error-after-effect=1@on:stop"], 1),
        (&["rate-limited=1@on:stop"], 2),
        (&["rate-limited-bare=1@on:stop"], 2),
        (&["stop-without-effect=1", "edge-html=1@on:get"], 2),
        (&["reply-delayed=1@on:stop"], 1),
        (&["status-unknown"], 1),
        (&["second-page"], 1),
        // No rule and no nonsense stands in the way of a stop.
        (&["stranger", "cluster-pod"], 1),
        (&["price-zero"], 1),
        (&["price-nan", "clock-ahead"], 1),
        (&["clock-behind=100000"], 1),
    ] {
        let (answer, requests) = scene.stop(faults).await;
        assert_eq!(answer.status, StopStatus::Stopped, "{faults:?}: {answer:?}");
        assert_eq!(stops(&requests), asked, "{faults:?}: {answer:?}");
        assert!(answer.message.contains("EXITED was read back"), "{faults:?}: {}", answer.message);
        assert_eq!(scene.fixture.status().await, "EXITED", "{faults:?}");
    }
}

/// A08: the third cause of a 409. Somebody else was faster; nothing bills and nobody is alarmed.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_of_a_pod_that_was_stopped_meanwhile_is_no_failure() {
    let scene = Scene::new().await;
    scene.act("stop").await;
    let (answer, requests) = scene.stop_as_it_is(&["stale-status"]).await;
    assert_eq!(answer.status, StopStatus::AlreadyStopped, "{answer:?}");
    assert!(answer.message.contains("stopped before") && answer.message.contains("409"));
    assert_eq!((answer.observed.as_deref(), stops(&requests)), (Some("EXITED"), 1));
    assert_eq!(requests.iter().find(|it| it.body["action"] == "stop").unwrap().status, Some(409));
}

/// B02: a second pod of the name is asked to stop too, and one that is not there holds up nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_stops_every_pod_of_the_name() {
    let scene = Scene::new().await;
    let (answer, _) = scene.stop(&["duplicate=1"]).await;
    assert_eq!((answer.status, answer.pods.len()), (StopStatus::Stopped, 2), "{answer:?}");
    assert_eq!(scene.fixture.pods_named(POD).await[0]["status"], "EXITED");
}

/// A09: two minutes of quiet are two minutes: no request to stop, hardly a read, and the words say
/// when to come back. What was asked for is not given up.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_rate_limit_is_obeyed_and_told() {
    let scene = Scene::new().await;
    let (answer, requests) = scene.stop(&["rate-limited-long=1@on:stop"]).await;
    assert_eq!(answer.status, StopStatus::StopUnconfirmed, "{answer:?}");
    assert!(answer.message.contains("asks to wait 120 s"), "{}", answer.message);
    assert!(answer.message.contains("last read RUNNING"), "{}", answer.message);
    assert!(!answer.needs_a_person);
    let of_pod = requests.iter().filter(|request| request.path.ends_with(&scene.pod)).count();
    assert_eq!((stops(&requests), of_pod), (1, 2), "{requests:?}");
}

/// A09, A10: what stays in the way to the end is told in its own words: an edge that answers in HTML or
/// with 1010 says nothing about the key, a 404 nothing about the pod, and nobody is asked too often.
#[tokio::test(flavor = "multi_thread")]
async fn what_stays_in_the_way_is_told_in_its_own_words() {
    let scene = Scene::new().await;
    for (fault, words) in [
        ("edge-1010=99@on:stop", "says nothing about the key"),
        ("edge-html=99@on:stop", "says nothing about the key"),
        ("not-found=99@on:stop", "which is no proof that it is gone"),
        ("rate-limited-bare=99@on:stop", "asks to slow down and does not say for how long"),
        ("request-lost=99@on:stop", "could not be reached"),
    ] {
        let (answer, requests) = scene.stop(&[fault]).await;
        assert_eq!(answer.status, StopStatus::StopUnconfirmed, "{fault}: {answer:?}");
        assert_eq!(answer.grade, Grade::Asked, "{fault}");
        let message = &answer.message;
        assert!(
            message.contains(words) && message.contains("MAY STILL BILL"),
            "{fault}: {message}"
        );
        assert!(!message.contains("may not") && !message.contains("accept"), "{fault}: {message}");
        assert!(!answer.needs_a_person, "{fault}: what passes is asked again");
        assert!(stops(&requests) >= 2, "{fault}: {answer:?}");
        // Every request and every read of one round, and no more than the budget has room for.
        assert!(requests.len() < 60, "{fault}: {}", requests.len());
        assert_eq!(scene.fixture.status().await, "RUNNING", "{fault}");
    }
}

/// A02: a key that may not even read. Nothing is known, and nothing is called stopped.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_that_cannot_read_says_that_it_knows_nothing() {
    let scene = Scene::new().await;
    for (fault, kind) in [
        ("revoked-key@on:any", FailureKind::Auth),
        ("read-only-key@on:any", FailureKind::Forbidden),
        ("retired", FailureKind::ApiRetired),
    ] {
        scene.fixture.set_faults(&[fault]).await;
        let before = scene.fixture.requests().len();
        let failure = scene.tether.stop_pod(VEHICLE).await.unwrap_err();
        assert_eq!((failure.kind, failure.still_billing), (kind, StillBilling::Unknown), "{fault}");
        assert!(failure.hint.contains("RunPod console"), "{fault}: {failure}");
        assert!(!failure.to_string().to_lowercase().contains("stopped"), "{fault}: {failure}");
        let requests = scene.fixture.requests().split_off(before);
        // The list, and the pod that the journal knows.
        assert_eq!((requests.len(), stops(&requests)), (2, 0), "{fault}: it is not hammered");
    }
    scene.fixture.set_faults(&[]).await;
    assert_eq!(scene.fixture.status().await, "RUNNING");
}

/// A01: the provider is away for a while and comes back. The stop waits for it and is then the one
/// that was asked for, once.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_outlives_a_provider_that_is_away_for_a_while() {
    let mut fixture = Fixture::with_daemon();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    fixture.daemon().kill();
    let stop = tether.stop_pod(VEHICLE);
    tokio::pin!(stop);
    let soon = tokio::time::timeout(Duration::from_secs(1), &mut stop).await;
    assert!(soon.is_err(), "nothing is known without the provider: {soon:?}");
    fixture.daemon().start_again();
    let answer = stop.await.unwrap();
    assert_eq!((answer.status, answer.asked), (StopStatus::Stopped, 1), "{answer:?}");
    assert_eq!(stops(&fixture.requests()), 1);
    assert_eq!(fixture.status().await, "EXITED");
}
