//! The whole of podtether on the local cloud, for $0: plan, create, use, train under supervision,
//! capture, stop and read back. Nothing here is a shortcut: it goes through the same doors as a
//! real run, and only what was observed counts.

mod report;
mod scene;

pub use report::{Capture, DemoReport, Job, Spend, Stop};

use crate::clock::SharedClock;
use crate::cloud::local;
use crate::config::Environment;
use crate::error::{Failure, FailureKind};
use crate::notify::Notifier;
use crate::ops::{self, EnsureRequest, EnsureStatus, ExecRequest, RunJobRequest, Start, Tether};
use crate::supervise::{self, Note, Options, Summary};
use scene::Scene;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;

/// What the demo tells while it goes on.
#[derive(Clone, Debug)]
pub enum Say {
    /// A step begins.
    Step(String),
    /// Something was seen.
    Seen(String),
    /// The supervised job.
    Run(Note),
}

/// Runs the demo in `dir`, which is made anew.
///
/// # Errors
/// What broke off the demo. Whatever it started is stopped then, too.
pub async fn run(
    dir: &Path,
    program: PathBuf,
    clock: SharedClock,
    tell: &mut (dyn FnMut(Say) + Send),
) -> Result<DemoReport, Failure> {
    let began = clock.monotonic();
    let scene = Scene::set(dir).await?;
    let result = play(&scene, program, SharedClock::clone(&clock), tell).await;
    // Whatever happened, no local pod and no local cloud is left behind.
    let struck = local::stop(&scene.cloud_dir()).await;
    let mut report = result?;
    if let Err(error) = struck {
        report.fail(format!("the local cloud did not end: {error}"));
    }
    report.elapsed_sec = clock.monotonic().saturating_sub(began).as_secs_f64();
    Ok(report)
}

async fn play(
    scene: &Scene,
    program: PathBuf,
    clock: SharedClock,
    tell: &mut (dyn FnMut(Say) + Send),
) -> Result<DemoReport, Failure> {
    tell(Say::Step(
        "start the local cloud: a twin of RunPod on loopback, nothing costs anything".into(),
    ));
    let start = Start {
        config: Some(scene.config_file()),
        env: Environment::from_process().with_state_dir(&scene.dir().join("state")),
        cwd: scene.dir().to_owned(),
        program,
    };
    let (tether, _) = ops::open(&start, clock).await?;
    let tether = tether.arming_fuses();
    let vehicle = Some(scene::VEHICLE.to_owned());
    let ensure = |dry_run| EnsureRequest {
        vehicle: vehicle.clone(),
        dry_run,
        wait: Duration::from_secs(45),
    };

    tell(Say::Step("dry run of ensure_pod: the very requests that the real call sends".into()));
    let planned = tether.ensure_pod(&ensure(true)).await?;
    for step in planned.plan.iter().flatten() {
        if let Some(request) = &step.request {
            let body = request.body.as_ref().map_or_else(String::new, ToString::to_string);
            tell(Say::Seen(format!("{} {} {body}", request.method, request.path)));
        }
    }

    tell(Say::Step("ensure_pod: the same plan, approved and carried out".into()));
    let ensured = tether.ensure_pod(&ensure(false)).await?;
    tell(Say::Seen(ensured.message.clone()));
    if ensured.status != Some(EnsureStatus::Running) {
        return Err(Failure::new(
            FailureKind::Unconfirmed,
            ensured.message,
            "look into daemon.log in the demo's folder",
        ));
    }

    tell(Say::Step("exec_on_pod: nvidia-smi over SSH".into()));
    let query = "nvidia-smi --query-gpu=name,driver_version --format=csv,noheader && pwd";
    let exec = ExecRequest {
        command: query.into(),
        timeout_sec: 30,
        workdir: None,
        vehicle: vehicle.clone(),
    };
    let seen = tether.exec_on_pod(&exec).await?;
    if seen.exit_code != Some(0) {
        let message =
            format!("nvidia-smi over SSH ended with {:?}: {}", seen.exit_code, seen.stderr);
        return Err(Failure::new(FailureKind::PodCommand, message, "look into the demo's folder"));
    }
    tell(Say::Seen(seen.stdout.lines().collect::<Vec<_>>().join(" | ")));

    tell(Say::Step(
        "supervise: a real training (a pose controller for a simulated underwater vehicle)".into(),
    ));
    let options = Options {
        job: RunJobRequest {
            name: "train-auv".into(),
            command: scene::TRAINING.into(),
            max_runtime_sec: Some(300),
            vehicle: vehicle.clone(),
            ..RunJobRequest::default()
        },
        interval: Duration::from_secs(1),
        max_wait: None,
        backstop: Duration::from_secs(60),
        no_stop: false,
        sync_subdir: Some(scene::RESULTS.into()),
        pull_every: supervise::PULL_EVERY,
        summary_path: None,
        notifier: Notifier::silent(),
    };
    let (_keep_open, mut signals) = mpsc::unbounded_channel();
    let (summary, curve) =
        supervise::run(&tether, &options, &mut signals, &mut |note| tell(Say::Run(note))).await;

    tell(Say::Step("draw the reward curve".into()));
    let plot = draw(scene, &summary, &curve)?;
    tell(Say::Seen(plot.display().to_string()));

    tell(Say::Step("proof of stop: read the pod again".into()));
    let proof = proof_of_stop(&tether).await;
    tell(Say::Seen(proof.clone().unwrap_or_else(|failure| failure.message)));
    Ok(DemoReport::of(&tether, &summary, &curve, plot, proof.ok()))
}

fn draw(scene: &Scene, summary: &Summary, curve: &[(u64, f64)]) -> Result<PathBuf, Failure> {
    let subtitle = format!(
        "job {}, simulated 6-DOF underwater vehicle, local cloud",
        summary.job_id.as_deref().unwrap_or("none")
    );
    let io = |error: &dyn std::fmt::Display| {
        Failure::new(
            FailureKind::Internal,
            format!("the reward curve could not be drawn: {error}"),
            "is the disk full?",
        )
    };
    let png =
        crate::plot::reward_curve(curve, "Mean reward", &subtitle).map_err(|error| io(&error))?;
    let path = scene.plot_file();
    std::fs::write(&path, png).map_err(|error| io(&error))?;
    Ok(path)
}

/// What the provider says of the pod after everything is over, from a read of its own.
async fn proof_of_stop(tether: &Tether) -> Result<String, Failure> {
    let status = tether.pod_status(Some(scene::VEHICLE)).await?;
    Ok(status.pod.map_or_else(|| "no pod".to_owned(), |pod| pod.status))
}
