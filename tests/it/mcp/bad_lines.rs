//! What no client should send, and some do: the server answers what can be answered and goes on.

use super::client::{Client, ERAS, Era};
use super::scene::Scene;
use serde_json::json;
use std::time::Duration;

/// G03: servers were seen to exit 0 on each of these.
#[test]
fn a_line_that_is_no_request_never_ends_the_server() {
    for era in ERAS {
        let mut client = Client::start(Scene::set().server(), era);
        let silent: [&[u8]; 6] = [
            b"no json at all\n",
            b"\n",
            b"   \r\n",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\n",
            b"\xff\xfe\x00\x01 \xc3\x28\n",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/from-the-future\"}\n",
        ];
        for line in silent {
            client.send_raw(line);
            client.is_alive();
        }
        assert_eq!(client.next_message(Duration::ZERO), None, "a reply to noise");
        let told: [&[u8]; 7] = [
            b"{}\n",
            b"[]\n",
            b"[{\"jsonrpc\":\"2.0\",\"id\":901,\"method\":\"ping\"}]\n",
            b"{\"jsonrpc\":\"2.0\",\"id\":902}\n",
            b"{\"jsonrpc\":\"1.0\",\"id\":903,\"method\":\"ping\"}\n",
            b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}\n",
            b"\"ping\"\n",
        ];
        for line in told {
            client.send_raw(line);
            let message = client.next_message(super::client::CEILING).unwrap();
            assert_eq!(message["error"]["code"], -32600, "{message}");
            client.is_alive();
        }
        assert_eq!(client.next_message(Duration::ZERO), None, "one reply each, no storm");
    }
}

#[test]
fn line_ends_and_byte_order_marks_of_other_systems_are_accepted() {
    for era in ERAS {
        let mut client = Client::start(Scene::set().server(), era);
        let (id, line) = client.line("tools/list", json!({}));
        client.send_raw(format!("\u{feff}{line}\r\n").as_bytes());
        assert!(client.wait(id)["result"]["tools"].is_array());
    }
}

#[test]
fn a_line_of_17_megabytes_does_not_end_the_server() {
    let mut client = Client::start(Scene::set().server(), Era::Initialize);
    let argument = "x".repeat(17 << 20);
    client.begin_call("exec_on_pod", json!({"command": argument}));
    client.is_alive();
}

#[test]
fn a_wrong_method_or_malformed_parameters_are_protocol_errors() {
    for era in ERAS {
        let mut client = Client::start(Scene::set().server(), era);
        let unknown = client.request("tools/kall", json!({}));
        assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
        let malformed = [
            json!({}),
            json!({"name": 5}),
            json!({"name": "pod_status", "arguments": [1]}),
            json!({"name": "pod_status", "arguments": "{}"}),
        ];
        for params in malformed {
            let answer = client.request("tools/call", params.clone());
            assert_eq!(answer["error"]["code"], -32602, "{params}: {answer}");
        }
        if era == Era::Initialize {
            client.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":904,\"method\":\"tools/call\"}\n");
            assert_eq!(client.wait(904)["error"]["code"], -32602);
            client.send_raw(
                b"{\"jsonrpc\":\"2.0\",\"id\":905,\"method\":\"tools/call\",\"params\":null}\n",
            );
            assert_eq!(client.wait(905)["error"]["code"], -32602);
        }
        client.is_alive();
    }
}

