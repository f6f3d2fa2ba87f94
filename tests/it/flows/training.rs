//! launch_training on the local cloud, with an upstream file written for this test in the shape of the
//! real one: what is edited, run, recorded; and everything that is refused before anything changes.

use super::dry_run::{commands_since, words};
use super::fixture::{Fixture, VEHICLE};
use super::seeing::run;
use super::supervised::Run;
use podtether::digest::sha256_hex;
use podtether::error::{Failure, FailureKind};
use podtether::ops::{
    JobKind, LaunchTrainingAnswer, LaunchTrainingRequest, RunJobRequest, Tether, TrainingChoice,
    WhyRequest,
};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// Two trainings on one vehicle's pod, so that one test needs one pod.
const TRAININGS: &str = r#"
trainings:
  curee:
    vehicle: rover
    workdir: lab
    command: "bash train.sh --seed={seed} '--level {level}' {mount}"
    seed: {marker: markers/seed_respected}
    gates: {forbid: [markers/patched]}
    edits:
      - file: code/env.py
        fields: [radius, volume_range]
        same_as: [lab/direct/env.py]
    default_level: DR_2
    levels:
      DR_0: {aliases: [none, no_dr, 0], values: {radius: "0", volume_range: "[0.022747843530591776, 0.022747843530591776]"}}
      DR_1: {aliases: [small, 1], values: {radius: "0.025", volume_range: "[0.021247843530591776, 0.024247843530591776]"}}
      DR_2: {aliases: [large, shipped, 2], values: {radius: 0.05, volume_range: [0.019747843530591773, 0.02574784353059178]}}
      DR_3: {aliases: [3], values: {radius: "0.075", volume_range: "[0.018247843530591775, 0.027247843530591776]"}}
    checks:
      - {file: vehicle.yaml, key: body.volume, level: none, field: volume_range}
      - {file: vehicle.yaml, key: levels.small, level: small, field: volume_range}
    expect: {iterations: 400, iterations_option: --max_iterations, ms_per_iteration: 170, startup_sec: 60, reward: [95, 100]}
    logs: {root: lab/logs, run_line: "Exact experiment name requested from command line:"}
    artifacts: ["model_{last}.pt"]
  other:
    vehicle: rover
    workdir: lab
    command: bash train.sh
    gates: {require: [markers/patched, markers/axis_PASS]}
    edits: [{file: code/env.py, fields: [radius, volume_range]}]
    levels:
      DR_0: {values: {radius: "0", volume_range: "[0.0134, 0.0134]"}}
  bare:
    vehicle: rover
"#;

const VEHICLE_YAML: &str = "body: {volume: 0.022747843530591776}\nlevels:\n  small: [0.021247843530591776, 0.024247843530591776]\n";

/// Commented presets above the active lines, and comments behind them; with CRLF in one place.
const ENV_PY: &str = "class Cfg:\n    class randomization:\n        # radius = 0 # preset\n        # volume_range = [0.022747843530591776, 0.022747843530591776]\n        radius = 0.05 # uniform\r\n        volume_range = [0.019747843530591773, 0.02574784353059178] # lower, upper\n\ndef f(cfg):\n    return cfg.radius, cfg.volume_range\n";

const TRAIN_SH: &str =
    "printf '<%s>' \"$PWD\" \"$@\"\necho\ncat code/env.py 2>/dev/null\necho done\n";

fn choice(training: &str, level: &str) -> TrainingChoice {
    TrainingChoice {
        training: training.to_owned(),
        dr_level: Some(level.to_owned()),
        ..TrainingChoice::default()
    }
}

fn launch(choice: TrainingChoice) -> LaunchTrainingRequest {
    LaunchTrainingRequest { choice, ..LaunchTrainingRequest::default() }
}

struct Scene {
    fixture: Fixture,
    tether: Tether,
    pod: String,
}

