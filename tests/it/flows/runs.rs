//! `podtether runs` and the records behind it, on the local cloud: a small training in bash prints what
//! rsl_rl prints and writes checkpoints; what is odd about a run is said, and nothing of it is fatal.

use super::fixture::{Fixture, VEHICLE};
use super::seeing::{Ran, run};
use super::supervised::{Run, summary};
use podtether::digest::sha256_hex;
use podtether::ops::{LaunchTrainingRequest, RunJobRequest, Tether, TrainingChoice};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

const TRAINING: &str = r#"
labels: {group: from-the-file}
trainings:
  walk:
    vehicle: rover
    workdir: lab
    command: "bash train.sh {seed} {noise}"
    default_level: small
    levels:
      small: {values: {noise: "0.1"}}
      large: {values: {noise: "0.5"}}
    expect: {iterations: 3, iterations_option: --iterations, startup_sec: 5, ms_per_iteration: 1000, reward: [95, 100]}
    logs: {root: lab/runs, run_line: "run folder:"}
    artifacts: ["model_{last}.pt"]
"#;

/// What a training prints and leaves. `NAMED` is the folder that it names, `MADE` those that it makes.
fn script(named: &str, made: &[&str], reward: &str, after: &str) -> String {
    let folders = made.join(" ");
    format!(
        r#"
for folder in {folders}; do mkdir -p "runs/$folder"; done
echo "[INFO] run folder: {named}"
for i in 0 1 2; do
  printf '%080d\n' 0 | tr 0 '#'
  printf '%50s\n\n' "Learning iteration $i/3"
  printf '%35s %s\n' 'Mean reward:' "{reward}"
  printf '%080d\n' 0 | tr 0 -
  printf '%35s %s\n' 'Total timesteps:' $(((i + 1) * 100))
  printf '%35s %s\n' 'ETA:' 0.0s
  for folder in {folders}; do echo "weights $i $1 $2" >"runs/$folder/model_$i.pt"; done
done
{after}
"#
    )
}

struct Scene {
    fixture: Fixture,
    tether: Tether,
}

impl Scene {
    async fn set() -> Self {
        let fixture = Fixture::with(TRAINING);
        fs::write(fixture.path("uv.lock"), "pinned\n").unwrap();
        let tether = fixture.tether().await;
        fixture.running(&tether).await;
        let scene = Self { fixture, tether };
        fs::create_dir_all(scene.at("lab/runs/2026-07-01_00-00-00")).unwrap();
        scene
    }

    fn at(&self, name: &str) -> PathBuf {
        self.fixture.volume().join(name)
    }

    fn train_by(&self, text: &str) {
        fs::write(self.at("lab/train.sh"), text).unwrap();
    }

    async fn launch(&self, level: &str) -> String {
        let choice = TrainingChoice {
            training: "walk".to_owned(),
            dr_level: Some(level.to_owned()),
            ..TrainingChoice::default()
        };
        let request = LaunchTrainingRequest { choice, ..LaunchTrainingRequest::default() };
        let id = self.tether.launch_training(&request).await.unwrap().job_id;
        self.ended(&id).await;
        id
    }

    async fn ended(&self, id: &str) {
        let code = self.at(&format!("jobs/{id}/exit_code"));
        self.fixture.until("the end of the job", async || code.exists()).await;
    }

    async fn pull(&self, subdir: &str) {
        let answer = self.tether.sync_logs(subdir, None, false, |_| ()).await.unwrap();
        assert!(answer.complete, "{answer:?}");
    }

    fn record(&self, id: &str) -> Value {
        let path = self.fixture.path("logs/runs").join(format!("{id}.json"));
        serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
    }

    /// `podtether runs …` without a key, a pod or a cloud that answers.
    async fn runs(&self, arguments: &[&str]) -> Ran {
        let all = [&["runs"], arguments].concat();
        run(&self.fixture, &all, &[]).await
    }

    async fn list(&self, arguments: &[&str]) -> Vec<Value> {
        let ran = self.runs(&[&["list"], arguments].concat()).await;
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.json["runs"].as_array().unwrap().clone()
    }
}

