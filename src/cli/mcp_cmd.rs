//! `podtether mcp`: the MCP server on stdin and stdout.

use super::logging;
use super::open::{self, ConfigArgs};
use crate::mcp;
use crate::ops;
use futures_util::FutureExt as _;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Arguments of `podtether mcp`.
#[derive(Debug, clap::Args)]
pub struct McpArgs {
    #[command(flatten)]
    config: ConfigArgs,
}

/// Serves until the client goes away.
pub fn run(args: &McpArgs) -> u8 {
    let start = match args.config.start() {
        Ok(start) => Arc::new(start),
        Err(failure) => return open::failed(&failure, false),
    };
    let _log = logging::start(&start.env);
    let opener: mcp::Opener = Box::new(move || {
        let start = Arc::clone(&start);
        async move {
            let (tether, secrets) = ops::open(&start, open::clock()).await?;
            Ok((Arc::new(tether.arming_fuses()), secrets))
        }
        .boxed()
    });
    let served = open::block_on(async {
        let stop = CancellationToken::new();
        super::signals::cancel_on_signal(stop.clone());
        let (reader, writer) = rmcp::transport::io::stdio_pipes();
        mcp::serve(opener, reader, writer, stop).await
    });
    match served {
        Ok(Ok(())) => 0,
        Ok(Err(why)) => {
            // Through the log: stderr may be a pipe that nobody reads (G11).
            tracing::error!("the MCP server ended: {why}");
            1
        }
        Err(failure) => open::failed(&failure, false),
    }
}
