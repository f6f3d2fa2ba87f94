//! Logs go to stderr, at `warn` unless `PODTETHER_LOG` says otherwise: a client may show them, and
//! rmcp tells every notification at `info`.

use super::log_writer::{LastWords, LogWriter};
use crate::config::Environment;
use tracing_subscriber::EnvFilter;

/// Starts logging; a second start changes nothing. What it returns is kept until the command ends.
#[must_use]
pub fn start(env: &Environment) -> LastWords {
    let filter = env.log_filter().and_then(|text| EnvFilter::try_new(text).ok());
    let filter = filter.unwrap_or_else(|| EnvFilter::new("warn"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false);
    let writer = LogWriter::to_stderr().ok();
    let _ = match &writer {
        Some(writer) => log.with_writer(writer.clone()).try_init(),
        None => log.with_writer(std::io::stderr).try_init(),
    };
    // The default hook writes to stderr by itself and would wait where the log does not.
    std::panic::set_hook(Box::new(|panic| tracing::error!("a mistake in podtether: {panic}")));
    LastWords(writer)
}