impl Scene {
    async fn set() -> Self {
        let fixture = Fixture::with(TRAININGS);
        fs::write(fixture.path("vehicle.yaml"), VEHICLE_YAML).unwrap();
        fs::write(fixture.path("uv.lock"), "pinned\n").unwrap();
        let tether = fixture.tether().await;
        let pod = fixture.running(&tether).await.pod.unwrap().id.0;
        let scene = Self { fixture, tether, pod };
        for folder in ["code", "lab/logs/2026-07-16_10-00-00", "markers"] {
            fs::create_dir_all(scene.at(folder)).unwrap();
        }
        std::os::unix::fs::symlink("../code", scene.at("lab/direct")).unwrap();
        scene.write("code/env.py", ENV_PY);
        scene.write("lab/train.sh", TRAIN_SH);
        scene
    }

    fn at(&self, name: &str) -> PathBuf {
        self.fixture.volume().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.at(name), text).unwrap();
    }

    fn env_py(&self) -> String {
        fs::read_to_string(self.at("code/env.py")).unwrap()
    }

    async fn launch(&self, request: &LaunchTrainingRequest) -> LaunchTrainingAnswer {
        self.tether.launch_training(request).await.unwrap()
    }

    async fn ended(&self, id: &str) -> String {
        let folder = self.at("jobs").join(id);
        self.fixture.until("the end of the job", async || folder.join("exit_code").exists()).await;
        assert_eq!(fs::read_to_string(folder.join("exit_code")).unwrap().trim(), "0");
        fs::read_to_string(folder.join("out.log")).unwrap()
    }

    fn meta(&self, id: &str) -> Value {
        let meta = self.at("jobs").join(id).join("meta.json");
        serde_json::from_slice(&fs::read(meta).unwrap()).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_training_is_edited_run_and_recorded_and_its_dry_run_is_what_arrives() {
    let scene = Scene::set().await;
    scene.write("markers/seed_respected", "");
    let choice = TrainingChoice {
        seed: Some("7".to_owned()),
        extra_args: "--max_iterations 2500 '$(touch pwned) ; x'".to_owned(),
        ..choice("curee", "SMALL")
    };
    let request = launch(choice);
    let dry = LaunchTrainingRequest { dry_run: true, ..request.clone() };

    let before = scene.fixture.sessions(&scene.pod).len();
    let planned = scene.launch(&dry).await;
    let came = commands_since(&scene.fixture, &scene.tether, &scene.pod, before).await;
    assert_eq!(came, [], "a dry run only reads");
    assert_eq!(scene.env_py(), ENV_PY);
    assert!(!scene.at("jobs").exists());

    let lab = scene.tether.vehicle(None).unwrap().volume_mount_path + "/lab";
    assert_eq!(planned.workdir.as_deref(), Some(lab.as_str()));
    let command = planned.command.clone().unwrap();
    assert!(command.starts_with("bash train.sh --seed=7 '--level DR_1' "), "{command}");
    assert!(command.ends_with(" --max_iterations 2500 '$(touch pwned) ; x'"), "{command}");
    let diff = planned.diff.clone().unwrap();
    for line in [
        "-        radius = 0.05 # uniform",
        "+        radius = 0.025 # uniform",
        "+        volume_range = [0.021247843530591776, 0.024247843530591776] # lower, upper",
    ] {
        assert!(diff.lines().any(|found| found == line), "{diff}");
    }
    assert_eq!(planned.gates.len(), 6, "{:?}", planned.gates);
    let estimate = planned.estimate.clone().unwrap();
    // 0.17 s each, and a minute before.
    assert_eq!((estimate.iterations, estimate.sec), (Some(2500), 485));
    assert!(estimate.usd.unwrap() < planned.worst_case_usd);
    assert!(!planned.worst_case.is_empty());

    let before = scene.fixture.sessions(&scene.pod).len();
    let real = scene.launch(&request).await;
    let came = commands_since(&scene.fixture, &scene.tether, &scene.pod, before).await;
    let plan = planned.plan.clone().unwrap();
    assert_eq!((came.len(), plan.len()), (6, 6), "an edit, four files and the launch");
    let edit = &plan[0];
    assert_eq!(words(edit.command.as_ref().unwrap()), words(&came[0].command));
    assert_eq!(edit.stdin.as_ref().unwrap().sha256, came[0].stdin_sha256);
    for (step, session) in plan.iter().zip(&came).skip(1) {
        let shown = step.command.as_ref().unwrap().replace(&planned.job_id, &real.job_id);
        let (mut expected, mut found) = (words(&shown), words(&session.command));
        if step.label.as_ref().unwrap().starts_with("place meta.json") {
            // Its length, which depends on how many digits the time has.
            expected.pop();
            found.pop();
        }
        assert_eq!(expected, found, "{:?}", step.label);
    }

    let id = &real.job_id;
    assert!(id.contains("_train-curee-dr-1-s7_"), "{id}");
    assert_eq!((real.level.as_deref(), real.seed, real.ceiling_sec), (Some("DR_1"), 7, 3600));
    assert_eq!((real.vehicle.as_str(), real.seed_respected), (VEHICLE, Some(true)));
    let log = scene.ended(id).await;
    let mount = scene.tether.vehicle(None).unwrap().volume_mount_path;
    let first = log.lines().next().unwrap();
    assert!(
        first.ends_with(&format!(
            "<--seed=7><--level DR_1><{mount}><--max_iterations><2500><$(touch pwned) ; x>"
        )),
        "{first}"
    );
    assert!(!scene.at("lab/pwned").exists());

    // Only the two values differ, and what was read back is what was promised.
    let edited = ENV_PY.replace("= 0.05 #", "= 0.025 #").replace(
        "[0.019747843530591773, 0.02574784353059178]",
        "[0.021247843530591776, 0.024247843530591776]",
    );
    assert_eq!(scene.env_py(), edited);
    let [view] = &real.edits[..] else { panic!("{:?}", real.edits) };
    assert_eq!((view.from_level.as_str(), view.lines), ("DR_2", 2));
    assert_eq!(view.sha256_before, sha256_hex(ENV_PY.as_bytes()));
    assert_eq!(view.sha256_after, sha256_hex(edited.as_bytes()));

    // The record beside the job, and the same in the journal.
    let meta = scene.meta(id);
    let record = &meta["provenance"];
    assert_eq!(record["vehicle"], VEHICLE);
    assert_eq!(record["lockfiles"]["uv.lock"], sha256_hex(b"pinned\n"));
    assert!(record["git"].is_string() || record["git"]["commit"].is_string(), "{record}");
    assert!(record["gpu"].as_str().unwrap().contains("RTX 4090"), "{record}");
    let training = &record["training"];
    assert_eq!(training["values"]["radius"], "0.025");
    assert_eq!(training["values"]["volume_range"], "[0.021247843530591776, 0.024247843530591776]");
    assert_eq!(training["seed_respected"], true);
    assert_eq!(training["edits"][0]["sha256"], view.sha256_after.as_str());
    assert_eq!(training["runs_before"]["last"], "2026-07-16_10-00-00");
    assert_eq!(training["artifacts"][0], "model_2499.pt");
    assert_eq!(training["recipe_sha256"].as_str().unwrap().len(), 64);
    let journal = fs::read_to_string(scene.fixture.ledger().path()).unwrap();
    let noted = journal.lines().find_map(|line| {
        let entry: Value = serde_json::from_str(line.split_once(' ')?.1).ok()?;
        let action = &entry["event"]["action"];
        (action["job"] == **id).then(|| action["provenance"].clone())
    });
    assert_eq!(noted.as_ref(), Some(record));

    // A plain job has a record too.
    let plain = RunJobRequest {
        name: "plain".to_owned(),
        command: "true".to_owned(),
        ..RunJobRequest::default()
    };
    let plain = scene.tether.run_job(&plain).await.unwrap();
    scene.ended(&plain.job_id).await;
    assert_eq!(scene.meta(&plain.job_id)["provenance"]["lockfiles"], record["lockfiles"]);

    // Another level from there, and the first one back: the first bytes.
    for (level, name) in [("none", "DR_0"), ("dr_2", "DR_2")] {
        let answer = scene.launch(&launch(self::choice("curee", level))).await;
        assert_eq!(answer.level.as_deref(), Some(name));
        scene.ended(&answer.job_id).await;
    }
    assert_eq!(scene.env_py(), ENV_PY);
}

async fn refused(scene: &Scene, choice: TrainingChoice) -> Failure {
    let request = LaunchTrainingRequest { force: true, ..launch(choice) };
    let failure = scene.tether.launch_training(&request).await.unwrap_err();
    let dry = LaunchTrainingRequest { dry_run: true, ..request };
    let planned = scene.tether.launch_training(&dry).await.unwrap_err();
    assert_eq!((&failure.kind, &failure.message), (&planned.kind, &planned.message));
    failure
}

/// The paragraph "Bad input" of the issue: unknown training, level and alias, seeds that are none, a level
/// of another training, an edited file, two checkouts, missing markers, files of two minds.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_refused_by_name_and_nothing_changes_on_the_pod() {
    let scene = Scene::set().await;
    let snapshot = |scene: &Scene| {
        let names = |folder: &str| {
            let mut names: Vec<_> = fs::read_dir(scene.at(folder))
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
                .collect();
            names.sort();
            names
        };
        (names(""), names("code"), names("markers"), scene.fixture.changes().len())
    };
    let at_first = snapshot(&scene);

    let asked = scene.fixture.requests().len();
    for (choice, says) in [
        (choice("cure", "DR_1"), "no training \"cure\""),
        (choice("cure", "DR_1"), "did you mean curee?"),
        (choice("curee", "smal"), "did you mean small?"),
        (choice("curee", "DR_9"), "dr_level=\"DR_9\" is no level of training curee; did you mean"),
        (choice("other", "DR_3"), "is no level of training other (it is one of curee)"),
        (choice("bare", "none"), "training bare has no command"),
        (
            TrainingChoice { seed: Some("-1".into()), ..choice("curee", "1") },
            "seed=-1 is not a whole number from 0 to 4294967295, which is what numpy and torch both take; the nearest is 0",
        ),
        (
            TrainingChoice { seed: Some("18446744073709551616".into()), ..choice("curee", "1") },
            "the nearest is 4294967295",
        ),
        (
            TrainingChoice { seed: Some("2".into()), ..choice("other", "DR_0") },
            "seed=2: training other takes none, since its command has no {seed}",
        ),
        (
            TrainingChoice { extra_args: "--seed=8".into(), ..choice("curee", "1") },
            "extra_args give --seed again, which training curee fills with {seed}",
        ),
        (
            TrainingChoice { extra_args: "it's".into(), ..choice("curee", "1") },
            "extra_args=\"it's\" has an open quote",
        ),
    ] {
        let failure = refused(&scene, choice).await;
        assert_eq!(failure.kind, FailureKind::BadInput, "{failure}");
        assert!(failure.message.contains(says), "{failure}");
    }
    assert_eq!(scene.fixture.requests().len(), asked, "bad input asks nobody");

    let gates = async |says: &[&str], choice: TrainingChoice| {
        let failure = refused(&scene, choice).await;
        assert_eq!(failure.kind, FailureKind::Refused, "{failure}");
        for says in says {
            assert!(failure.message.contains(says), "{says}: {failure}");
        }
    };
    // Markers: missing ones, all at once, and one that must not be.
    gates(
        &["/markers/patched is missing", "/markers/axis_PASS is missing"],
        choice("other", "DR_0"),
    )
    .await;
    scene.write("markers/patched", "");
    gates(&["/markers/patched is there, and training curee"], choice("curee", "1")).await;
    fs::remove_file(scene.at("markers/patched")).unwrap();

    // An edited upstream file, one with a second active line, one that is gone.
    for (text, says) in [
        (ENV_PY.replace("= 0.05 #", "= 0.06 #"), "radius = 0.06 (line 5)"),
        (
            ENV_PY.replace("        # radius = 0 #", "        radius = 0 #"),
            "2 active lines with radius",
        ),
        (ENV_PY.replace("        radius", "        #radius"), "0 active lines with radius"),
    ] {
        scene.write("code/env.py", &text);
        gates(&[says], choice("curee", "1")).await;
        assert_eq!(scene.env_py(), text);
    }
    fs::remove_file(scene.at("code/env.py")).unwrap();
    gates(&["/code/env.py is not there"], choice("curee", "1")).await;
    scene.write("code/env.py", ENV_PY);

    // Two checkouts: the one that is run is not the one that would be edited.
    fs::remove_file(scene.at("lab/direct")).unwrap();
    fs::create_dir(scene.at("lab/direct")).unwrap();
    scene.write("lab/direct/env.py", ENV_PY);
    gates(&["so there are two checkouts"], choice("curee", "1")).await;
    fs::remove_dir_all(scene.at("lab/direct")).unwrap();
    gates(&["/lab/direct/env.py or "], choice("curee", "1")).await;
    std::os::unix::fs::symlink("../code", scene.at("lab/direct")).unwrap();

    // The vehicle's own file says otherwise.
    let vehicle = scene.fixture.path("vehicle.yaml");
    fs::write(&vehicle, VEHICLE_YAML.replace("[0.0212", "[0.0213")).unwrap();
    gates(
        &["DR_1.volume_range: ", "vehicle.yaml:3: levels.small is [0.0213"],
        choice("curee", "0"),
    )
    .await;
    fs::write(&vehicle, "body:\n\tvolume: 1\n").unwrap();
    gates(&["vehicle.yaml: line 2: not YAML"], choice("curee", "1")).await;
    fs::remove_file(&vehicle).unwrap();
    gates(&["vehicle.yaml: No such file"], choice("curee", "1")).await;
    fs::write(&vehicle, VEHICLE_YAML).unwrap();

    // `why` tells the same without a launch.
    scene.write("markers/patched", "");
    let why =
        RunJobRequest { kind: JobKind::Training(choice("curee", "1")), ..RunJobRequest::default() };
    let why = scene.tether.why(&WhyRequest::Run(Box::new(why))).await.unwrap();
    assert_eq!((why.call, why.would_pass), ("launch_training", false));
    assert!(why.to_pass[0].contains("/markers/patched is there"), "{:?}", why.to_pass);
    fs::remove_file(scene.at("markers/patched")).unwrap();
    why_of_a_saved_plan(&scene).await;

    assert_eq!(scene.env_py(), ENV_PY);
    assert_eq!(snapshot(&scene), at_first);
    assert!(!scene.at("jobs").exists());
}

