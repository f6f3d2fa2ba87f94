//! `podtether train-auv`.

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct TrainAuvArgs {}

/// Runs it and returns the exit code.
pub fn run(_: &TrainAuvArgs) -> u8 {
    super::print::note("not in this build");
    2
}