/// Bad input is told before anything is set up: no local cloud is started for it.
#[test]
fn wrong_arguments_are_answers_that_name_the_argument() {
    for era in ERAS {
        let scene = Scene::set();
        let mut client = Client::start(scene.server(), era);
        let cases = [
            ("stop_the_pod", json!({}), "stop_pod"),
            ("stop_pod", json!({}), "vehicle"),
            ("stop_pod", json!({"vehicle": null}), "vehicle"),
            ("stop_pod", json!({"vehicle": ["rover"]}), "string"),
            ("ensure_pod", json!({"vehicel": "rover"}), "vehicel"),
            ("ensure_pod", json!({"wait_sec": "45"}), "wait_sec"),
            ("ensure_pod", json!({"wait_sec": -1}), "-1"),
            ("ensure_pod", json!({"dry_run": "yes"}), "dry_run"),
            ("exec_on_pod", json!({"timeout_sec": 5}), "command"),
            ("exec_on_pod", json!({"command": "true", "timeout_sec": 1.5}), "timeout_sec"),
            ("job_status", json!({"job_id": "x", "tail_lines": -3}), "-3"),
            ("spend_report", json!({"days": 30}), "days"),
        ];
        for (tool, arguments, named) in cases {
            let failure = client.fail(tool, arguments.clone());
            assert_eq!(failure["kind"], "bad_input", "{tool} {arguments}: {failure}");
            let message = failure["message"].as_str().unwrap();
            assert!(message.contains(named), "{tool} {arguments}: {message}");
            // Nobody has looked whether anything does.
            assert_eq!(failure["still_billing"], "unknown");
        }
        assert!(!scene.dir().join("cloud").exists(), "bad input has started a local cloud");
        // Values that have the right shape are checked by the tool itself.
        let cases = [
            ("ensure_pod", json!({"wait_sec": 46}), "wait_sec"),
            ("exec_on_pod", json!({"command": "true", "timeout_sec": 601}), "timeout_sec"),
            ("exec_on_pod", json!({"command": " "}), "command"),
            ("run_job", json!({"name": "a b", "command": "true"}), "name"),
            (
                "run_job",
                json!({"name": "a", "command": "true", "max_runtime_sec": 0}),
                "max_runtime_sec",
            ),
            ("run_job", json!({"name": "a", "command": "true", "workdir": "x"}), "workdir"),
            ("job_status", json!({"job_id": "../../etc"}), "job_id"),
            ("pod_status", json!({"vehicle": "rovr"}), "rover"),
            ("gpu_availability", json!({"data_center_id": "EU-R0-1"}), "data_center_id"),
        ];
        for (tool, arguments, named) in cases {
            let failure = client.fail(tool, arguments.clone());
            assert_eq!(failure["kind"], "bad_input", "{tool} {arguments}: {failure}");
            let message = failure["message"].as_str().unwrap();
            assert!(message.contains(named), "{tool} {arguments}: {message}");
        }
    }
}

#[test]
fn an_explicit_null_is_an_argument_left_out() {
    let scene = Scene::set();
    let mut client = Client::start(scene.server(), Era::Initialize);
    let answer = client.call("pod_status", json!({"vehicle": null}));
    assert_eq!(answer["vehicle"], "rover");
    let nulls = json!({"dry_run": true, "wait_sec": null, "vehicle": null});
    assert!(client.call("ensure_pod", nulls)["plan"].is_array());
    let id = client.begin("tools/call", json!({"name": "spend_report", "arguments": null}));
    client.success(id, "spend_report");
    let id = client.begin("tools/call", json!({"name": "spend_report"}));
    client.success(id, "spend_report");
}

/// A client that skips the greeting, or greets with a version of another century.
#[test]
fn any_greeting_leads_to_a_version_that_is_spoken() {
    for (asked, given) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-06-18", "2025-06-18"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let scene = Scene::set();
        let (mut client, _) = Client::spawn(scene.server(), Era::Initialize, true);
        let params = json!({
            "protocolVersion": asked,
            "capabilities": {},
            "clientInfo": {"name": "lines", "version": "1"},
        });
        let answer = client.request("initialize", params);
        assert_eq!(answer["result"]["protocolVersion"], given, "{answer}");
    }
    let scene = Scene::set();
    let (mut client, _) = Client::spawn(scene.server(), Era::Initialize, true);
    let early = client.request("tools/list", json!({}));
    assert_eq!(early["error"]["code"], -32602, "{early}");
    client.open();
}
