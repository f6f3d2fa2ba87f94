//! The example that a newcomer copies, as it is: its setup from PyPI and a real training on the local
//! cloud.

use super::of_repository;
use crate::flows::fixture::Fixture;
use podtether::domain::JobState;
use podtether::ops::{
    JobStatusAnswer, LaunchTrainingRequest, SetUpRequest, Tether, TrainingChoice,
};
use serde_json::Value;
use std::fs;
use std::time::{Duration, Instant};

/// From PyPI, over whatever line this machine has.
const CEILING: Duration = Duration::from_secs(900);

async fn ended(tether: &Tether, id: &str) -> JobStatusAnswer {
    let begun = Instant::now();
    loop {
        let status = tether.job_status(id, 200, None).await.unwrap();
        if status.state.has_ended() {
            return status;
        }
        assert!(begun.elapsed() < CEILING, "{status:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The example's own `setup:` and `trainings:`, in a config whose files lie beside it as they do in the
/// example.
pub fn with_example() -> Fixture {
    let example = fs::read_to_string(of_repository("examples/quickstart/podtether.yaml")).unwrap();
    let section = |name: &str| {
        let from = example.find(&format!("\n{name}:")).unwrap() + 1;
        let to = example[from..].find("\n\n").map_or(example.len(), |at| from + at + 1);
        &example[from..to]
    };
    let config = format!("{}{}", section("setup"), section("trainings"));
    let fixture = Fixture::with(&config.replace("vehicle: quickstart", "vehicle: rover"));
    for file in ["setup.sh", "train.py", "requirements.txt"] {
        let bytes = fs::read(of_repository("examples/quickstart").join(file)).unwrap();
        fs::write(fixture.path(file), bytes).unwrap();
    }
    fixture
}

#[tokio::test(flavor = "multi_thread")]
async fn the_quickstart_is_set_up_from_pypi_and_learns() {
    let fixture = with_example();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let setup = tether.run_pod_setup(&SetUpRequest::default()).await.unwrap();
    let status = ended(&tether, &setup.job_id).await;
    let no_network = ["Could not find a version", "Connection", "Temporary failure"];
    if status.state != JobState::Succeeded
        && std::env::var_os("CI").is_none()
        && no_network.iter().any(|word| status.log_tail.contains(word))
    {
        println!("skipped: PyPI is out of reach: {}", status.log_tail);
        return;
    }
    assert_eq!(status.state, JobState::Succeeded, "{}", status.log_tail);
    assert_eq!(status.step.as_deref(), Some("3/3 ok check: train.py starts"));

    // Repeated, it finds everything.
    let again = tether.run_pod_setup(&SetUpRequest::default()).await.unwrap();
    let status = ended(&tether, &again.job_id).await;
    assert!(status.log_tail.contains("2/3 ok environment: was there"), "{}", status.log_tail);

    let train = LaunchTrainingRequest {
        choice: TrainingChoice {
            training: "cartpole".to_owned(),
            dr_level: Some("wide".to_owned()),
            seed: Some("1".to_owned()),
            extra_args: "--iterations 12".to_owned(),
        },
        auto_stop: false,
        force: false,
        dry_run: false,
    };
    let job = tether.launch_training(&train).await.unwrap();
    let status = ended(&tether, &job.job_id).await;
    assert_eq!(status.state, JobState::Succeeded, "{}", status.log_tail);
    let metrics = status.latest_metrics.unwrap();
    assert_eq!((metrics.iteration, metrics.total_iterations), (11, Some(12)));

    let synced = tether.sync_logs("quickstart/runs", None, false, |_| {}).await.unwrap();
    assert!(synced.complete, "{synced:?}");
    let runs = fixture.path("logs/quickstart/runs");
    let run = fs::read_dir(runs).unwrap().next().unwrap().unwrap().path();
    for iteration in 0..12 {
        assert!(run.join(format!("model_{iteration}.npz")).is_file(), "{iteration}");
    }
    let result: Value =
        serde_json::from_slice(&fs::read(run.join("result.json")).unwrap()).unwrap();
    // An untrained policy balances for about 20 steps; this one has learned, on any machine.
    assert!(result["reward"].as_f64().unwrap() > 100.0, "{result}");
}
