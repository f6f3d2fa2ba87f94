//! What a dry run prints is what arrives: the printed steps against the records at the provider's
//! port and at the pod's. Only what a call draws anew is replaced: a nonce, a job's id and time, the
//! id of a volume that the plan itself creates.

use super::fixture::{Fixture, POD, Request, Session, VEHICLE, VOLUME, ensure, exec};
use podtether::clock::SystemClock;
use podtether::cloud::runpod::{RunPod, RunPodOptions};
use podtether::cloud::{Cloud, RequestView};
use podtether::digest::sha256_hex;
use podtether::domain::{RemoteCommand, scripts};
use podtether::guard::review;
use podtether::ops::{EnsureRequest, RunJobRequest, StepView, Tether};
use podtether::plan::{self, Draft, Facts, Intent, LiveJobs, PodStep, Step};
use serde_json::{Value, json};
use std::process::Command;
use std::time::Duration;

/// Scripts that only read; a plan does not hold what is read to make it.
const READING: [&str; 4] = ["await_exit.sh", "manifest.sh", "pod_look.sh", "recipe_look.sh"];

fn requests(plan: &[StepView]) -> Vec<(String, String, Value)> {
    plan.iter().map(|step| sent(step.request.as_ref().unwrap())).collect()
}

fn sent(view: &RequestView) -> (String, String, Value) {
    (view.method.clone(), view.path.clone(), view.body.clone().unwrap_or(Value::Null))
}

fn arrived(changes: &[Request]) -> Vec<(String, String, Value)> {
    changes
        .iter()
        .map(|request| (request.method.clone(), request.path.clone(), request.body.clone()))
        .collect()
}

/// The words that a real bash beside `remote/` makes of a line. `$(cat remote/NAME)` has no newline
/// at its end, so a script's is taken off on both sides.
pub fn words(line: &str) -> Vec<String> {
    let output = Command::new("bash")
        .args(["-c", &format!("printf '%s\\0' {line}")])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.trim_end_matches('\0').split('\0').map(|word| word.trim_end().to_owned()).collect()
}

/// The commands that a pod ran since its first `before`, but for those that only read. The mark is a
/// command of the test's own that comes last, so that nothing is still on its way.
pub async fn commands_since(
    fixture: &Fixture,
    tether: &Tether,
    pod: &str,
    before: usize,
) -> Vec<Session> {
    let mark = "echo the-last-command";
    tether.exec_on_pod(&exec(mark)).await.unwrap();
    fixture
        .until("the mark", async || {
            fixture
                .sessions(pod)
                .iter()
                .skip(before)
                .any(|one| one.command.ends_with(&format!("'{mark}'")))
        })
        .await;
    let reads = |session: &Session| {
        let words = words(&session.command);
        words.get(3).is_some_and(|name| READING.contains(&name.as_str()))
    };
    let mut since: Vec<Session> =
        fixture.sessions(pod).into_iter().skip(before).filter(|one| !reads(one)).collect();
    since.retain(|session| !session.command.ends_with(&format!("'{mark}'")));
    since
}