fn told(record: &Value) -> String {
    let told = record["results"]["told"].as_array().unwrap();
    told.iter().map(|told| told.as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_supervised_training_is_listed_shown_and_compared_by_files_alone() {
    let scene = Scene::set().await;
    scene.train_by(&script("2026-07-17_09-00-00", &["2026-07-17_09-00-00_mine"], "96.50", ""));
    let arguments = ["--training", "walk", "--seed", "7", "--group", "ablation", "--agent", "ann"];
    let outcome = Run::start(&scene.fixture, &arguments).end().await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let bad = Run::start(&scene.fixture, &["--training", "walk", "--group", "a b"]).end().await;
    assert!(bad.code == 2 && bad.stderr.contains("for example \"a-b\""), "{bad:?}");
    assert!(outcome.stderr.contains("expected: 8 s"), "{}", outcome.stderr);
    let id = outcome.summary["job_id"].as_str().unwrap().to_owned();
    let record = scene.record(&id);
    let results = &record["results"];
    assert_eq!(*results, outcome.summary["results"]);
    assert_eq!(results["run_dir"], "2026-07-17_09-00-00_mine");
    assert_eq!((&results["is_new"], &results["missing"]), (&json!(true), &json!([])));
    let words = told(&record);
    for says in ["the one that is new", "3 reward lines, one for each", "within the 95 to 100"] {
        assert!(words.contains(says), "{words}");
    }
    let last = &results["files"][0];
    assert_eq!((&last["name"], &last["bytes"]), (&json!("model_2.pt"), &json!(16)));
    assert_eq!(last["sha256"], sha256_hex(b"weights 2 7 0.1\n"));
    assert_eq!(record["provenance"]["group"], "ablation");
    assert_eq!(record["seen"]["state"], "succeeded");
    assert_eq!(record["supervised"]["exit_code"], 0);
    assert!(record["cost"]["micros"].as_i64().unwrap() > 0, "{record}");
    let homes = record["home"].as_array().unwrap();
    assert_eq!(homes.len(), 2, "{record}");

    // A second one, another level and seed, whose pod was stopped in between.
    let tether = scene.fixture.tether().await;
    scene.fixture.running(&tether).await;
    scene.train_by(&script("2026-07-18_09-00-00", &["2026-07-18_09-00-00"], "12.00", ""));
    let arguments = ["--training", "walk", "--dr", "large"];
    let by = [("PODTETHER_AGENT", "ann")];
    let outcome = Run::start_with(&scene.fixture, &arguments, &by).end().await;
    assert_eq!(outcome.code, 0, "a reward that was not reached fails no run: {outcome:?}");
    assert!(outcome.stderr.contains("by one earlier run of walk"), "{}", outcome.stderr);
    let second = outcome.summary["job_id"].as_str().unwrap().to_owned();
    assert!(told(&scene.record(&second)).contains("did not reach the 95 to 100"));
    assert_eq!(scene.record(&second)["provenance"]["group"], "from-the-file");

    // Whatever becomes of the cloud: only files are read.
    let requests = scene.fixture.requests().len();
    let all = scene.list(&[]).await;
    let ids: Vec<&str> = all.iter().map(|run| run["job_id"].as_str().unwrap()).collect();
    assert_eq!(ids, [second.as_str(), id.as_str()]);
    let first = &all[1];
    assert_eq!(
        (&first["training"], &first["level"], &first["seed"], &first["state"]),
        (&json!("walk"), &json!("small"), &json!(7), &json!("succeeded"))
    );
    assert_eq!((&first["iteration"], &first["reward"]), (&json!(2), &json!(96.5)));
    let per = first["usd_per_iteration"].as_f64().unwrap();
    assert!(per > 0.0 && per <= first["usd"].as_f64().unwrap(), "{first}");
    for (filter, count) in [
        (&["--group", "ablation"][..], 1),
        (&["--agent", "ann", "--state", "succeeded"], 2),
        (&["--agent", "ann", "--vehicle", VEHICLE, "--training", "walk", "--since", "1h"], 2),
        (&["--training", "run"], 0),
        (&["--since", "2100-01-01"], 0),
        (&["--limit", "1"], 1),
    ] {
        assert_eq!(scene.list(filter).await.len(), count, "{filter:?}");
    }
    let bad = scene.runs(&["list", "--since", "tuesday"]).await;
    assert_eq!((bad.code, &bad.json["failure"]["kind"]), (2, &json!("bad_input")));
    // A slip is not told as "nothing was run".
    let bad = scene.runs(&["list", "--state", "succeded"]).await;
    assert_eq!((bad.code, &bad.json["failure"]["kind"]), (2, &json!("bad_input")));
    assert!(bad.json["failure"]["message"].to_string().contains("did you mean succeeded?"));
    let slip = scene.runs(&["list", "--vehicle", "rovr"]).await;
    assert_eq!((slip.code, slip.json["runs"].as_array().map(Vec::len)), (0, Some(0)));
    assert!(
        slip.json["unheard_of"][0].to_string().contains("did you mean rover?"),
        "{}",
        slip.json
    );
    let twice = scene.runs(&["compare", &id, &id]).await;
    assert_eq!(twice.code, 2, "{}", twice.json);
    assert!(
        twice.json["failure"]["message"].to_string().contains("is named twice"),
        "{}",
        twice.json
    );

    let shown = scene.runs(&["show", &id]).await;
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert_eq!(shown.json["record_is_as_written"], true);
    assert_eq!(shown.json["provenance"]["training"]["values"]["noise"], "0.1");
    assert!(shown.json["provenance"]["lockfiles"]["uv.lock"].is_string());
    let wrong = scene.runs(&["show", "19990101-000000_x_0000"]).await;
    assert_eq!(wrong.code, 2);
    let message = wrong.json["failure"]["message"].as_str().unwrap();
    assert!(message.contains("did you mean") && message.contains(&id), "{message}");

    let compared = scene.runs(&["compare", &id, &second]).await;
    let differ = |part: &str| -> Vec<String> {
        let all = compared.json[part].as_array().unwrap();
        all.iter().map(|it| it["what"].as_str().unwrap().to_owned()).collect()
    };
    let origin = differ("origin");
    for what in ["group", "training.level", "training.seed", "training.values.noise", "command"] {
        assert!(origin.iter().any(|it| it == what), "{what}: {origin:?}");
    }
    for same in ["image", "gpu", "lockfiles.uv.lock", "agent", "training.recipe_sha256"] {
        assert!(!origin.iter().any(|it| it == same), "{same}: {origin:?}");
    }
    let outcome = differ("outcome");
    for what in ["reward", "reward reached"] {
        assert!(outcome.iter().any(|it| it == what), "{what}: {outcome:?}");
    }
    assert!(differ("files").contains(&"model_2.pt".to_owned()), "{}", compared.json);
    assert!(compared.json["equal"].as_u64().unwrap() > 5, "{}", compared.json);
    assert_eq!(scene.fixture.requests().len(), requests, "no request was sent");

    // Changed by hand.
    let path = scene.fixture.path("logs/runs").join(format!("{id}.json"));
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("96.5", "99.9")).unwrap();
    assert_eq!(scene.runs(&["show", &id]).await.json["record_is_as_written"], false);
}

/// Doubt about a run's folder is said and never guessed away; a launch without supervise is completed by
/// pulls, in any order.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_odd_about_a_runs_folder_is_said() {
    let scene = Scene::set().await;
    // The line and the folder do not agree.
    scene.train_by(&script("2026-07-19_00-00-00", &["2026-07-17_00-00-00"], "1.0", ""));
    let odd = scene.launch("small").await;
    assert_eq!(scene.record(&odd)["results"], Value::Null);
    assert_eq!(scene.list(&[]).await[0]["state"], "unknown");
    scene.pull(&format!("jobs/{odd}")).await;
    let words = told(&scene.record(&odd));
    assert!(words.contains("no folder that is new since the launch has that name"), "{words}");
    assert!(words.contains("sync_logs with subdir=\"lab/runs\""), "{words}");
    assert_eq!(scene.record(&odd)["results"]["run_dir"], Value::Null);
    assert_eq!(scene.list(&[]).await[0]["state"], "succeeded");

    // Two new folders; the log names one of them.
    scene.train_by(&script(
        "2026-07-20_00-00-00",
        &["2026-07-20_00-00-00", "2026-07-21_00-00-00"],
        "1.0",
        "",
    ));
    let two = scene.launch("small").await;
    scene.pull("lab/runs").await;
    assert_eq!(scene.record(&two)["results"], Value::Null, "its log is not here yet");
    scene.pull(&format!("jobs/{two}")).await;
    let record = scene.record(&two);
    assert_eq!(record["results"]["run_dir"], "2026-07-20_00-00-00");
    let words = told(&record);
    assert!(words.contains("+2 folders") && words.contains("2026-07-21"), "{words}");
    let file = |record: &Value| record["results"]["files"][0].clone();
    assert_eq!(file(&record)["name"], "model_2.pt");
    // Not hashed a second time: the pull of the runs tells.
    scene.pull("lab/runs").await;
    assert_eq!(file(&scene.record(&two))["sha256"], sha256_hex(b"weights 2 1 0.1\n"));

    // A checkpoint that is missing, and a name that is none.
    let gone = "rm runs/*/model_2.pt";
    scene.train_by(&script("2026-07-22_00-00-00", &["2026-07-22_00-00-00"], "1.0", gone));
    let less = scene.launch("small").await;
    scene.pull("lab/runs").await;
    scene.pull(&format!("jobs/{less}")).await;
    let record = scene.record(&less);
    assert_eq!(record["results"]["missing"], json!(["model_2.pt"]));
    assert!(told(&record).contains("missing at the end: model_2.pt"));
    scene.train_by(&script("../../$(id)", &["2026-07-23_00-00-00"], "1.0", ""));
    let hostile = scene.launch("small").await;
    scene.pull(&format!("jobs/{hostile}")).await;
    let record = scene.record(&hostile);
    assert_eq!(record["results"]["run_dir"], Value::Null);
    assert!(told(&record).contains("has no line"), "{}", told(&record));
    // What was found at the end stands, although later runs have made folders since.
    scene.pull("lab/runs").await;
    let record = scene.record(&less);
    assert!(told(&record).contains("it is the one that is new"), "{}", told(&record));
    assert_eq!(file(&record)["sha256"], sha256_hex(b"weights 0 1 0.1\n"));
}

