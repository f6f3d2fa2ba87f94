//! `podtether transport`.

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct TransportArgs {}

/// Runs it and returns the exit code.
pub fn run(_: &TransportArgs) -> u8 {
    super::print::note("not in this build");
    2
}