/// A saved dry run stays a training: its gates and edits are told, and without a pod what is not known.
async fn why_of_a_saved_plan(scene: &Scene) {
    let choice = TrainingChoice {
        seed: Some("9".to_owned()),
        extra_args: "--max_iterations 2".to_owned(),
        ..choice("curee", "1")
    };
    let dry = LaunchTrainingRequest { dry_run: true, ..launch(choice) };
    let planned = scene.launch(&dry).await;
    let plan = scene.fixture.path("plan.json");
    fs::write(&plan, serde_json::to_string(&planned).unwrap()).unwrap();
    let ran = run(&scene.fixture, &["why", plan.to_str().unwrap()], &[]).await;
    assert_eq!((ran.code, &ran.json["call"]), (0, &"launch_training".into()), "{}", ran.json);
    let told = &ran.json["training"];
    assert_eq!(told["command"].as_str(), planned.command.as_deref());
    assert_eq!((&told["level"], &told["seed"]), (&"DR_1".into(), &9.into()));
    assert_eq!(told["edits"][0]["from_level"], "DR_2");
    assert!(told["gates"].as_array().unwrap().iter().all(|gate| gate["holds"] == true), "{told}");
    assert_eq!((&told["estimate"]["sec"], &told["estimate"]["runs"]), (&60.into(), &0.into()));
    assert!(told.get("not_known").is_none());

    // Without the pod: what this computer holds is known, the rest is said not to be.
    let other = Fixture::with(TRAININGS);
    fs::write(other.path("vehicle.yaml"), VEHICLE_YAML.replace("0.0227", "0.9")).unwrap();
    let ran = run(&other, &["why", plan.to_str().unwrap()], &[]).await;
    assert_eq!(ran.code, 2, "{}", ran.json);
    let told = &ran.json["training"];
    let holds = |what: &str| {
        let mut gates = told["gates"].as_array().unwrap().iter();
        let gate = gates.find(|gate| gate["what"].as_str().unwrap().contains(what));
        gate.unwrap_or_else(|| panic!("{what}: {told}"))["holds"].clone()
    };
    assert_eq!(holds("markers/patched is not there"), Value::Null);
    assert_eq!(holds("holds a known level"), Value::Null);
    assert_eq!(holds("body.volume"), Value::from(false));
    assert_eq!(holds("levels.small"), Value::from(true));
    assert!(told["not_known"].as_str().unwrap().contains("no running pod"), "{told}");
    let ways = ran.json["to_pass"].to_string();
    assert!(ways.contains("ensure_pod") && ways.contains("body.volume"), "{ways}");
}

