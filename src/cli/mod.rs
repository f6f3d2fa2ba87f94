//! The command line: one file per subcommand with its arguments and its rendering, no behaviour.

mod local_cloud;
mod pod_shim;
pub mod print;
mod train_auv;
mod transport;

use clap::{Parser, Subcommand};

/// Keeps cloud GPU pods on a tether.
#[derive(Debug, Parser)]
#[command(name = "podtether", version, about, propagate_version = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the local cloud: a twin of RunPod on loopback, for $0.
    LocalCloud(local_cloud::LocalCloudArgs),
    /// Programs of a local pod: runpodctl, nvidia-smi, setsid, timeout.
    #[command(hide = true)]
    PodShim(pod_shim::PodShimArgs),
    /// Train a controller for a simulated underwater vehicle; the demo's job.
    #[command(hide = true)]
    TrainAuv(train_auv::TrainAuvArgs),
    /// The remote shell that rsync is given: pipes stdin and stdout through one SSH channel.
    #[command(hide = true)]
    Transport(transport::TransportArgs),
}

/// Runs one command and returns the process's exit code.
#[must_use]
pub fn run(cli: Cli) -> u8 {
    match cli.command {
        Command::LocalCloud(args) => local_cloud::run(&args),
        Command::PodShim(args) => pod_shim::run(&args),
        Command::TrainAuv(args) => train_auv::run(&args),
        Command::Transport(args) => transport::run(&args),
    }
}
