//! `podtether local-cloud`.

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct LocalCloudArgs {}

/// Runs it and returns the exit code.
pub fn run(_: &LocalCloudArgs) -> u8 {
    super::print::note("not in this build");
    2
}