/// F04, and an edit in between: the file is compared before it is replaced, and a step that is made again
/// after its answer was lost finds its work done.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changed_since_it_was_read_is_left_alone_and_an_edit_made_twice_is_made_once() {
    let scene = Scene::set().await;
    let dry = LaunchTrainingRequest { dry_run: true, ..launch(choice("curee", "DR_3")) };
    let planned = scene.launch(&dry).await;
    let step = &planned.plan.as_ref().unwrap()[0];
    let made = ENV_PY.replace("= 0.05 #", "= 0.075 #").replace(
        "[0.019747843530591773, 0.02574784353059178]",
        "[0.018247843530591775, 0.027247843530591776]",
    );
    let run = |stdin: &str| {
        use std::io::Write as _;
        let mut child = std::process::Command::new("bash")
            .args(&words(step.command.as_ref().unwrap())[1..])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
        let ran = child.wait_with_output().unwrap();
        (ran.status.code().unwrap(), String::from_utf8(ran.stdout).unwrap())
    };
    let names = || fs::read_dir(scene.at("code")).unwrap().count();
    // Somebody else's edit in between.
    scene.write("code/env.py", &format!("{ENV_PY}# mine\n"));
    assert_eq!(run(&made).0, 6);
    assert_eq!(scene.env_py(), format!("{ENV_PY}# mine\n"));
    scene.write("code/env.py", ENV_PY);
    // A connection that is cut looks like an early end of file.
    assert_eq!(run(&made[..made.len() / 2]).0, 1);
    assert_eq!((scene.env_py().as_str(), names()), (ENV_PY, 1));
    let sum = sha256_hex(made.as_bytes());
    assert_eq!(run(&made), (0, format!("replaced {sum}\n")));
    assert_eq!(run(&made), (0, format!("already {sum}\n")));
    assert_eq!((scene.env_py(), names()), (made.clone(), 1));
    // The whole call again goes on from there.
    let answer = scene.launch(&launch(choice("curee", "DR_3"))).await;
    assert_eq!((answer.edits[0].lines, answer.edits[0].from_level.as_str()), (0, "DR_3"));
    scene.ended(&answer.job_id).await;
    assert_eq!(scene.env_py(), made);
}

