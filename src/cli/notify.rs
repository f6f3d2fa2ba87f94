//! `podtether notify --test`: one notice on every channel that the config names, and what became of it.

use super::open::{self, ConfigArgs};
use super::{logging, print};
use crate::config;
use crate::error::{Failure, FailureKind};
use crate::notify::{Notifier, Tried};

/// Arguments of `podtether notify`.
#[derive(Debug, clap::Args)]
pub struct NotifyArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Send a test on every channel under `notify` in the config.
    #[arg(long, required = true)]
    test: bool,
    /// Print one JSON object on stdout instead of lines for people.
    #[arg(long)]
    json: bool,
}

/// Runs it: 0 every channel took it, 1 one did not, 2 no channel is set or wrong usage.
pub fn run(args: &NotifyArgs) -> u8 {
    match open::block_on(tried(args)) {
        Ok(Ok(tried)) => {
            let ok = tried.iter().all(|tried| tried.error.is_none());
            if args.json {
                print::data(&serde_json::json!({"ok": ok, "channels": tried}).to_string());
            } else {
                tried.iter().for_each(|tried| print::data(&line(tried)));
            }
            u8::from(!ok)
        }
        Ok(Err(failure)) | Err(failure) => open::failed(&failure, args.json),
    }
}

/// Neither the cloud nor its key is needed for this.
async fn tried(args: &NotifyArgs) -> Result<Vec<Tried>, Failure> {
    let start = args.config.start()?;
    let _log = logging::start(&start.env);
    let broken = |error| Failure::new(FailureKind::Config, error, "nothing was sent");
    let path = config::find(start.config.as_deref(), &start.env, &start.cwd).map_err(broken)?;
    let config = config::load(&path, &start.env).map_err(broken)?;
    let notifier = Notifier::new(&config, &start.env, &[]);
    if notifier.is_silent() {
        return Err(Failure::new(
            FailureKind::Config,
            format!("no channel is set under notify in {}", path.display()),
            "write notify: {desktop: true}, or notify: {webhook: ntfy} or {webhook: slack}",
        ));
    }
    Ok(notifier.try_out().await)
}

fn line(tried: &Tried) -> String {
    match &tried.error {
        None => format!("{}: taken; look whether it reached you", tried.channel),
        Some(error) => error.clone(),
    }
}