#[tokio::test(flavor = "multi_thread")]
async fn the_dry_run_of_ensure_pod_is_what_arrives_for_a_create_and_for_a_start() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let dry = EnsureRequest { dry_run: true, ..ensure(0) };

    let printed = tether.ensure_pod(&dry).await.unwrap().plan.unwrap();
    assert_eq!(fixture.changes(), [], "a dry run changes nothing");
    let id = fixture.running(&tether).await.pod.unwrap().id.0;
    let came = arrived(&fixture.changes());
    let mut printed = requests(&printed);
    assert_eq!(printed.len(), 2, "a volume and a pod");
    let placeholder = json!(format!("<id of the new volume {VOLUME:?}>"));
    let volume = printed[1].2.pointer_mut("/mounts/network/0/volumeId").unwrap();
    assert_eq!(*volume, placeholder);
    *volume = json!(fixture.volume_id().await);
    let nonce = printed[1].2.pointer_mut("/env/PODTETHER_NONCE").unwrap();
    let real = came[1].2.pointer("/env/PODTETHER_NONCE").unwrap();
    assert_ne!(nonce, real, "every create has a marker of its own");
    for marker in [&*nonce, real] {
        let marker = marker.as_str().unwrap();
        assert!(marker.len() == 16 && marker.bytes().all(|b| b.is_ascii_hexdigit()), "{marker}");
    }
    *nonce = real.clone();
    assert_eq!(printed, came);

    // A pod that runs: nothing to do, and nothing is done.
    let answer = tether.ensure_pod(&dry).await.unwrap();
    assert_eq!(answer.plan, Some(Vec::new()), "{}", answer.message);
    let again = fixture.running(&tether).await;
    assert_eq!((again.pod.unwrap().id.0, fixture.changes().len()), (id.clone(), came.len()));

    assert!(tether.stop_pod(VEHICLE).await.unwrap().is_off());
    let before = fixture.changes().len();
    let printed = tether.ensure_pod(&dry).await.unwrap().plan.unwrap();
    assert_eq!(fixture.changes().len(), before, "a dry run changes nothing");
    fixture.running(&tether).await;
    assert_eq!(requests(&printed), arrived(&fixture.changes()[before..]));
    let start = ("POST".to_owned(), format!("/v2/pods/{id}/action"), json!({"action": "start"}));
    assert_eq!(requests(&printed), [start]);
}

/// D09, H03: a command with quotes and a mount path with a space arrive as they are.
#[tokio::test(flavor = "multi_thread")]
async fn the_dry_run_of_run_job_is_what_arrives() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let pod = fixture.running(&tether).await.pod.unwrap().id.0;
    let job = RunJobRequest {
        name: "Plan-1".to_owned(),
        command: "echo \"it's $HOME\" '$(not run here)'; true".to_owned(),
        max_runtime_sec: Some(77),
        ..RunJobRequest::default()
    };
    let before = fixture.sessions(&pod).len();
    let dry = RunJobRequest { dry_run: true, ..job.clone() };
    let planned = tether.run_job(&dry).await.unwrap();
    assert_eq!(commands_since(&fixture, &tether, &pod, before).await, [], "a dry run only reads");
    assert!(!fixture.volume().join("jobs").exists());

    let before = fixture.sessions(&pod).len();
    let changes = fixture.changes().len();
    let real = tether.run_job(&job).await.unwrap();
    assert_eq!(fixture.changes().len(), changes, "a launch asks the provider for nothing");
    let came = commands_since(&fixture, &tether, &pod, before).await;
    let plan = planned.plan.unwrap();
    assert_eq!(plan.len(), 5);
    assert_eq!(came.len(), plan.len(), "{came:#?}");

    assert_ne!(planned.job_id, real.job_id);
    let meta = fixture.volume().join("jobs").join(&real.job_id).join("meta.json");
    let meta: Value = serde_json::from_slice(&std::fs::read(meta).unwrap()).unwrap();
    let launched_at = meta["started_at"].as_str().unwrap();
    for (step, session) in plan.iter().zip(&came) {
        let as_real = |text: &str| text.replace(&planned.job_id, &real.job_id);
        let mut expected = words(&as_real(step.command.as_ref().unwrap()));
        let mut found = words(&session.command);
        let label = step.label.as_ref().unwrap();
        let Some(stdin) = &step.stdin else {
            assert_eq!((expected, session.stdin_bytes), (found, 0), "{label}");
            continue;
        };
        let Some(text) = &stdin.text else {
            assert_eq!(expected, found, "{label}");
            assert_eq!(
                (stdin.bytes as u64, &stdin.sha256),
                (session.stdin_bytes, &session.stdin_sha256)
            );
            continue;
        };
        let mut text = as_real(text);
        if label.starts_with("place meta.json") {
            let planned: Value = serde_json::from_str(&text).unwrap();
            text = text.replace(planned["started_at"].as_str().unwrap(), launched_at);
            // The last word counts the bytes of a text with a time of another length in it.
            let (counted, given) = (expected.pop().unwrap(), found.pop().unwrap());
            assert_eq!((counted, given), (stdin.bytes.to_string(), text.len().to_string()));
        }
        assert_eq!(expected, found, "{label}");
        assert_eq!(session.stdin_bytes, text.len() as u64, "{label}");
        assert_eq!(session.stdin_sha256, sha256_hex(text.as_bytes()), "{label}:\n{text}");
    }
}