/// A training that writes what the real one does: the line that names its folder, blocks, a checkpoint.
const RUN_SH: &str = r#"
folder=logs/2026-07-17_09-00-00_mine
mkdir -p "$folder/params"
echo "[INFO] Exact experiment name requested from command line: 2026-07-17_09-00-00"
for i in 0 1; do
  printf '%080d\n' 0 | tr 0 '#'
  printf '%50s\n\n' "Learning iteration $i/2"
  printf '%35s %s\n' 'Mean reward:' "$((i + 3)).17"
  printf '%080d\n' 0 | tr 0 -
  printf '%35s %s\n' 'Total timesteps:' $(((i + 1) * 100))
done
echo weights >"$folder/model_1.pt"
echo more >"$folder/notes.txt"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn supervise_launches_a_training_and_finds_what_its_run_has_left() {
    let scene = Scene::set().await;
    scene.write("lab/train.sh", RUN_SH);
    let fixture = &scene.fixture;
    // A refusal stops nothing and names what was asked for.
    let wrong = Run::start(fixture, &["--training", "curee", "--dr", "DR_8"]).end().await;
    assert_eq!((wrong.code, &wrong.summary["mode"]), (2, &Value::from("training")), "{wrong:?}");
    assert_eq!(wrong.file()["spec"]["level"], "DR_8");
    assert!(wrong.stderr.contains("did you mean DR_0?"), "{}", wrong.stderr);
    for arguments in [
        &["--training", "curee", "--command", "true"][..],
        &["--dr", "1"],
        &["--training", "curee", "--seed", "-1"],
    ] {
        let refused = Run::start(fixture, arguments).end().await;
        assert_eq!(refused.code, 2, "{arguments:?}: {refused:?}");
    }
    assert_eq!(fixture.status().await, "RUNNING");

    let arguments = [
        "--training",
        "curee",
        "--dr",
        "small",
        "--seed",
        "9",
        "--extra-args",
        "--max_iterations 2",
    ];
    let outcome = Run::start(fixture, &arguments).end().await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let summary = outcome.file();
    let spec = &summary["spec"];
    assert_eq!(
        (&summary["mode"], &spec["training"], &spec["level"], &spec["seed"]),
        (&"training".into(), &"curee".into(), &"DR_1".into(), &"9".into())
    );
    assert_eq!((&spec["vehicle"], &spec["name"]), (&VEHICLE.into(), &"train-curee-dr-1-s9".into()));
    assert_eq!(spec["edits"][0]["from_level"], "DR_2");
    assert!(spec["command"].as_str().unwrap().ends_with(" --max_iterations 2"), "{spec}");
    assert_eq!(summary["pulled"]["analysis"]["complete"], true);
    let results = &summary["results"];
    assert_eq!(
        (&results["run_dir"], &results["is_new"]),
        (&"2026-07-17_09-00-00_mine".into(), &true.into())
    );
    assert_eq!((&results["reward_lines"], &results["iterations"]), (&2.into(), &2.into()));
    assert_eq!(results["files"][0]["name"], "model_1.pt");
    assert_eq!(results["files"][0]["sha256"], sha256_hex(b"weights\n"));
    assert_eq!(results["files"][1]["name"], "notes.txt");
    assert_eq!(results["missing"], serde_json::json!([]));
    let id = summary["job_id"].as_str().unwrap();
    let beside = fixture.path("logs/jobs").join(id).join("results.json");
    let beside: Value = serde_json::from_slice(&fs::read(beside).unwrap()).unwrap();
    assert_eq!(beside, *results);
    assert_eq!(fixture.status().await, "EXITED");
}
