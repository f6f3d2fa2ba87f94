//! One training from start to end: iterations, console blocks, files. The folder looks like a run
//! of Isaac Lab: `params/`, checkpoints, and a table of the curve.

use super::console::{self, Timing};
use super::learner::{Learner, Report, Settings};
use super::params;
use super::policy::{ACTIONS, OBSERVATIONS};
use crate::clock::Clock;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Checkpoints are at most this many iterations apart, as in the research code.
const SAVE_INTERVAL: u64 = 50;
/// A short run has at least about this many checkpoints.
const FEWEST_CHECKPOINTS: u64 = 6;
/// Fresh starts for the closing evaluation.
const EVALUATED_STARTS: usize = 20;

const TABLE_HEAD: &str = "iteration,mean_reward,mean_episode_length,action_noise_std,\
                          position_error_m,attitude_error_rad,total_steps,elapsed_s\n";

/// Why a training did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The folder holds a training; two in one folder could not be told apart.
    #[error("{} already holds a training; give --out another folder", .folder.display())]
    FolderTaken {
        /// The folder.
        folder: PathBuf,
    },
    /// A file could not be written.
    #[error("could not write {}; check that the disk has room and the folder is writable", .path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Trains for `iterations` and leaves everything in `out`, which must not hold a training yet.
/// `say` gets the console's text, piece by piece, each without its last line end.
///
/// # Errors
/// [`RunError`]: the folder is taken, or a file could not be written.
pub fn run(
    settings: Settings,
    iterations: u64,
    out: &Path,
    clock: &dyn Clock,
    say: &mut dyn FnMut(&str),
) -> Result<(), RunError> {
    let interval = save_interval(iterations);
    let mut table = open(out)?;
    let params = out.join("params");
    fs::create_dir_all(&params).map_err(at(&params))?;
    write_whole(&params.join("env.yaml"), &params::env(&settings))?;
    write_whole(&params.join("agent.yaml"), &params::agent(&settings, iterations, interval))?;
    say(&format!("[INFO] Setting seed: {}", settings.seed));
    say(&format!("[INFO] Logging experiment in directory: {}", out.display()));

    let mut learner = Learner::new(settings);
    let start = clock.monotonic();
    for iteration in 0..iterations {
        let begun = clock.monotonic();
        let batch = learner.collect();
        let collected = clock.monotonic();
        let report = learner.update(&batch);
        let updated = clock.monotonic();
        let timing = Timing {
            collection: collected.saturating_sub(begun),
            learning: updated.saturating_sub(collected),
            elapsed: updated.saturating_sub(start),
        };
        say(&console::block(&report, iterations, &timing));
        // One write per row, so that a copy taken meanwhile ends with a whole row.
        let row = table_row(&report, &timing);
        table.write_all(row.as_bytes()).map_err(at(&out.join("progress.csv")))?;
        if iteration % interval == 0 || iteration + 1 == iterations {
            let path = out.join(format!("model_{iteration}.json"));
            write_whole(&path, &checkpoint(&learner, &report, &settings))?;
        }
    }
    let result = learner.evaluate(EVALUATED_STARTS);
    say(&format!(
        "[INFO] Evaluation without noise over {EVALUATED_STARTS} unseen starts: mean reward {:.2}, \
         final position error {:.3} m, final attitude error {:.1} deg",
        result.reward,
        result.position_error,
        result.attitude_error.to_degrees()
    ));
    Ok(())
}

/// Iterations between two checkpoints; the first and the last iteration always have one.
fn save_interval(iterations: u64) -> u64 {
    (iterations / FEWEST_CHECKPOINTS).clamp(1, SAVE_INTERVAL)
}

/// Claims the folder: whoever creates the table owns it.
fn open(out: &Path) -> Result<File, RunError> {
    fs::create_dir_all(out).map_err(at(out))?;
    let path = out.join("progress.csv");
    let mut table = File::create_new(&path).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => RunError::FolderTaken { folder: out.to_owned() },
        _ => RunError::Write { path: path.clone(), source },
    })?;
    table.write_all(TABLE_HEAD.as_bytes()).map_err(at(&path))?;
    Ok(table)
}

