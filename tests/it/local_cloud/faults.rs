//! Each fault does what its name says.

use super::rig::{Rig, finish};
use serde_json::json;

/// B01, B02: the answer of a create is lost and the pod exists.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_create_reply_leaves_a_pod() {
    let rig = Rig::start(&["create-reply-lost"]).await;
    let (key, body) = (rig.cloud.key.reveal(), rig.create_body(None));
    let lost = rig.request(key, "POST", "/v2/pods", Some(body)).await;
    let error = lost.unwrap_err();
    assert!(error.is_request() && error.status().is_none(), "{error:?}");
    let (_, list) = rig.api("GET", "/v2/pods", None).await;
    assert_eq!(list["pods"][0]["env"]["PODTETHER_NONCE"], "n1");
    rig.pod(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_does_what_it_says() {
    let rig = Rig::start(&["no-capacity"]).await;
    let (status, problem) = rig.api("POST", "/v2/pods", Some(rig.create_body(None))).await;
    assert_eq!(status, 400);
    let detail = problem["detail"].as_str().unwrap().to_lowercase();
    assert!(detail.contains("no longer any instances available"), "{detail}");

    rig.set_faults(&["slow-boot=600"]).await;
    let (_, pod) = rig.api("POST", "/v2/pods", Some(rig.create_body(None))).await;
    let slow = pod["id"].as_str().unwrap().to_owned();
    rig.until(&slow, |pod| pod["status"] == "STARTING").await;
    rig.set_faults(&[]).await;
    let (id, _) = rig.pod(None).await;
    let (_, pod) = rig.api("GET", &format!("/v2/pods/{slow}"), None).await;
    assert_eq!(pod["status"], "STARTING", "a later pod has overtaken it");
    let (status, pod) = rig.act(&slow, "stop").await;
    assert_eq!((status, &pod["status"]), (200, &json!("EXITED")));

    // A04: 200 and nothing happens.
    rig.set_faults(&["stop-without-effect=2"]).await;
    for expected in ["RUNNING", "RUNNING", "EXITED"] {
        assert_eq!(rig.act(&id, "stop").await.0, 200);
        let (_, pod) = rig.api("GET", &format!("/v2/pods/{id}"), None).await;
        assert_eq!(pod["status"], expected);
    }

    // A09: too many requests.
    rig.set_faults(&["rate-limited=2"]).await;
    for expected in [429, 429, 200] {
        assert_eq!(rig.api("GET", "/v2/pods", None).await.0, expected);
    }
    let url = format!("{}/v2/pods", rig.cloud.url);
    rig.set_faults(&["rate-limited=3"]).await;
    let key = rig.cloud.key.reveal();
    let answer = rig.client.get(url).bearer_auth(key).send().await.unwrap();
    assert_eq!(answer.headers()["retry-after"], "1");
    assert_eq!(answer.headers()["ratelimit"], "\"minute\";r=0;t=1");

    let body = json!({"faults": ["slowboot"]});
    let (status, problem) = rig.api("PUT", "/_local/faults", Some(body)).await;
    assert_eq!(status, 400);
    assert!(problem["detail"].as_str().unwrap().contains("slow-boot"), "{problem}");
}

/// A05, A07, A10, B01, F01, I09: what else the provider has been seen to do.
#[tokio::test(flavor = "multi_thread")]
async fn each_further_fault_does_what_it_says() {
    let rig = Rig::start(&[]).await;
    let volume = rig.volume().await;
    let list = || async { rig.api("GET", "/v2/pods", None).await };

    for (fault, status) in
        [("edge-html=1", 502), ("edge-1010=1", 403), ("retired=1", 410), ("empty-reply=1", 200)]
    {
        rig.set_faults(&[fault]).await;
        let (found, body) = list().await;
        assert_eq!(found, status, "{fault}");
        assert_eq!(body.get("detail").is_some(), fault == "retired=1", "{fault}: {body}");
        assert!(body.get("pods").is_none(), "{fault}");
        assert_eq!(list().await.0, 200, "{fault} is over");
    }

    rig.set_faults(&["create-error-after-effect=1"]).await;
    let (status, _) = rig.api("POST", "/v2/pods", Some(rig.create_body(None))).await;
    assert_eq!(status, 500);
    let (_, pods) = list().await;
    let orphan = pods["pods"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(rig.api("DELETE", &format!("/v2/pods/{orphan}"), None).await.0, 204);

    rig.set_faults(&["list-lag=600", "never-boots"]).await;
    let (_, pod) = rig.api("POST", "/v2/pods", Some(rig.create_body(None))).await;
    let path = format!("/v2/pods/{}", pod["id"].as_str().unwrap());
    assert_eq!(rig.api("GET", &path, None).await.0, 404);
    assert_eq!(list().await.1["pods"], json!([]));
    rig.set_faults(&["never-boots"]).await;
    assert_eq!(rig.api("GET", &path, None).await.0, 200);
    rig.until(pod["id"].as_str().unwrap(), |pod| pod["status"] == "STARTING").await;

    rig.set_faults(&["old-driver=1", "late-environment=4"]).await;
    let (id, port) = rig.pod(Some(&volume)).await;
    let probe = "test -e $PODTETHER_RP_ENVIRONMENT && echo there || echo missing";
    assert_eq!(rig.run(port, probe).await, "missing");
    let wait = "until test -e $PODTETHER_RP_ENVIRONMENT; do sleep 0.05; done; echo there";
    assert_eq!(rig.run(port, wait).await, "there");
    let driver = "nvidia-smi --query-gpu=driver_version --format=csv,noheader";
    assert_eq!(rig.run(port, driver).await, "525.60.13");

    rig.set_faults(&["read-only-key=1"]).await;
    assert_eq!(rig.act(&id, "stop").await.0, 403);
    rig.set_faults(&["stop-refused=1"]).await;
    let (status, problem) = rig.act(&id, "stop").await;
    assert_eq!(status, 400);
    assert!(problem["detail"].as_str().unwrap().contains("cannot be stopped"), "{problem}");
    assert_eq!(rig.act(&id, "stop").await.0, 200);

    rig.set_faults(&["stale-port=1", "zero-gpus"]).await;
    rig.act(&id, "start").await;
    assert_eq!(rig.reachable(&id).await, port, "the first read still has the old port");
    let next = rig.reachable(&id).await;
    assert_ne!(next, port);
    let smi = finish(rig.ssh(next, "nvidia-smi")).await;
    assert_eq!((smi.status.code(), &smi.stdout[..]), (Some(6), &b"No devices were found\n"[..]));
}
