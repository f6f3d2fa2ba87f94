//! `podtether pod-shim`: what the stand-in programs of a local pod call.

use crate::cloud::local::run_shim;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct PodShimArgs {
    /// The pod's folder.
    #[arg(long)]
    pod: PathBuf,
    /// The program it stands in for, and that program's own arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    words: Vec<OsString>,
}

/// Runs it and returns the exit code.
pub fn run(args: &PodShimArgs) -> u8 {
    #[expect(
        clippy::disallowed_methods,
        reason = "a stand-in has the interface of the program that it stands in for"
    )]
    let key = std::env::var("RUNPOD_API_KEY").ok();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            super::print::note(&format!("could not start: {error}"));
            return 1;
        }
    };
    let output = runtime.block_on(run_shim(&args.pod, &args.words, key.as_deref()));
    let _ = std::io::stdout().lock().write_all(output.out.as_bytes());
    let _ = std::io::stderr().lock().write_all(output.err.as_bytes());
    output.code
}
