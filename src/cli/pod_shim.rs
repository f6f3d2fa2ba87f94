//! `podtether pod-shim`.

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct PodShimArgs {}

/// Runs it and returns the exit code.
pub fn run(_: &PodShimArgs) -> u8 {
    super::print::note("not in this build");
    2
}