/// The tools without a dry run: their steps, drafted and approved here from facts of another read.
#[tokio::test(flavor = "multi_thread")]
async fn the_approved_steps_of_exec_stop_and_terminate_are_what_arrives() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let pod = fixture.running(&tether).await.pod.unwrap().id;
    let vehicle = tether.vehicle(None).unwrap();
    let running = fixture.running_cloud();
    let options = RunPodOptions::local(&running.url, running.key);
    let cloud = RunPod::new(options, SystemClock::shared()).unwrap();
    let facts = Facts {
        pods: cloud.pods().await.unwrap(),
        volumes: cloud.volumes().await.unwrap(),
        offers: Vec::new(),
        declared: vec![(vehicle.name.clone(), POD.to_owned())],
        tolerated: Vec::new(),
        unknown_creates: Vec::new(),
        live_jobs: LiveJobs::Unknown("not asked".to_owned()),
        volume_health: podtether::plan::VolumeHealth::NotAsked,
        gates: podtether::plan::Gates::NotAsked,
        spend: podtether::plan::Spend::not_asked(),
        proven_fuses: podtether::domain::ProvenFuses::default(),
    };
    let approved = |draft: Draft| -> Vec<Step> {
        let limits = tether.config().limits_for(&vehicle.name);
        review(draft, &facts, &limits).unwrap().steps().to_vec()
    };
    let printed = |steps: Vec<Step>| -> Vec<(String, String, Value)> {
        let view = |step: &Step| match step {
            Step::Cloud(change) => sent(&cloud.preview(change)),
            Step::Pod(step) => panic!("{} is on the pod", step.label),
        };
        steps.iter().map(view).collect()
    };

    let line = "printf '%s|' \"it's\" '$HOME' `echo x`; exit 3";
    let step = PodStep {
        pod: pod.clone(),
        label: "run".to_owned(),
        command: RemoteCommand::script(scripts::RUN_IN, [&vehicle.volume_mount_path, "0", line]),
        timeout: Duration::from_secs(60),
    };
    let steps = approved(plan::on_pod(&vehicle, false, Intent::Exec, vec![step], None));
    let [Step::Pod(step)] = &steps[..] else { panic!("{steps:?}") };
    let (before, changes) = (fixture.sessions(&pod.0).len(), fixture.changes().len());
    let answer = tether.exec_on_pod(&exec(line)).await.unwrap();
    assert_eq!((answer.exit_code, &*answer.stdout), (Some(3), "it's|$HOME|x|"));
    let came = commands_since(&fixture, &tether, &pod.0, before).await;
    assert_eq!(came.len(), 1, "{came:?}");
    // Apart from the mark, which every call has its own of.
    let (mut shown, sent) = (words(&step.command.to_string()), words(&came[0].command));
    let mark = shown.len() - 2;
    assert_eq!(sent[mark].len(), 16);
    shown[mark].clone_from(&sent[mark]);
    assert_eq!(shown, sent);
    assert_eq!((came[0].stdin_bytes, fixture.changes().len()), (0, changes));

    let steps = printed(approved(plan::stop(&vehicle, true, &facts)));
    assert!(tether.stop_pod(VEHICLE).await.unwrap().is_off());
    assert_eq!(steps, arrived(&fixture.changes()[changes..]));
    assert_eq!(steps.len(), 1);

    let confirm = format!("terminate {POD}");
    let changes = fixture.changes().len();
    let steps = printed(approved(plan::terminate(&vehicle, true, &confirm, &facts)));
    tether.terminate_pod(VEHICLE, &confirm).await.unwrap();
    // On a slow machine the very same is asked again before its effect was read back.
    let mut came = arrived(&fixture.changes()[changes..]);
    came.dedup();
    assert_eq!(steps, came);
    assert_eq!(steps, [("DELETE".to_owned(), format!("/v2/pods/{pod}"), Value::Null)]);
}
