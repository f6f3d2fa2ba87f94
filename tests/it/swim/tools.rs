//! run_pod_setup, apply_bluerov_patches and axis_sanity_sweep through the library that the tools call,
//! against the local cloud.

use super::{checkout, drop_in, of_repository};
use crate::flows::fixture::{Fixture, VEHICLE};
use crate::flows::journal::left_on_its_way;
use podtether::digest::sha256_hex;
use podtether::domain::JobState;
use podtether::error::{FailureKind, StillBilling};
use podtether::ops::{
    JobStatusAnswer, PatchRequest, RunJobRequest, SetUpRequest, StepView, SweepRequest, Tether,
};
use serde_json::Value;
use std::fs;

/// More of the fixture's one vehicle: what stands behind the key's own indentation.
fn workload(commit: &str, sweep_more: &str) -> String {
    let example = of_repository("examples/learning-to-swim");
    let example = example.display();
    format!(
        "    patches:
      files: [{drop_in}]
      checkout: /workspace/isaac-auv-env
      commit: {commit}
      marker: markers/bluerov2_patch_applied
    sweep:
      script: {example}/axis_sweep.py
      files: [{example}/config/bluerov2_heavy.yaml]
      command: [python3, '{{script}}', --backend, simulated, --drop-in, '{{mount}}/isaac-auv-env/bluerov2_thruster_dynamics.py', --geometry, '{{files}}/bluerov2_heavy.yaml', --marker, '{{marker}}'{sweep_more}]
      marker: markers/axis_sanity_PASS
",
        drop_in = drop_in().display()
    )
}

/// The commit of the excerpts, which is the same wherever they are checked out: a commit's name holds
/// its time, so it is asked for and written into the config.
async fn with_checkout(fixture: &Fixture, sweep_more: &str) -> Tether {
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let (_, commit) = checkout(&fixture.volume());
    let config = fs::read_to_string(fixture.config_file()).unwrap();
    fs::write(fixture.config_file(), config + &workload(&commit, sweep_more)).unwrap();
    fixture.tether().await
}

/// What a dry run says of a drop-in is what the real call would say, also when another one lies on the
/// pod from before; and a tree that is patched anew was seen by no sweep.
#[tokio::test(flavor = "multi_thread")]
async fn another_drop_in_is_told_by_the_dry_run_too_and_patches_void_an_earlier_sweep() {
    let fixture = Fixture::new();
    with_checkout(&fixture, "").await;
    let own = fixture.path("bluerov2_thruster_dynamics.py");
    fs::copy(drop_in(), &own).unwrap();
    let config = fs::read_to_string(fixture.config_file()).unwrap();
    let config = config.replace(&drop_in().display().to_string(), &own.display().to_string());
    fs::write(fixture.config_file(), config).unwrap();
    let tether = fixture.tether().await;
    let passed = fixture.volume().join("markers/axis_sanity_PASS");
    fs::create_dir_all(passed.parent().unwrap()).unwrap();
    fs::write(&passed, "").unwrap();
    assert!(!tether.apply_bluerov_patches(DRY).await.unwrap().changed);
    assert!(passed.exists());
    assert!(tether.apply_bluerov_patches(REAL).await.unwrap().changed);
    assert!(!passed.exists(), "a sweep from before the patches");

    // Nothing is changed, so what has passed since still has.
    fs::write(&passed, "").unwrap();
    assert!(!tether.apply_bluerov_patches(REAL).await.unwrap().changed);
    assert!(passed.exists());

    let text = fs::read_to_string(&own).unwrap();
    fs::write(&own, format!("{text}# another\n")).unwrap();
    for request in [DRY, REAL] {
        let failure = tether.apply_bluerov_patches(request).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Refused, "{request:?}: {failure}");
        assert!(failure.message.contains("is patched, with another"), "{request:?}: {failure}");
    }
    assert!(passed.exists());
}

async fn ended(fixture: &Fixture, tether: &Tether, id: &str) -> JobStatusAnswer {
    let mut last = None;
    fixture
        .until("the end of the job", async || {
            let status = tether.job_status(id, 60, None).await.unwrap();
            let is_over = status.state.has_ended();
            last = Some(status);
            is_over
        })
        .await;
    last.unwrap()
}

const REAL: PatchRequest = PatchRequest { dry_run: false, force: false };
const DRY: PatchRequest = PatchRequest { dry_run: true, force: false };

