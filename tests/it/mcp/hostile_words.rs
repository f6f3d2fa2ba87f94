//! Hostile words in the arguments that reach a pod: refused with a reason, or kept to the letter.

use super::client::{Client, Era};
use super::rounds::{job_ended, pod_running};
use super::scene::Scene;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

const HOSTILE: [&str; 12] = [
    "a b",
    "it's",
    "\"q\"",
    "$(touch PWN)",
    "`touch PWN`",
    "a;touch PWN",
    "a\ntouch PWN",
    "-rf",
    "--",
    "..",
    "../../etc",
    "*",
];

fn volume(scene: &Scene) -> PathBuf {
    let mut volumes = fs::read_dir(scene.dir().join("cloud/volumes")).unwrap();
    volumes.next().unwrap().unwrap().path()
}

/// H03: each call answers, and none of the words does anything. What is a path may hold nearly anything
/// and is then kept to the letter; what becomes a name of podtether's own may not.
#[test]
fn hostile_words_are_refused_or_kept_to_the_letter() {
    let scene = Scene::set();
    let mut client = Client::start(scene.server(), Era::Stateless);
    pod_running(&mut client);
    let (long_name, long_path) = ("x".repeat(4096), format!("/{}", "x".repeat(4096)));
    let mut refused = |tool: &str, arguments: Value| {
        let failure = client.fail(tool, arguments.clone());
        let shown: String = arguments.to_string().chars().take(120).collect();
        assert_eq!(failure["kind"], "bad_input", "{tool} {shown}: {failure}");
        assert!(failure["message"].as_str().unwrap().len() < 2_000, "{tool} {shown}");
    };
    for word in HOSTILE.into_iter().chain([long_name.as_str(), "", "a\u{0}b"]) {
        refused("job_status", json!({"job_id": word}));
        refused("job_status", json!({"job_id": format!("20260703-132525_{word}/x_00ab")}));
        refused("run_job", json!({"name": word, "command": "touch PWN"}));
        refused("sync_logs", json!({"subdir": "../".to_owned() + word}));
        refused("exec_on_pod", json!({"command": "touch PWN", "workdir": word}));
        refused("run_job", json!({"name": "a", "command": "touch PWN", "workdir": word}));
    }
    for workdir in [long_path.as_str(), "/a\nb", "/a\u{0}b"] {
        refused("exec_on_pod", json!({"command": "touch PWN", "workdir": workdir}));
        refused("run_job", json!({"name": "a", "command": "touch PWN", "workdir": workdir}));
    }
    for lines in [json!(-1), json!(1.5), json!("all"), json!(10_000_000_000_u64)] {
        refused("job_status", json!({"job_id": "20260703-132525_x_00ab", "tail_lines": lines}));
    }
    // Folders of such names: a command runs in them and nowhere else.
    for (number, word) in HOSTILE.iter().filter(|word| !word.contains('\n')).enumerate() {
        if word.contains("..") {
            continue;
        }
        let folder = volume(&scene).join("folders").join(format!("{word} {number}"));
        fs::create_dir_all(&folder).unwrap();
        let mount = scene.dir().join("cloud/mnt/workspace");
        let mount = client.call("exec_on_pod", json!({"command": "pwd"}))["stdout"]
            .as_str()
            .map_or(mount, |path| PathBuf::from(path.trim()));
        let workdir = mount.join("folders").join(format!("{word} {number}"));
        let ran =
            client.call("exec_on_pod", json!({"command": "touch here; pwd", "workdir": workdir}));
        assert_eq!(ran["exit_code"], 0, "{word}: {ran}");
        assert!(folder.join("here").exists(), "{word}: {ran}");
    }
    let found = |at: &PathBuf| {
        let output = std::process::Command::new("find").arg(at).args(["-name", "PWN"]).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    assert_eq!(found(&scene.dir().to_owned()), "");
    assert_eq!(client.call("stop_pod", json!({"vehicle": "rover"}))["status"], "stopped");
}

/// A command of 1 MB is one of a job and arrives byte by byte; as a short command it is refused with the
/// limit. Output of any bytes and any number of lines comes back short and plain.
#[test]
fn a_command_of_a_megabyte_and_output_of_any_bytes() {
    let scene = Scene::set();
    let mut client = Client::start(scene.server(), Era::Initialize);
    pod_running(&mut client);
    let head = "head -c 300000 /dev/urandom; printf 'a\\0b\\xff\\033[1mc\\r50%%\\rd'; exit 4\n#";
    let command = head.to_owned() + &"é'\"$(`\\".repeat((1 << 20) / 8 - 40);
    assert!(command.len() > 1_000_000);
    let failure = client.fail("exec_on_pod", json!({"command": command}));
    assert_eq!(failure["kind"], "bad_input");
    let said = failure["message"].as_str().unwrap();
    assert!(said.contains("120000") && said.contains("run_job") && said.len() < 2_000, "{said}");
    let failure =
        client.fail("run_job", json!({"name": "a", "command": "#".repeat((1 << 20) + 1)}));
    assert_eq!(failure["kind"], "bad_input");
    let started = client.call("run_job", json!({"name": "big", "command": command}));
    let id = started["job_id"].as_str().unwrap();
    let status = job_ended(&mut client, id);
    assert_eq!((&status["state"], &status["exit_code"]), (&json!("failed"), &json!(4)), "{status}");
    let tail = status["log_tail"].as_str().unwrap();
    assert!(tail.ends_with('d') && !tail.contains(['\u{1b}', '\0', '\r']), "{tail:?}");
    let written = fs::read_to_string(volume(&scene).join("jobs").join(id).join("cmd.sh")).unwrap();
    let text = written.split_once("# ----\n").unwrap().1;
    assert!(text == command + "\n", "the command is not in its file to the letter");
    assert!(
        status["meta"]["command"].as_str().unwrap().contains("bytes; the whole of it is in cmd.sh")
    );
    for (lines, shown) in [(0, 0), (1, 1), (1_000_000_000, 400)] {
        let status = client.call("job_status", json!({"job_id": id, "tail_lines": lines}));
        let count = status["log_tail"].as_str().unwrap().lines().count();
        assert!(count <= shown && (lines == 0 || count > 0), "{lines}: {count}");
        assert!(status.to_string().len() < 32 * 1024);
    }
    let binary = client.call("exec_on_pod", json!({"command": "head -c 3000000 /dev/urandom"}));
    assert_eq!((&binary["exit_code"], &binary["stdout_truncated"]), (&json!(0), &json!(true)));
    assert_eq!(client.call("stop_pod", json!({"vehicle": "rover"}))["status"], "stopped");
}
