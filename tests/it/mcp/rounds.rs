//! The whole round as an agent makes it, in both eras: have a pod, run a job, pull, stop.

use super::client::{Client, ERAS};
use super::scene::Scene;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Polls until a job has ended.
pub fn job_ended(client: &mut Client, id: &str) -> Value {
    let start = Instant::now();
    loop {
        let status = client.call("job_status", json!({"job_id": id}));
        if !["starting", "running", "unknown"].contains(&status["state"].as_str().unwrap()) {
            return status;
        }
        assert!(start.elapsed() < super::client::CEILING, "{status}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Waits for a usable pod.
pub fn pod_running(client: &mut Client) -> Value {
    for _ in 0..4 {
        let answer = client.call("ensure_pod", json!({}));
        if answer["status"] != "still_initializing" {
            assert_eq!(answer["status"], "running", "{answer}");
            return answer;
        }
    }
    panic!("the pod does not come up");
}

/// Contract §2: every tool, its answers and its refusals, checked against its own output schema.
#[test]
fn a_round_of_work_goes_the_same_way_in_both_eras() {
    for era in ERAS {
        let scene = Scene::set();
        let mut client = Client::start(scene.server(), era);

        let stock = client.call("gpu_availability", json!({"vehicle": "glider"}));
        assert_eq!((&stock["cloud"], &stock["vehicle"]), (&json!("local"), &json!("glider")));
        let none = client.call("pod_status", json!({}));
        assert_eq!((&none["status"], &none["vehicle"]), (&json!("no_pod"), &json!("rover")));
        let unneeded = client.call("stop_pod", json!({"vehicle": "rover"}));
        assert_eq!(unneeded["status"], "no_pod");
        let missing = client.fail("run_job", json!({"name": "a", "command": "true"}));
        assert_eq!(missing["kind"], "no_pod");

        let plan = client.call("ensure_pod", json!({"dry_run": true}));
        assert_eq!(plan["plan"][0]["request"]["method"], "POST", "{plan}");
        assert_eq!(client.call("pod_status", json!({}))["status"], "no_pod");
        let ensured = pod_running(&mut client);
        assert_eq!(ensured["pod"]["name"], "rover");
        assert_eq!(pod_running(&mut client)["pod"]["id"], ensured["pod"]["id"]);

        let ran = client.call("exec_on_pod", json!({"command": "echo out; echo err >&2; exit 3"}));
        assert_eq!(
            (&ran["exit_code"], &ran["stdout"], &ran["stderr"]),
            (&json!(3), &json!("out\n"), &json!("err\n"))
        );
        let job = json!({
            "name": "count",
            "command": "mkdir -p results && seq 3 > results/numbers && echo counted",
            "max_runtime_sec": 60,
        });
        let mut planned = job.clone();
        planned["dry_run"] = json!(true);
        let plan = client.call("run_job", planned);
        assert!(plan["plan"].as_array().unwrap().len() > 1, "{plan}");
        let launched = client.call("run_job", job);
        let id = launched["job_id"].as_str().unwrap().to_owned();
        let ended = job_ended(&mut client, &id);
        assert_eq!((&ended["state"], &ended["exit_code"]), (&json!("succeeded"), &json!(0)));
        assert!(ended["log_tail"].as_str().unwrap().contains("counted"), "{ended}");
        let unknown = client.call("job_status", json!({"job_id": "20260703-132525_train_00ab"}));
        assert_eq!(unknown["state"], "not_found");

        let pulled = client.call("sync_logs", json!({"subdir": "results"}));
        assert_eq!((&pulled["complete"], &pulled["files"]), (&json!(true), &json!(1)));
        let here = scene.dir().join("logs/results/numbers");
        assert_eq!(std::fs::read_to_string(here).unwrap(), "1\n2\n3\n");
        assert_eq!(client.fail("sync_logs", json!({"subdir": "../x"}))["kind"], "bad_input");
        assert_eq!(client.fail("sync_logs", json!({"subdir": "nothing"}))["kind"], "transfer");

        let running = client.call("pod_status", json!({}));
        assert_eq!((&running["status"], &running["live_jobs"]), (&json!("running"), &json!([])));
        let refused = client.fail("terminate_pod", json!({"vehicle": "rover", "confirm": "yes"}));
        assert_eq!(refused["kind"], "refused");
        let stopped = client.call("stop_pod", json!({"vehicle": "rover"}));
        assert_eq!(
            (&stopped["status"], &stopped["observed"]),
            (&json!("stopped"), &json!("EXITED"))
        );
        let again = client.call("stop_pod", json!({"vehicle": "rover", "force": true}));
        assert_eq!(again["status"], "already_stopped");
        assert_eq!(client.call("pod_status", json!({}))["status"], "stopped");
        let spent = client.call("spend_report", json!({}));
        assert_eq!(spent["cloud"], "local");
        let gone =
            client.call("terminate_pod", json!({"vehicle": "rover", "confirm": "terminate rover"}));
        assert_eq!(gone["status"], "terminated");
    }
}
