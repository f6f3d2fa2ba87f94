//! H01: the API key is nowhere in what the server says, also when the provider says it first.

use super::client::{Client, ERAS, Era};
use super::scene::{CONFIG, Scene};
use crate::runpod_client::server::{Asked, Reply, Server};
use base64::Engine as _;
use serde_json::{Value, json};

/// A key with what URLs and JSON spell otherwise.
const KEY: &str = "MARKER/+\"key\"-5f3a";

fn forms() -> Vec<String> {
    let encoded = base64::engine::general_purpose::STANDARD.encode(KEY);
    vec![KEY.into(), "MARKER".into(), "key\\\"-5f3a".into(), "-5f3a".into(), encoded]
}

/// Starts the server against a provider that answers every request with `reply`, and makes the
/// calls; returns everything that was heard.
async fn heard(era: Era, reply: Reply, calls: impl FnOnce(&mut Client)) -> String {
    let provider = Server::start(std::iter::repeat_n(reply, 40)).await;
    let scene = Scene::without_config();
    let config = CONFIG.replace("cloud: local", "cloud: runpod");
    scene.write_config(&config.replace("local:\n  state_dir: cloud\n", ""));
    let mut command = scene.server();
    command.env("RUNPOD_API_KEY", KEY).env("PODTETHER_API_URL", &provider.base);
    command.env("PODTETHER_LOG", "trace");
    let mut client = Client::start(command, era);
    calls(&mut client);
    client.close_stdin();
    client.ended();
    // Else the test would show nothing.
    let was_sent =
        |asked: &Asked| asked.header("authorization").is_some_and(|value| value.contains(KEY));
    assert!(provider.asked().iter().any(was_sent));
    String::from_utf8_lossy(&client.heard()).into_owned()
}

fn is_clean(heard: &str) {
    for form in forms() {
        let around = heard.find(&form).map(|at| {
            let (from, to) = (at.saturating_sub(200), (at + 60).min(heard.len()));
            String::from_utf8_lossy(&heard.as_bytes()[from..to]).into_owned()
        });
        assert_eq!(around, None, "{form}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_the_provider_echoes_is_blanked_everywhere() {
    let problem = json!({
        "title": "Unauthorized",
        "status": 401,
        "detail": format!("Bearer {KEY} is unknown, see https://x/?api_key=MARKER%2F%2B%22key%22-5f3a"),
    });
    let page = std::fs::read_to_string("fixtures/runpod/pods_page_2.json").unwrap();
    let mut page: Value = serde_json::from_str(&page).unwrap();
    page["pods"][0]["name"] = json!(format!("named after {KEY}"));
    page["networkVolumes"] = json!([]);
    for era in ERAS {
        let refused = Reply::json(401, &problem.to_string());
        let text = heard(era, refused, |client| {
            let tools = [
                ("pod_status", json!({})),
                ("stop_pod", json!({"vehicle": "rover"})),
                ("spend_report", json!({})),
                ("gpu_availability", json!({})),
                // Logs that the catalog did not answer, with the provider's words.
                ("ensure_pod", json!({})),
            ];
            for (tool, arguments) in tools {
                let failure = client.fail(tool, arguments);
                assert_eq!(failure["kind"], "auth", "{failure}");
            }
        });
        is_clean(&text.await);
        let listed = Reply::json(200, &page.to_string());
        let text = heard(era, listed, |client| {
            let answer = client.call("pod_status", json!({}));
            assert_eq!(answer["unknown_pods"][0]["name"], "named after [secret]");
        });
        is_clean(&text.await);
    }
}
