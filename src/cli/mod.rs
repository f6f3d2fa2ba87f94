//! The command line: one file per subcommand with its arguments and its rendering, no behaviour.

mod audit;
mod campaign;
mod deadman;
mod deadman_fuse;
mod deadman_tick;
mod deadman_timer;
mod demo;
mod drill;
mod local_cloud;
mod log_writer;
mod logging;
mod mcp_cmd;
mod notify;
mod open;
mod pod_shim;
pub mod print;
mod progress;
mod runs;
mod runs_view;
mod signals;
mod stop;
mod supervise;
mod train_auv;
mod transport;
mod watch;
mod watch_replay;
mod watch_view;
mod why;

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
    /// Serve the MCP tools on stdin and stdout.
    Mcp(mcp_cmd::McpArgs),
    /// Run a job under supervision: launch, follow, capture, stop, read back.
    Supervise(Box<supervise::SuperviseArgs>),
    /// Follow a job's log and page on failure, plateau and stall; changes nothing.
    Watch(watch::WatchArgs),
    /// The laptop's fuse: stops a pod at a deadline, whatever became of who armed it.
    Deadman(deadman::DeadmanArgs),
    /// Stop pods and read them back; needs no config that works.
    Stop(stop::StopArgs),
    /// List every pod and volume of the account and whose it is.
    Audit(audit::AuditArgs),
    /// List the runs that were launched from here, show one, compare several; changes nothing.
    Runs(runs::RunsArgs),
    /// Explain what a call would come to, rule by rule; changes nothing.
    Why(why::WhyArgs),
    /// Try the notices that the config asks for, on the screen and by a webhook.
    Notify(notify::NotifyArgs),
    /// Let every fuse of a vehicle strike on purpose, under a cap in dollars, and keep receipts.
    Drill(drill::DrillArgs),
    /// See the whole of it work on the local cloud, for $0.
    Demo(demo::DemoArgs),
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
        Command::Mcp(args) => mcp_cmd::run(&args),
        Command::Supervise(args) => match &args.chain {
            Some(file) => campaign::run(&args, file),
            None => supervise::run(&args),
        },
        Command::Watch(args) if args.replay.is_some() => watch_replay::run(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Deadman(args) => deadman::run(&args),
        Command::Stop(args) => stop::run(&args),
        Command::Audit(args) => audit::run(&args),
        Command::Runs(args) => runs::run(&args),
        Command::Why(args) => why::run(&args),
        Command::Notify(args) => notify::run(&args),
        Command::Drill(args) => drill::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::LocalCloud(args) => local_cloud::run(&args),
        Command::PodShim(args) => pod_shim::run(&args),
        Command::TrainAuv(args) => train_auv::run(&args),
        Command::Transport(args) => transport::run(&args),
    }
}
