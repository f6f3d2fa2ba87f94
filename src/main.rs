//! Parses the arguments, runs one command and turns its outcome into an exit code.

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(podtether::cli::run(podtether::cli::Cli::parse()))
}
