//! `podtether train-auv`: the demo's training.

use crate::clock::SystemClock;
use crate::training::auv::{Settings, run};
use std::path::PathBuf;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct TrainAuvArgs {
    /// How often the controller is improved.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    iterations: u64,
    /// Fixes everything random.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder for checkpoints and the curve; must not hold a training yet.
    #[arg(long)]
    out: PathBuf,
    /// Vehicles that swim in each iteration, an even number: they swim in pairs.
    #[arg(long, default_value_t = Settings::default().envs, value_parser = pairs)]
    envs: usize,
}

/// Runs it and returns the exit code: 0 trained, 1 a file could not be written, 2 the folder holds
/// a training already.
pub fn run(args: &TrainAuvArgs) -> u8 {
    let settings = Settings { seed: args.seed, envs: args.envs, ..Settings::default() };
    let mut say = |text: &str| super::print::data(text);
    match run::run(settings, args.iterations, &args.out, &SystemClock::new(), &mut say) {
        Ok(()) => 0,
        Err(error) => {
            super::print::note(&format!("train-auv: {error}"));
            if let Some(cause) = std::error::Error::source(&error) {
                super::print::note(&format!("  because: {cause}"));
            }
            if matches!(error, run::RunError::FolderTaken { .. }) { 2 } else { 1 }
        }
    }
}

fn pairs(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(envs) if (2..=65_536).contains(&envs) && envs.is_multiple_of(2) => Ok(envs),
        _ => Err("an even number from 2 to 65536".to_owned()),
    }
}