/// C01: who supervised it is gone; the run is listed as it was last seen. What lies among the records and
/// is none is named, and hides nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_supervisor_was_killed_is_listed_and_foreign_files_are_named() {
    let scene = Scene::set().await;
    let wait = "until test -e go; do sleep 0.05; done";
    scene.train_by(&script("2026-07-17_09-00-00", &["2026-07-17_09-00-00"], "96.50", wait));
    let arguments = ["--training", "walk", "--interval", "1"];
    let supervise = Run::start(&scene.fixture, &arguments);
    scene
        .fixture
        .until("a look that saw the last iteration", async || {
            let summaries = super::supervised::summaries(&scene.fixture);
            summaries.first().is_some_and(|path| {
                let text = fs::read(path).unwrap_or_default();
                let value: Value = serde_json::from_slice(&text).unwrap_or_default();
                value["latest_metrics"]["iteration"] == 2
            })
        })
        .await;
    let listed = scene.list(&[]).await;
    assert_eq!(listed[0]["state"], "running", "{listed:?}");
    supervise.kill_group();
    let (_, left) = summary(&scene.fixture);
    let id = left["job_id"].as_str().unwrap();
    let listed = scene.list(&["--state", "unknown"]).await;
    assert_eq!(listed[0]["job_id"], id);
    let words = listed[0]["state_told"].as_str().unwrap();
    assert!(words.contains("last seen running") && words.contains("is gone"), "{words}");
    assert_eq!((&listed[0]["iteration"], &listed[0]["reward"]), (&json!(2), &json!(96.5)));

    // A pull in between completes nothing: its end is still to come.
    scene.pull("lab/runs").await;
    scene.pull(&format!("jobs/{id}")).await;
    let record = scene.record(id);
    assert!(told(&record).contains("had not ended"), "{}", told(&record));
    assert_eq!((&record["results"]["missing"], &record["ended_at"]), (&json!([]), &Value::Null));

    let folder = scene.fixture.path("logs/runs");
    let text = fs::read_to_string(folder.join(format!("{id}.json"))).unwrap();
    fs::write(folder.join("notes.txt"), "mine").unwrap();
    fs::write(folder.join("\u{1b}[2Jx.json"), &text).unwrap();
    fs::write(folder.join("20260101-000000_other_00ab.json"), &text).unwrap();
    let newer = text.replace("\"version\": 1", "\"version\": 9");
    fs::write(folder.join("20260102-000000_newer_00ab.json"), newer).unwrap();
    let ran = scene.runs(&["list"]).await;
    assert_eq!((ran.code, ran.json["runs"].as_array().unwrap().len()), (0, 1), "{}", ran.json);
    let troubles = ran.json["troubles"].to_string();
    for says in ["notes.txt", "newer podtether", "another job than its name", "no job's id"] {
        assert!(troubles.contains(says), "{says}: {troubles}");
    }
    // Without its record the journal still tells of it.
    fs::remove_file(folder.join(format!("{id}.json"))).unwrap();
    let listed = scene.list(&[]).await;
    assert_eq!((&listed[0]["job_id"], &listed[0]["seed"]), (&json!(id), &json!(1)));
    fs::write(scene.at("lab/go"), "").unwrap();
}

/// Every job has a record, not only a training; a dry run leaves none.
#[tokio::test(flavor = "multi_thread")]
async fn a_plain_job_has_a_record_too() {
    let scene = Scene::set().await;
    let request = RunJobRequest {
        name: "plain".to_owned(),
        command: "echo hello; exit 3".to_owned(),
        ..RunJobRequest::default()
    };
    let id = scene.tether.run_job(&request).await.unwrap().job_id;
    scene.ended(&id).await;
    scene.pull("jobs").await;
    let record = scene.record(&id);
    assert_eq!(
        (&record["seen"]["state"], &record["seen"]["exit_code"]),
        (&json!("failed"), &json!(3))
    );
    assert_eq!((&record["results"], &record["command"]), (&Value::Null, &json!(request.command)));
    let dry = RunJobRequest { dry_run: true, ..request };
    scene.tether.run_job(&dry).await.unwrap();
    assert_eq!(scene.list(&[]).await.len(), 1);
}
