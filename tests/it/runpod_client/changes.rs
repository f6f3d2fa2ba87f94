//! Changes: what goes out is what was shown, it goes out once, and what the answer is worth.

use super::approved::{POD, create_pod, every_change, send};
use super::server::{Reply, Server};
use super::{AMPLE, ONCE, client, fixture, options};
use podtether::clock::SystemClock;
use podtether::cloud::runpod::RunPod;
use podtether::cloud::{Changed, Cloud, CloudErrorKind};
use podtether::domain::{PodId, PodStatus, VolumeId};
use podtether::plan::Change;

fn stop() -> Change {
    Change::StopPod(PodId(POD.to_owned()))
}

/// Dry run is the same object: method, path and body that were shown are those that arrive.
#[tokio::test]
async fn a_preview_is_the_very_request_that_arrives() {
    for change in every_change(false) {
        let server = Server::start([Reply::plain(204, "")]).await;
        let cloud = client(&server, ONCE);
        let shown = cloud.preview(&change);
        let _ = send(&cloud, &change, None).await;
        let asked = server.asked();
        assert_eq!(asked.len(), 1, "{change:?}");
        assert_eq!((&asked[0].method, &asked[0].target), (&shown.method, &shown.path));
        match shown.body {
            Some(body) => assert_eq!(asked[0].json(), body),
            None => assert!(asked[0].body.is_empty()),
        }
    }
}

#[tokio::test]
async fn a_planned_volume_is_a_placeholder_when_shown_and_its_id_when_sent() {
    let server = Server::start([Reply::json(201, &fixture("pod_created"))]).await;
    let cloud = client(&server, ONCE);
    let change = every_change(true).remove(1);
    let mut shown = cloud.preview(&change).body.unwrap();
    let place = "/mounts/network/0/volumeId";
    assert_eq!(shown.pointer(place).unwrap(), "<id of the new volume \"lts-replication\">");

    let error = send(&cloud, &change, None).await.unwrap_err();
    assert_eq!(error.kind, CloudErrorKind::Validation);
    assert!(!error.may_have_taken_effect());
    assert!(server.asked().is_empty());

    send(&cloud, &change, Some(&VolumeId("nv9e5u2b".into()))).await.unwrap();
    *shown.pointer_mut(place).unwrap() = "nv9e5u2b".into();
    assert_eq!(server.asked()[0].json(), shown);
}

