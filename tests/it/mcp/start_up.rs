//! A server that cannot work yet: it starts, lists its tools, and says at the first call what is
//! wrong. Clients show a server that does not start as a red dot and nothing else (G02).

use super::client::{Client, ERAS, Era};
use super::scene::{CONFIG, Scene};
use serde_json::{Value, json};

fn told(failure: &Value, kind: &str, words: &[&str]) {
    assert_eq!(failure["kind"], kind, "{failure}");
    let message = failure["message"].as_str().unwrap();
    for word in words {
        assert!(message.contains(word), "{word:?} is not in {message:?}");
    }
}

/// G02, and the mended config works without a restart.
#[test]
fn a_missing_or_broken_config_is_told_at_the_first_call_and_mended_in_place() {
    for era in ERAS {
        let scene = Scene::without_config();
        // Found upwards from the current folder, which is how clients start a server.
        let mut client = Client::start(scene.bare_server(), era);
        assert_eq!(client.tools.len(), 14);
        told(&client.fail("pod_status", json!({})), "config", &["podtether.yaml"]);
        scene.write_config("vehicles: [\n");
        told(&client.fail("stop_pod", json!({"vehicle": "rover"})), "config", &["podtether.yaml"]);
        scene.write_config(&CONFIG.replace("budget_usd: 5", "budget_us: 5"));
        told(&client.fail("ensure_pod", json!({})), "config", &["budget_us"]);
        scene.write_config(CONFIG);
        assert_eq!(client.call("pod_status", json!({}))["status"], "no_pod");
    }
}

#[test]
fn a_config_that_is_named_and_missing_is_told_too() {
    let scene = Scene::without_config();
    let mut client = Client::start(scene.server(), Era::Stateless);
    told(&client.fail("spend_report", json!({})), "config", &["podtether.yaml"]);
}

#[test]
fn a_missing_key_is_told_with_every_place_where_it_was_looked_for() {
    let scene = Scene::without_config();
    scene.write_config(
        &CONFIG
            .replace("cloud: local", "cloud: runpod")
            .replace("local:\n  state_dir: cloud\n", ""),
    );
    let mut command = scene.server();
    // No program that could hold a key.
    command.env("PATH", scene.dir());
    let mut client = Client::start(command, Era::Initialize);
    told(&client.fail("pod_status", json!({})), "auth", &["RUNPOD_API_KEY"]);
}

#[test]
fn an_ssh_key_that_cannot_be_read_keeps_a_pod_from_being_created() {
    let scene = Scene::set();
    let key = scene.dir().join("id_ed25519");
    std::fs::remove_file(scene.dir().join("id_ed25519.pub")).unwrap();
    std::fs::write(&key, "no key\n").unwrap();
    let mut client = Client::start(scene.server(), Era::Initialize);
    let failure = client.fail("ensure_pod", json!({}));
    told(&failure, "config", &["id_ed25519"]);
    // The provider was asked, and has no pod of this vehicle.
    assert_eq!(failure["still_billing"], "no");
    assert_eq!(client.call("pod_status", json!({}))["status"], "no_pod");
    std::fs::remove_file(&key).unwrap();
    told(&client.fail("ensure_pod", json!({})), "config", &["id_ed25519"]);
    let plan = client.fail("ensure_pod", json!({"dry_run": true}));
    told(&plan, "config", &["id_ed25519"]);
}

/// H05-like mix-up: real and local are never mixed.
#[test]
fn a_local_config_with_the_address_of_another_cloud_is_refused() {
    let scene = Scene::set();
    let mut command = scene.server();
    command.env("PODTETHER_API_URL", "http://127.0.0.1:9");
    let mut client = Client::start(command, Era::Initialize);
    told(&client.fail("pod_status", json!({})), "config", &["PODTETHER_API_URL"]);
}
