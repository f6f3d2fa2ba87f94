//! `podtether transport`: called by rsync, never by people.

use crate::config::Environment;
use crate::pod::transfer::transport::{self, SETTINGS_ENV, TransportSettings};
use std::ffi::OsString;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct TransportArgs {
    /// What rsync passes to its remote shell: `[-l USER] HOST WORD…`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Runs it and returns the exit code.
pub fn run(args: &TransportArgs) -> u8 {
    let settings = match settings() {
        Ok(settings) => settings,
        Err(error) => {
            super::print::note(&format!("podtether transport: Local: {error}"));
            return transport::FAILED;
        }
    };
    // One thread does the ciphers, the other moves rsync's bytes.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    match runtime {
        Ok(runtime) => {
            let code = runtime.block_on(transport::run(&settings, &args.words));
            // A thread may still be stuck reading a stdin that cannot be polled.
            runtime.shutdown_background();
            code
        }
        Err(error) => {
            super::print::note(&format!("podtether transport: Local: {error}"));
            transport::FAILED
        }
    }
}

fn settings() -> Result<TransportSettings, String> {
    let env = Environment::from_process();
    let path = env.transport().ok_or_else(|| {
        format!(
            "{SETTINGS_ENV} is not set; this subcommand is started by podtether's own transfers"
        )
    })?;
    TransportSettings::read(path)
}