/// B01, B02: nobody knows whether a create whose answer was lost took effect, so it is never sent
/// again; on a new connection and on one that was used before.
#[tokio::test]
async fn a_create_is_not_sent_again_when_its_answer_is_lost() {
    for lost in [
        Reply::Drop,
        Reply::CutOff { status: 201, body: fixture("pod_created") },
        Reply::json(500, r#"{"error":"internal"}"#),
        Reply::plain(502, "<html>"),
        Reply::plain(201, ""),
        Reply::plain(201, "<html>"),
        Reply::json(201, r#"{"id":null}"#),
    ] {
        let shown = format!("{lost:?}");
        let created = Reply::json(201, &fixture("pod_created"));
        let list = Reply::json(200, r#"{"pods":[]}"#);
        let server = Server::start([list, lost, created]).await;
        let cloud = client(&server, AMPLE);
        cloud.pods().await.unwrap();
        let error = send(&cloud, &create_pod(), None).await.unwrap_err();
        assert!(error.may_have_taken_effect(), "{shown}: {error:?}");
        let asked = server.asked();
        assert_eq!(asked.iter().filter(|request| request.method == "POST").count(), 1, "{shown}");
        assert_eq!(asked[1].connection, asked[0].connection, "the connection was not used again");
    }
}

#[tokio::test]
async fn a_change_that_never_left_is_known_to_have_had_no_effect() {
    // Bound and never listening: the port stays taken and every connection is refused.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let base = format!("http://{}", socket.local_addr().unwrap());
    let cloud = RunPod::new(options(&base, ONCE), SystemClock::shared()).unwrap();
    let error = send(&cloud, &create_pod(), None).await.unwrap_err();
    assert_eq!(error.kind, CloudErrorKind::Network { never_sent: true });
    assert!(!error.may_have_taken_effect());
}

/// A09: a rate limit is an answer before the work, so the stop behind it is not given up.
#[tokio::test]
async fn a_rate_limited_change_is_sent_again_unchanged() {
    for change in [create_pod(), stop()] {
        let limited = Reply::json(429, "{}").with_header("retry-after", "1");
        let accepted = Reply::json(200, &fixture("pod_created"));
        let server = Server::start([limited, accepted]).await;
        send(&client(&server, AMPLE), &change, None).await.unwrap();
        let asked = server.asked();
        assert_eq!(asked.len(), 2);
        assert_eq!((&asked[0].target, &asked[0].body), (&asked[1].target, &asked[1].body));
    }
}

/// A04, G14: the answer to an action is no proof, so nothing in it can make it a failure.
#[tokio::test]
async fn whatever_a_lifecycle_call_answers_with_2xx_is_accepted() {
    let changes = every_change(false);
    for change in &changes[2..] {
        for reply in [
            Reply::plain(204, ""),
            Reply::plain(200, ""),
            Reply::plain(200, "OK"),
            Reply::json(200, "{}"),
            Reply::json(200, "[]"),
            Reply::json(200, "null"),
            Reply::json(200, r#"{"id":"another","status":"EXITED"}"#),
        ] {
            let shown = format!("{reply:?}");
            let server = Server::start([reply]).await;
            let result = send(&client(&server, ONCE), change, None).await;
            assert_eq!(result, Ok(Changed::Accepted), "{shown}");
        }
    }
    let page = Server::start([Reply::plain(200, "<html>one moment please</html>")]).await;
    let error = send(&client(&page, ONCE), &stop(), None).await.unwrap_err();
    assert_eq!(error.kind, CloudErrorKind::Edge);

    let body = format!(r#"{{"id":"{POD}","status":"HALTING"}}"#);
    let server = Server::start([Reply::json(200, &body)]).await;
    let Changed::Pod(pod) = send(&client(&server, ONCE), &stop(), None).await.unwrap() else {
        panic!("the answer describes the pod");
    };
    assert_eq!(pod.status, PodStatus::Other("HALTING".into()));
}

/// A08: a stop that is not valid for the pod's status says so, and is not asked again.
#[tokio::test]
async fn a_conflict_is_handed_on_at_once() {
    let body = r#"{"title":"Conflict","status":409,"detail":"action stop is not valid for status EXITED"}"#;
    let server = Server::start([Reply::json(409, body)]).await;
    let error = send(&client(&server, AMPLE), &stop(), None).await.unwrap_err();
    assert_eq!((error.kind, error.status), (CloudErrorKind::Conflict, Some(409)));
    assert_eq!(error.detail, "action stop is not valid for status EXITED");
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn a_create_gives_back_what_was_created() {
    let server = Server::start([
        Reply::json(201, &fixture("network_volume_created")),
        Reply::json(201, &fixture("pod_created")),
        Reply::json(400, &fixture("problem_no_capacity")),
    ])
    .await;
    let cloud = client(&server, AMPLE);
    let changes = every_change(false);
    let Ok(Changed::Volume(volume)) = send(&cloud, &changes[0], None).await else {
        panic!("no volume");
    };
    assert_eq!((volume.id.0.as_str(), volume.size_gb), ("nv9e5u2b", 60));
    let Ok(Changed::Pod(pod)) = send(&cloud, &changes[1], None).await else { panic!("no pod") };
    assert_eq!(pod.id.0, "n2d7s4v6c8");
    assert_eq!(pod.env.get("PODTETHER_NONCE").map(String::as_str), Some("9f2c41d07b"));
    let error = send(&cloud, &changes[1], None).await.unwrap_err();
    assert_eq!(error.kind, CloudErrorKind::NoCapacity);
    assert!(!error.may_have_taken_effect());
}