fn table_row(report: &Report, timing: &Timing) -> String {
    format!(
        "{},{:.4},{:.2},{:.4},{:.4},{:.4},{},{:.3}\n",
        report.iteration,
        report.mean_reward,
        report.mean_length,
        report.action_noise_std,
        report.position_error,
        report.attitude_error,
        report.total_steps,
        timing.elapsed.as_secs_f64()
    )
}

fn checkpoint(learner: &Learner, report: &Report, settings: &Settings) -> String {
    let content = serde_json::json!({
        "iteration": report.iteration,
        "seed": settings.seed,
        "mean_reward": report.mean_reward,
        "observations": OBSERVATIONS,
        "actions": ACTIONS,
        "weights": learner.policy().weights(),
    });
    format!("{content}\n")
}

/// Writes a file so that it is there whole or not at all: a pull may come at any moment.
fn write_whole(path: &Path, content: &str) -> Result<(), RunError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let write = || {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(content.as_bytes())?;
        file.persist(path).map_err(|failure| failure.error)
    };
    write().map(drop).map_err(at(path))
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> RunError + use<> {
    let path = path.to_owned();
    |source| RunError::Write { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::watch::metrics::MetricsParser;

    fn small() -> Settings {
        Settings { envs: 4, episode_steps: 10, ..Settings::default() }
    }

    fn train(out: &Path, iterations: u64) -> Result<String, RunError> {
        let mut text = String::new();
        let mut say = |piece: &str| text.extend([piece, "\n"]);
        run(small(), iterations, out, &SystemClock::new(), &mut say)?;
        Ok(text)
    }

    #[test]
    fn a_run_leaves_its_curve_its_checkpoints_and_its_parameters() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("deep/run");
        let text = train(&out, 13).unwrap();

        let mut parser = MetricsParser::new();
        parser.push(text.as_bytes());
        assert_eq!(parser.blocks().len(), 13);
        let table = fs::read_to_string(out.join("progress.csv")).unwrap();
        assert_eq!(table.lines().count(), 14);
        let columns = |line: &str| line.split(',').count();
        assert!(table.lines().all(|line| columns(line) == columns(TABLE_HEAD)));

        let mut names: Vec<String> = fs::read_dir(&out)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with("model_"))
            .collect();
        names.sort_by_key(|name| name.len());
        names.sort_by_key(|name| {
            name.trim_matches(|c: char| !c.is_ascii_digit()).parse::<u64>().unwrap()
        });
        let expected = [0, 2, 4, 6, 8, 10, 12].map(|it| format!("model_{it}.json"));
        assert_eq!(names, expected);
        let model = fs::read_to_string(out.join("model_12.json")).unwrap();
        let model: serde_json::Value = serde_json::from_str(&model).unwrap();
        assert_eq!(model["weights"].as_array().unwrap().len(), OBSERVATIONS * ACTIONS);

        for name in ["params/env.yaml", "params/agent.yaml"] {
            let yaml = fs::read_to_string(out.join(name)).unwrap();
            let value: serde_json::Value = serde_saphyr::from_str(&yaml).unwrap();
            assert_eq!(value["seed"], 1, "{name}");
        }
    }

    #[test]
    fn a_folder_with_a_training_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        train(folder.path(), 1).unwrap();
        let before = fs::read(folder.path().join("progress.csv")).unwrap();
        let refused = train(folder.path(), 2);
        assert!(matches!(refused, Err(RunError::FolderTaken { .. })), "{refused:?}");
        assert_eq!(fs::read(folder.path().join("progress.csv")).unwrap(), before);
    }

    #[test]
    fn checkpoints_are_never_more_than_fifty_iterations_apart() {
        assert_eq!([1, 5, 60, 400, 2500].map(save_interval), [1, 1, 10, 50, 50]);
    }
}
