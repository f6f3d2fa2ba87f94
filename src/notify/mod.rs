//! Telling people: on the screen and by a webhook. Whoever tells goes on at once and never fails for it;
//! at the end what is still under way is waited for, within bounds.

mod channel;
mod desktop;
mod notice;
mod threshold;
mod webhook;

pub use desktop::{Desktop, DesktopError, Screen};
pub use notice::{Message, Notice, NoticeKind, TEXT_MAX};
pub use threshold::Threshold;
pub use webhook::{Webhook, WebhookError};

use crate::config::{CloudChoice, Config, Environment, Notify};
use crate::secret::Secret;
use channel::{Channel, Target};
use futures_util::future::join_all;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Longest time for one notice on one channel.
pub const ONE_NOTICE: Duration = Duration::from_secs(5);
/// How long the last notices are waited for at the end of a command: one that hangs, and one after it.
pub const SETTLE: Duration = Duration::from_secs(11);
/// The same when somebody asked to leave at once.
pub const SETTLE_IN_HASTE: Duration = Duration::from_secs(2);

/// What became of a try of one channel.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Tried {
    /// desktop or webhook.
    pub channel: &'static str,
    /// Why it did not get through; missing when it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The channels that the config names, each with a queue of its own. Cheap to clone; without channels
/// it is silent and costs nothing.
#[derive(Clone, Default)]
pub struct Notifier {
    channels: Arc<[Channel]>,
    is_local: bool,
    secrets: Arc<[Secret]>,
}

impl Notifier {
    /// One that tells nobody.
    #[must_use]
    pub fn silent() -> Self {
        Self::default()
    }

    /// The channels of a config. Must be called on a tokio runtime. The webhook's address is read now,
    /// beside everything else: later there may be nobody to unlock a keychain. `secrets` are kept out
    /// of every text.
    #[must_use]
    pub fn new(config: &Config, env: &Environment, secrets: &[Secret]) -> Self {
        let is_local = matches!(config.cloud, CloudChoice::Local { .. });
        Self::of(&config.notify, config.keychain_account.clone(), is_local, env, secrets)
    }

    /// The same where there is no config to ask: `account` is the keychain's.
    #[must_use]
    pub fn of(
        notify: &Notify,
        account: Option<String>,
        is_local: bool,
        env: &Environment,
        secrets: &[Secret],
    ) -> Self {
        let desktop = notify.desktop.then(|| {
            let desktop = Desktop::new(Screen::of_this_system(), env);
            Channel::start("desktop", Target::Desktop(desktop))
        });
        let webhook = notify
            .webhook
            .map(|shape| Channel::start("webhook", Target::webhook(shape, env.clone(), account)));
        let key = env.api_key().cloned();
        Self {
            channels: desktop.into_iter().chain(webhook).collect(),
            is_local,
            secrets: secrets.iter().cloned().chain(key).collect(),
        }
    }

    /// The channels of the config that a command would find; silent when that cannot be read. For
    /// commands that do without a config.
    #[must_use]
    pub fn find(config: Option<&Path>, env: &Environment, cwd: &Path) -> Self {
        let found = crate::config::find(config, env, cwd);
        match found.and_then(|path| crate::config::load(&path, env)) {
            Ok(config) => Self::new(&config, env, &[]),
            Err(_) => Self::silent(),
        }
    }

    /// Whether there is nobody to tell.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.channels.is_empty()
    }

    /// Queues a notice and returns at once. One that is lost on the way is sent again a few times, with
    /// growing pauses, as long as the command goes on. What becomes of it is told by [`Self::settle`] and
    /// the log.
    pub fn send(&self, notice: &Notice) {
        if !self.is_silent() {
            let message = notice.written(self.is_local, &self.secrets);
            self.channels.iter().for_each(|channel| channel.send(message.clone()));
        }
    }

    /// Takes no more notices and waits at most `at_most` for those under way. Returns what did not get
    /// through, in words; nothing on a second call.
    pub async fn settle(&self, at_most: Duration) -> Vec<String> {
        let settled = self.channels.iter().map(|channel| channel.settle(at_most));
        join_all(settled).await.into_iter().flatten().collect()
    }

    /// Tells one thing and waits for it: for a command that has nothing else to do.
    pub async fn tell(&self, notice: &Notice) -> Vec<String> {
        self.send(notice);
        self.settle(SETTLE).await
    }

    /// Sends a test on every channel and says what became of each.
    pub async fn try_out(&self) -> Vec<Tried> {
        let text = "If you can read this, notices reach you.";
        self.send(&Notice::general(NoticeKind::Test, text));
        let tried = self.channels.iter().map(async |channel| {
            let errors = channel.settle(channel::LONGEST_TRY).await;
            let error = (!errors.is_empty()).then(|| errors.join("; "));
            Tried { channel: channel.name(), error }
        });
        join_all(tried).await
    }
}

impl std::fmt::Debug for Notifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.channels.iter().map(Channel::name).collect();
        f.debug_struct("Notifier").field("channels", &names).finish_non_exhaustive()
    }
}