/// The whole way, and that the dry run of the patches is what arrives.
#[tokio::test(flavor = "multi_thread")]
async fn patches_then_a_sweep_and_each_leaves_its_marker() {
    let fixture = Fixture::new();
    let tether = with_checkout(&fixture, "").await;
    let volume = fixture.volume();
    let pod = fixture.pods_named("rover-pod").await[0]["id"].as_str().unwrap().to_owned();

    let early = tether.axis_sanity_sweep(SweepRequest::default()).await.unwrap_err();
    assert_eq!((early.kind, early.still_billing), (FailureKind::Refused, StillBilling::Yes));
    assert!(early.hint.contains("apply_bluerov_patches"), "{early}");

    let dry = tether.apply_bluerov_patches(DRY).await.unwrap();
    assert!(!dry.patched && !dry.changed && dry.edits.len() == 14, "{dry:?}");
    assert!(!volume.join("patches").exists() && !volume.join("markers").exists());
    let before = fixture.sessions(&pod).len();
    let real = tether.apply_bluerov_patches(REAL).await.unwrap();
    assert!(real.patched && real.changed, "{real:?}");
    assert_eq!(real.edits, dry.edits);
    let plan: Vec<StepView> = dry.plan.unwrap();
    assert_eq!(plan.len(), 3, "two files and the call: {plan:#?}");
    let sessions = fixture.sessions(&pod);
    for step in &plan[..2] {
        let stdin = step.stdin.as_ref().unwrap();
        let came = sessions[before..].iter().any(|one| one.stdin_sha256 == stdin.sha256);
        assert!(came, "{:?}", step.label);
    }
    let last = plan[2].command.as_ref().unwrap();
    assert!(sessions[before..].iter().any(|one| one.command == *last), "{last}");
    let script = fs::read(of_repository("remote/apply_bluerov2_patch.py")).unwrap();
    assert_eq!(plan[0].stdin.as_ref().unwrap().sha256, sha256_hex(&script));
    assert!(volume.join("markers/bluerov2_patch_applied").is_file());

    let again = tether.apply_bluerov_patches(REAL).await.unwrap();
    assert!(again.patched && !again.changed && again.next_step.contains("before"), "{again:?}");

    let dry = SweepRequest { dry_run: true, ..SweepRequest::default() };
    let planned = tether.axis_sanity_sweep(dry).await.unwrap();
    assert_eq!(planned.job.ceiling_sec, 3600);
    assert_eq!(planned.job.plan.unwrap().len(), 7, "five of every job and its two files");
    assert!(!volume.join("jobs").exists());
    let sweep = tether.axis_sanity_sweep(SweepRequest::default()).await.unwrap();
    let status = ended(&fixture, &tether, &sweep.job.job_id).await;
    assert_eq!(status.state, JobState::Succeeded, "{}", status.log_tail);
    assert!(sweep.gate.ends_with("/markers/axis_sanity_PASS"));
    let marker: Value =
        serde_json::from_slice(&fs::read(volume.join("markers/axis_sanity_PASS")).unwrap())
            .unwrap();
    assert_eq!(marker["results"].as_array().unwrap().len(), 16);
    let meta = status.meta.unwrap();
    let geometry = fs::read(of_repository("examples/learning-to-swim/config/bluerov2_heavy.yaml"));
    let noted = &meta["provenance"]["files"]["bluerov2_heavy.yaml"];
    assert_eq!(*noted, sha256_hex(&geometry.unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_with_a_wrong_sign_fails_and_its_old_marker_goes() {
    let fixture = Fixture::new();
    let tether = with_checkout(&fixture, ", --flip, 6").await;
    tether.apply_bluerov_patches(REAL).await.unwrap();
    let marker = fixture.volume().join("markers/axis_sanity_PASS");
    fs::write(&marker, "stale").unwrap();
    let sweep = tether.axis_sanity_sweep(SweepRequest::default()).await.unwrap();
    let status = ended(&fixture, &tether, &sweep.job.job_id).await;
    assert_eq!((status.state, status.exit_code), (JobState::Failed, Some(1)));
    assert!(
        status.log_tail.contains("thruster 6 +0.50: z: expected +, found -"),
        "{}",
        status.log_tail
    );
    assert!(!marker.exists());
}

/// What the script refuses is a refusal of the tool, in a dry run as well, and leaves the tree.
#[tokio::test(flavor = "multi_thread")]
async fn a_changed_tree_and_a_live_job_refuse_the_patches() {
    let fixture = Fixture::new();
    let tether = with_checkout(&fixture, "").await;
    let env = fixture.volume().join("isaac-auv-env/warpauv_env.py");
    let clean = fs::read_to_string(&env).unwrap();
    let dirty = format!("{clean}# somebody's\n");
    fs::write(&env, &dirty).unwrap();
    for request in [DRY, REAL] {
        let refused = tether.apply_bluerov_patches(request).await.unwrap_err();
        assert_eq!(refused.kind, FailureKind::Refused, "{refused}");
        assert!(refused.message.contains("changes of somebody: warpauv_env.py"), "{refused}");
        assert!(
            refused.hint.contains("checkout -- .") && refused.hint.contains("nothing was changed")
        );
        assert_eq!(fs::read_to_string(&env).unwrap(), dirty);
    }
    fs::write(&env, clean).unwrap();

    let job = RunJobRequest {
        name: "holds".to_owned(),
        command: "until test -e go; do sleep 0.05; done".to_owned(),
        ..RunJobRequest::default()
    };
    let id = tether.run_job(&job).await.unwrap().job_id;
    let refused = tether.apply_bluerov_patches(REAL).await.unwrap_err();
    assert_eq!(refused.kind, FailureKind::Refused);
    assert!(refused.message.contains(&id) && refused.message.contains("force=true"), "{refused}");
    let forced = PatchRequest { force: true, ..REAL };
    assert!(tether.apply_bluerov_patches(forced).await.unwrap().changed);
    fs::write(fixture.volume().join("go"), "").unwrap();
    ended(&fixture, &tether, &id).await;
}

/// F04: a launch that a dead session left on its way would start in the middle of the patches: it is called
/// off first, in the dry run too.
#[tokio::test(flavor = "multi_thread")]
async fn the_patches_call_off_a_launch_of_unknown_outcome() {
    let fixture = Fixture::new();
    let tether = with_checkout(&fixture, "").await;
    let launch = RunJobRequest {
        name: "train".to_owned(),
        command: "sleep 1000".to_owned(),
        dry_run: true,
        ..RunJobRequest::default()
    };
    let left = left_on_its_way(&fixture, &tether, &launch).await;
    let plan = tether.apply_bluerov_patches(DRY).await.unwrap().plan.unwrap();
    let first = plan[0].command.as_ref().unwrap();
    assert!(first.contains("call_off_launch.sh") && first.contains(&left.job_id), "{first}");
    assert!(tether.apply_bluerov_patches(REAL).await.unwrap().changed);
    assert!(fixture.volume().join("jobs").join(&left.job_id).join("called_off").exists());
    let plan = tether.apply_bluerov_patches(DRY).await.unwrap().plan.unwrap();
    assert_eq!(plan.len(), 3, "it is known now: {plan:#?}");
}

/// The setup is a job with its own ceiling, its files beside it, and nobody to ask; its last step shows.
#[tokio::test(flavor = "multi_thread")]
async fn a_setup_runs_with_its_files_and_answers_and_tells_its_step() {
    let fixture = Fixture::with(
        "setup: {script: set up.sh, files: [data.txt], command: [bash, '{script}', '{files}', \"it's\"]}\n",
    );
    let script = "echo 'podtether-step 1/2 ok one: done'\n\
                  echo \"$DEBIAN_FRONTEND $ACCEPT_EULA $PRIVACY_CONSENT $OMNI_KIT_ACCEPT_EULA\"\n\
                  echo \"podtether-step 2/2 running two: $(cat \"$1/data.txt\") $2\"\nexit 7\n";
    fs::write(fixture.path("set up.sh"), script).unwrap();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let unreadable = tether.run_pod_setup(&SetUpRequest::default()).await.unwrap_err();
    assert!(unreadable.kind == FailureKind::Config && unreadable.message.contains("data.txt"));
    fs::write(fixture.path("data.txt"), "here").unwrap();

    let dry = SetUpRequest { dry_run: true, ..SetUpRequest::default() };
    let planned = tether.run_pod_setup(&dry).await.unwrap();
    assert_eq!(planned.ceiling_sec, 5400);
    let labels: Vec<String> =
        planned.plan.unwrap().into_iter().filter_map(|step| step.label).collect();
    assert!(labels.iter().any(|label| label.starts_with("place set up.sh of job")), "{labels:?}");
    let job = tether.run_pod_setup(&SetUpRequest::default()).await.unwrap();
    let status = ended(&fixture, &tether, &job.job_id).await;
    assert_eq!((status.state, status.exit_code), (JobState::Failed, Some(7)), "{status:?}");
    assert_eq!(status.step.as_deref(), Some("2/2 running two: here it's"));
    assert!(status.log_tail.contains("\nnoninteractive Y Y YES\n"), "{}", status.log_tail);
    assert!(fixture.volume().join("jobs").join(&job.job_id).join("files/data.txt").is_file());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_config_does_not_declare_is_told_with_what_to_write() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    let setup = tether.run_pod_setup(&SetUpRequest::default()).await.unwrap_err();
    let patches = tether.apply_bluerov_patches(REAL).await.unwrap_err();
    let sweep = tether.axis_sanity_sweep(SweepRequest::default()).await.unwrap_err();
    for (failure, key) in [(setup, "setup"), (patches, "patches"), (sweep, "sweep")] {
        assert_eq!(failure.kind, FailureKind::Config, "{failure}");
        assert!(
            failure.message.contains(&format!("vehicle {VEHICLE} declares no {key}")),
            "{failure}"
        );
        assert!(failure.hint.contains(&format!("{key}: {{")), "{failure}");
    }
    assert_eq!(fixture.changes(), []);
}
