//! Logs go to stderr, at `warn` unless `PODTETHER_LOG` says otherwise: a client may show them, and
//! rmcp tells every notification at `info`.

use crate::config::Environment;
use tracing_subscriber::EnvFilter;

/// Starts logging; a second start changes nothing.
pub fn start(env: &Environment) {
    let filter = env.log_filter().and_then(|text| EnvFilter::try_new(text).ok());
    let filter = filter.unwrap_or_else(|| EnvFilter::new("warn"));
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .try_init();
}
