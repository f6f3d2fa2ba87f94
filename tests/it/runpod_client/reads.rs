//! Reads: lists, single pods, catalog and bills, and what each class of answer turns into.

use super::server::{Reply, Server};
use super::{AMPLE, KEY, ONCE, client, fixture, options};
use chrono::{DateTime, TimeDelta, Utc};
use podtether::clock::SystemClock;
use podtether::cloud::runpod::{RunPod, RunPodOptions};
use podtether::cloud::{Cloud, CloudErrorKind};
use podtether::domain::{DataCenterId, PodId, PodStatus, Price, Stock, Usd};
use podtether::secret::Secret;
use std::time::{Duration, Instant};

const HTML: &str = "<html><head><title>502 Bad Gateway</title></head></html>";

fn pods_page_1() -> Reply {
    Reply::json(200, &fixture("pods_page_1"))
}

fn pods_page_2() -> Reply {
    Reply::json(200, &fixture("pods_page_2"))
}

/// A10, A09: an answer's status, headers and body become one kind; the edge's pages never speak for
/// the key.
#[tokio::test]
async fn every_class_of_answer_becomes_its_kind() {
    use CloudErrorKind as K;
    let problem = r#"{"title":"T","status":0,"detail":"the API's own words"}"#;
    let limited = |value: &str| Reply::json(429, problem).with_header("Retry-After", value);
    for (reply, kind) in [
        (Reply::json(401, problem), K::Auth),
        (Reply::json(402, problem), K::Balance),
        (Reply::json(403, problem), K::Forbidden),
        (Reply::plain(403, "error code: 1010"), K::Edge),
        (Reply::plain(403, HTML), K::Edge),
        (Reply::json(404, problem), K::NotFound),
        (Reply::json(409, problem), K::Conflict),
        (Reply::json(410, problem), K::Retired),
        (Reply::json(422, problem), K::Validation),
        (Reply::json(400, &fixture("problem_no_capacity")), K::NoCapacity),
        (limited("120"), K::RateLimited(Some(Duration::from_secs(120)))),
        (limited(""), K::RateLimited(None)),
        (limited("soon"), K::RateLimited(None)),
        (
            limited("?").with_header("RateLimit", r#""minute";r=0;t=12"#),
            K::RateLimited(Some(Duration::from_secs(12))),
        ),
        (Reply::json(500, problem), K::Server),
        (Reply::plain(502, HTML), K::Edge),
        (Reply::plain(503, "").with_header("content-type", "text/html"), K::Edge),
        (Reply::plain(200, ""), K::Edge),
        (Reply::plain(200, HTML), K::Edge),
        (Reply::plain(204, ""), K::Edge),
        (Reply::json(200, r#"{"pods":["#), K::Malformed),
        (Reply::json(200, r#"{"message":"hello"}"#), K::Malformed),
        (Reply::json(200, r#"{"pods":[{"name":"no id"}]}"#), K::Malformed),
        (Reply::json(200, r#"{"pods":[null]}"#), K::Malformed),
        (Reply::Drop, K::Network { never_sent: false }),
        (
            Reply::CutOff { status: 200, body: r#"{"pods":[]}"#.into() },
            K::Network { never_sent: false },
        ),
        (Reply::CutOff { status: 401, body: problem.into() }, K::Auth),
    ] {
        let shown = format!("{reply:?}");
        let server = Server::start([reply.with_header("x-request-id", "req-1")]).await;
        let error = client(&server, ONCE).pods().await.unwrap_err();
        assert_eq!(error.kind, kind, "{shown}: {error}");
        assert_eq!(error.tried, "GET /v2/pods", "{shown}");
        assert_eq!(server.asked().len(), 1, "{shown}");
        if shown.contains("x-request-id") {
            assert_eq!(error.request_id.as_deref(), Some("req-1"), "{shown}");
        }
    }
}

/// A10, B06, B07.
#[tokio::test]
async fn the_pod_list_holds_every_page_and_the_pods_of_clusters() {
    let server = Server::start([pods_page_1(), pods_page_2()]).await;
    let pods = client(&server, ONCE).pods().await.unwrap();

    let names: Vec<&str> = pods.iter().map(|pod| pod.name.as_str()).collect();
    assert_eq!(names, ["lts-replication", "lts-replication-bluerov2", "somebody-elses-cluster-0"]);
    assert_eq!(pods.iter().map(|pod| pod.cluster).collect::<Vec<_>>(), [false, false, true]);
    let ours = &pods[0];
    assert_eq!(ours.price, Price::from_decimal("0.69"));
    assert_eq!(ours.ssh.as_ref().unwrap().to_string(), "root@203.0.113.20:17740");
    assert_eq!(ours.started_at.unwrap().timestamp_millis(), 1_783_085_125_682);
    assert_eq!(ours.mounts[0].volume_id.0, "nv4k2r9s");
    // A stopped pod's 0.0 is no price that a start could be judged by.
    assert_eq!((&pods[1].status, pods[1].price), (&PodStatus::Exited, Price::Unknown));
    assert!(pods[1].locked);

    let asked = server.asked();
    let clusters = ("includeClusterPods".to_owned(), "true".to_owned());
    let cursor = ("cursor".to_owned(), "b2Zmc2V0PTE=".to_owned());
    assert_eq!(asked[0].query(), std::slice::from_ref(&clusters));
    assert_eq!(asked[1].query(), [clusters, cursor]);
    for request in &asked {
        let agent = format!("podtether/{}", env!("CARGO_PKG_VERSION"));
        assert_eq!(request.header("user-agent"), Some(agent.as_str()));
        assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
        assert_eq!(request.header("accept-encoding"), None);
        assert!(!request.target.contains(KEY));
    }
}

/// B06: what could not be read to its end is no list.
#[tokio::test]
async fn a_page_that_fails_or_repeats_fails_the_whole_list() {
    let failing = Server::start([pods_page_1(), Reply::json(500, "{}")]).await;
    let error = client(&failing, ONCE).pods().await.unwrap_err();
    assert_eq!(error.kind, CloudErrorKind::Server);

    let repeating = Server::start([pods_page_1(), pods_page_1(), pods_page_2()]).await;
    let error = client(&repeating, AMPLE).pods().await.unwrap_err();
    assert_eq!(error.kind, CloudErrorKind::Malformed);
    assert!(error.detail.contains("repeats"), "{error}");
    assert_eq!(repeating.asked().len(), 2);
}

#[tokio::test]
async fn a_read_outlasts_failures_that_pass_and_counts_nothing_twice() {
    let server = Server::start([
        Reply::Drop,
        pods_page_1(),
        Reply::plain(502, HTML),
        Reply::CutOff { status: 200, body: fixture("pods_page_2") },
        pods_page_2(),
    ])
    .await;
    let pods = client(&server, AMPLE).pods().await.unwrap();
    assert_eq!(pods.len(), 3);
    assert_eq!(server.asked().len(), 5);
}

/// B06.
#[tokio::test]
async fn each_page_is_asked_for_with_its_own_cursor_only() {
    let third = fixture("pods_page_1").replace("b2Zmc2V0PTE=", "b2Zmc2V0PTI=");
    let server = Server::start([pods_page_1(), Reply::json(200, &third), pods_page_2()]).await;
    client(&server, ONCE).pods().await.unwrap();
    let cursors: Vec<String> = server
        .asked()
        .iter()
        .flat_map(|asked| asked.query())
        .filter(|(name, _)| name == "cursor")
        .map(|(_, value)| value)
        .collect();
    assert_eq!(cursors, ["b2Zmc2V0PTE=", "b2Zmc2V0PTI="]);
}

#[tokio::test]
async fn a_pod_that_moves_between_two_pages_is_one_pod() {
    let again = fixture("pods_page_1").replace("true, \"nextCursor\"", "false, \"nextCursor\"");
    assert_ne!(again, fixture("pods_page_1"));
    let server = Server::start([pods_page_1(), Reply::json(200, &again)]).await;
    assert_eq!(client(&server, ONCE).pods().await.unwrap().len(), 1);
}

/// A09: the provider's pause is kept, and one that is too long for the budget is handed on at once.
#[tokio::test]
async fn a_rate_limit_is_waited_out_as_told() {
    let limited = |value| Reply::json(429, "{}").with_header("retry-after", value);
    let server = Server::start([limited("1"), Reply::json(200, r#"{"pods":[]}"#)]).await;
    let start = Instant::now();
    assert!(client(&server, AMPLE).pods().await.unwrap().is_empty());
    assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());

    let server = Server::start([limited("120"), pods_page_2()]).await;
    let start = Instant::now();
    let error = client(&server, AMPLE).pods().await.unwrap_err();
    assert_eq!(error.kind, CloudErrorKind::RateLimited(Some(Duration::from_secs(120))));
    assert!(start.elapsed() < Duration::from_secs(60));
    assert_eq!(server.asked().len(), 1);
}

/// A09: a header that says nothing is not "at once".
#[tokio::test]
async fn a_rate_limit_without_a_usable_header_is_never_asked_again_at_once() {
    let reply = Reply::json(429, "{}").with_header("retry-after", "soon");
    let server = Server::start([reply.clone(), pods_page_2()]).await;
    let start = Instant::now();
    assert_eq!(client(&server, AMPLE).pods().await.unwrap().len(), 2);
    assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
}

/// A05: only the API's own 404 is an answer about the pod, and another pod's answer is none.
#[tokio::test]
async fn a_pod_is_absent_only_when_the_api_says_so() {
    let id = PodId("n2d7s4v6c8".to_owned());
    let read = |reply: Reply| {
        let id = id.clone();
        async move {
            let server = Server::start([reply]).await;
            let result = client(&server, ONCE).pod(&id).await;
            assert_eq!(server.asked()[0].target, "/v2/pods/n2d7s4v6c8");
            result
        }
    };
    let found = read(Reply::json(200, &fixture("pod_created"))).await.unwrap().unwrap();
    assert_eq!((found.status, found.data_center), (PodStatus::Provisioning, None));
    let gone = Reply::json(404, r#"{"title":"Not Found","status":404,"detail":"pod not found"}"#);
    assert_eq!(read(gone).await, Ok(None));
    let kind = |result: Result<_, podtether::cloud::CloudError>| {
        result.map(|_: Option<_>| ()).unwrap_err().kind
    };
    assert_eq!(kind(read(Reply::plain(404, HTML)).await), CloudErrorKind::Edge);
    assert_eq!(kind(read(Reply::plain(404, "404 page not found")).await), CloudErrorKind::Edge);
    let other = fixture("pod_created").replace("n2d7s4v6c8", "another");
    assert_eq!(kind(read(Reply::json(200, &other)).await), CloudErrorKind::Malformed);
}

#[tokio::test]
async fn an_id_that_is_a_path_sends_nothing() {
    let server = Server::start([]).await;
    for id in ["../network-volumes/nv4k2r9s", "a/b", "..", ""] {
        let error = client(&server, AMPLE).pod(&PodId(id.to_owned())).await.unwrap_err();
        assert_eq!(error.kind, CloudErrorKind::Validation, "{id:?}");
    }
    assert!(server.asked().is_empty());
}

/// Prices and times in the styles that were seen live: strings, Go's timestamps.
#[tokio::test]
async fn the_older_styles_of_price_and_time_mean_the_same() {
    let older = fixture("pods_page_1")
        .replace("0.69", "\"0.69\"")
        .replace("2026-07-03T13:25:25.682Z", "2026-07-03 13:25:25.682 +0000 UTC");
    let newer = Server::start([pods_page_1(), pods_page_2()]).await;
    let server = Server::start([Reply::json(200, &older), pods_page_2()]).await;
    let expected = client(&newer, ONCE).pods().await.unwrap();
    assert_eq!(client(&server, ONCE).pods().await.unwrap(), expected);
}

#[tokio::test]
async fn the_catalog_tells_prices_and_stock_of_the_secure_cloud() {
    let server = Server::start([
        Reply::json(200, &fixture("catalog_gpus")),
        Reply::json(200, &fixture("catalog_datacenters")),
        Reply::json(200, &fixture("network_volumes")),
    ])
    .await;
    let cloud = client(&server, ONCE);
    let offers = cloud.gpu_offers(2).await.unwrap();
    assert_eq!(offers[0].price, Price::from_decimal("0.69"));
    assert_eq!((offers[0].stock, offers[0].memory_gb), (Stock::High, Some(24)));
    assert_eq!(offers[0].stock_in(&DataCenterId("US-TX-3".into())), Stock::Low);
    // Quoted at $0.44, and not sold in the secure cloud.
    assert_eq!((offers[1].price, offers[1].stock), (Price::Unknown, Stock::None));

    let centres = cloud.data_centers().await.unwrap();
    let with_volumes: Vec<bool> = centres.iter().map(|centre| centre.has_network_volumes).collect();
    assert_eq!(with_volumes, [true, false]);

    let volumes = cloud.volumes().await.unwrap();
    assert_eq!((volumes[0].id.0.as_str(), volumes[0].size_gb), ("nv4k2r9s", 60));
    assert_eq!(volumes[1].data_center.0, "US-TX-3");

    let mut query = server.asked()[0].query();
    query.sort();
    let expected =
        [("cloud", "SECURE"), ("count", "2"), ("include", "AVAILABILITY"), ("product", "POD")];
    assert_eq!(query, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

/// I04: each span says its own times, so a window that was widened is seen and not counted twice.
#[tokio::test]
async fn bills_are_exact_amounts_with_their_own_spans() {
    let server = Server::start([
        Reply::json(200, &fixture("billing_pods")),
        Reply::json(200, &fixture("billing_network_volumes")),
        Reply::json(200, r#"{"totals":{"totalAmount":0}}"#),
    ])
    .await;
    let cloud = client(&server, ONCE);
    let since: DateTime<Utc> = Utc::now() - TimeDelta::hours(5);
    let pods = cloud.pod_billing(since).await.unwrap();
    let total: Usd = pods.iter().filter_map(|span| span.total).sum();
    assert_eq!(total, Usd::from_micros(1_096_600));
    assert_eq!(pods[0].disk, Some(Usd::from_micros(2_500)));
    assert_eq!(pods[1].start, pods[0].end);

    let volumes = cloud.volume_billing(since).await.unwrap();
    assert_eq!((volumes[0].id.as_str(), volumes[0].disk), ("nv4k2r9s", volumes[0].total));

    // A total of nothing where records should be is not "nothing was billed".
    let error = cloud.pod_billing(since).await.unwrap_err();
    assert_eq!(error.kind, CloudErrorKind::Malformed);

    let asked = server.asked();
    assert_eq!(asked[0].path(), "/v2/billing/pods");
    assert_eq!(asked[1].path(), "/v2/billing/network-volumes");
    let query = asked[0].query();
    assert_eq!(query[1], ("bucketSize".to_owned(), "hour".to_owned()));
    assert_eq!(query[0].1.parse::<DateTime<Utc>>().unwrap().timestamp(), since.timestamp());
}

/// A redirect would carry the key to wherever it points.
#[tokio::test]
async fn a_redirect_is_never_followed() {
    let elsewhere = Server::start([pods_page_2()]).await;
    let target = format!("{}/v2/pods", elsewhere.base);
    let server = Server::start([Reply::plain(307, "").with_header("location", &target)]).await;
    let error = client(&server, ONCE).pods().await.unwrap_err();
    assert_eq!((error.kind, error.status), (CloudErrorKind::Edge, Some(307)));
    assert!(elsewhere.asked().is_empty());
}

/// H01: a server that echoes what it was sent does not put the key into an error.
#[tokio::test]
async fn an_echoed_key_is_blanked() {
    let body = format!(r#"{{"detail":"bad header: Bearer {KEY}"}}"#);
    let server = Server::start([Reply::json(401, &body)]).await;
    let error = client(&server, ONCE).pods().await.unwrap_err();
    assert_eq!(error.detail, "bad header: Bearer [secret]");
    assert!(!format!("{error:?}").contains(KEY));
}

#[tokio::test]
async fn a_body_without_end_is_not_read_to_its_end() {
    let body = format!(r#"{{"pods":[],"x":"{}"}}"#, "x".repeat(17 * 1024 * 1024));
    let server = Server::start([Reply::json(200, &body)]).await;
    let error = client(&server, ONCE).pods().await.unwrap_err();
    assert_eq!(error.kind, CloudErrorKind::Malformed);
    assert!(error.detail.contains("16 MiB"), "{error}");
}

#[tokio::test]
async fn silence_ends_at_the_time_limit() {
    let server = Server::start([Reply::Silence]).await;
    let options =
        RunPodOptions { timeout: Duration::from_millis(200), ..options(&server.base, ONCE) };
    let cloud = RunPod::new(options, SystemClock::shared()).unwrap();
    let error = cloud.pods().await.unwrap_err();
    assert_eq!(error.kind, CloudErrorKind::Network { never_sent: false });
    assert!(error.detail.starts_with("no answer in time"), "{error}");
}

#[tokio::test]
async fn a_local_client_says_that_it_is_one() {
    let server = Server::start([Reply::json(200, r#"{"pods":[]}"#)]).await;
    let key = Secret::new("local-0123456789").unwrap();
    let cloud =
        RunPod::new(RunPodOptions::local(&server.base, key), SystemClock::shared()).unwrap();
    assert!(cloud.is_local());
    assert_eq!(cloud.pods().await, Ok(Vec::new()));
    assert!(!client(&server, ONCE).is_local());
}

/// The demo runs in a bare container: plain HTTP on loopback asks for no certificates.
#[test]
fn the_local_cloud_needs_no_certificates_on_the_machine() {
    let this = std::env::current_exe().unwrap();
    let output = std::process::Command::new(this)
        .args(["--exact", "runpod_client::reads::a_local_client_says_that_it_is_one"])
        .envs([("SSL_CERT_FILE", "/nowhere/cert.pem"), ("SSL_CERT_DIR", "/nowhere")])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
