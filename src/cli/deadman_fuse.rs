//! The hidden process behind `podtether deadman`: first a step that leaves the starter's session and
//! its process tree, then the fuse.

use super::{open, print};
use crate::config::{Environment, Notify, WebhookShape};
use crate::deadman::{self, News, NewsKind, Order};
use crate::notify::{Notice, NoticeKind, Notifier, SETTLE};
use std::io::Read as _;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct FuseArgs {
    /// The second of the two processes.
    #[arg(long)]
    seated: bool,
}

/// Runs it.
pub fn run(args: &FuseArgs) -> u8 {
    if args.seated { seated() } else { depart() }
}

/// Starts the fuse in a session of its own and goes, so that nobody finds it among the children of
/// what armed it (C01: harnesses end whole trees).
fn depart() -> u8 {
    let started = deadman::leave_session().and_then(|()| {
        let program = std::env::current_exe()?;
        #[expect(clippy::disallowed_methods, reason = "the fuse outlives whatever armed it")]
        let mut command = std::process::Command::new(program);
        command.args(["deadman", "fuse", "--seated"]).spawn()
    });
    match started {
        Ok(_) => 0,
        Err(error) => {
            print::note(&format!("the fuse could not be started: {error}"));
            1
        }
    }
}

fn seated() -> u8 {
    let _ = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_env_filter("podtether=info,warn")
        .try_init();
    let mut bytes = Vec::new();
    let order = std::io::stdin()
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())
        .and_then(|_| Order::from_wire(&bytes).map_err(str::to_owned));
    drop(bytes);
    let order = match order {
        Ok(order) => order,
        Err(why) => {
            print::note(&format!("the fuse has no order: {why}"));
            return 1;
        }
    };
    let ran = open::block_on(async {
        deadman::stand_fast();
        let notifier = notifier(&order);
        let (reply, fuse) = deadman::fuse(order, open::clock()).await;
        print::data(&reply);
        // Whoever waits for the end of its own output must not wait for the fuse's.
        if let Err(error) = detach() {
            tracing::warn!(%error, "the fuse's pipes stay open");
        }
        match fuse {
            Some(fuse) => {
                let code = fuse.run(&|news| notifier.send(&notice(news))).await;
                // The pod is off and the summary written, or all is lost: now there is time.
                for error in notifier.settle(SETTLE).await {
                    tracing::warn!("a notice did not get through: {error}");
                }
                code
            }
            None => 2,
        }
    });
    ran.unwrap_or(1)
}

/// Who is told, as the order says. The webhook's address is read now: when the fuse fires there may be nobody
/// to unlock a keychain. Neither that nor a broken channel is ever waited for before the stop.
fn notifier(order: &Order) -> Notifier {
    let telling = order.telling();
    let notify = Notify {
        desktop: telling.desktop,
        webhook: telling.webhook.as_deref().and_then(WebhookShape::parse),
    };
    let env = Environment::from_process();
    let account = telling.keychain_account.clone();
    Notifier::of(&notify, account, order.is_local(), &env, &order.secrets())
}

fn notice(news: &News) -> Notice {
    let kind = match news.kind {
        NewsKind::Fires => NoticeKind::Paged,
        NewsKind::InVain | NewsKind::MayBill => NoticeKind::StopFailed,
        NewsKind::Stopped => NoticeKind::Stopped,
    };
    Notice::of(kind, &news.vehicle, news.text.as_str())
}

fn detach() -> std::io::Result<()> {
    let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(())
}
