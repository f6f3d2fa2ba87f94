//! One way to people: a queue, and a task that sends one notice after the other, so that they arrive
//! in order.

use super::notice::Message;
use super::webhook::Webhook;
use super::{Desktop, ONE_NOTICE};
use crate::config::{Environment, WebhookShape};
use crate::secret::scrub;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;

/// How many notices may wait. A run has a handful; a channel that hangs must not collect more.
const QUEUE: usize = 32;
/// A keychain that is asked for an address (up to 20 s), and the notice after it.
pub(super) const LONGEST_TRY: Duration = Duration::from_secs(27);

/// Where a channel leads.
pub(super) enum Target {
    Desktop(Desktop),
    /// The address is being read, on a thread of its own.
    Webhook(JoinHandle<Result<Webhook, String>>),
}

impl Target {
    /// A webhook whose address is read from now on.
    pub(super) fn webhook(shape: WebhookShape, env: Environment, account: Option<String>) -> Self {
        Self::Webhook(tokio::task::spawn_blocking(move || {
            let address = crate::key_source::webhook_url(&env, account.as_deref())
                .map_err(|error| error.to_string())?;
            Webhook::new(shape, &address, ONE_NOTICE).map_err(|error| error.to_string())
        }))
    }
}

/// What became of the notices of a channel.
#[derive(Default)]
struct Told {
    errors: Vec<String>,
    under_way: usize,
}

/// A channel that works.
pub(super) struct Channel {
    name: &'static str,
    told: Arc<Mutex<Told>>,
    at_work: Mutex<Option<(Sender<Message>, JoinHandle<()>)>>,
}

impl Channel {
    /// Starts it on the runtime of the caller.
    pub(super) fn start(name: &'static str, target: Target) -> Self {
        let told = Arc::new(Mutex::new(Told::default()));
        let (sender, queue) = channel(QUEUE);
        let task = tokio::spawn(work(name, target, queue, Arc::clone(&told)));
        Self { name, told, at_work: Mutex::new(Some((sender, task))) }
    }

    pub(super) const fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn send(&self, message: Message) {
        let at_work = locked(&self.at_work);
        let Some((sender, _)) = at_work.as_ref() else { return };
        // Counted before it can be done.
        locked(&self.told).under_way += 1;
        if sender.try_send(message).is_err() {
            let mut told = locked(&self.told);
            told.under_way -= 1;
            told.add(self.name, "too many notices wait already");
        }
    }

    /// Closes the queue, waits for what is in it, and says what did not get through.
    pub(super) async fn settle(&self, at_most: Duration) -> Vec<String> {
        let at_work = locked(&self.at_work).take();
        let Some((sender, mut task)) = at_work else { return Vec::new() };
        drop(sender);
        if locked(&self.told).under_way == 0 {
            // Nobody waits for a keychain that was asked in vain.
            task.abort();
        } else if tokio::time::timeout(at_most, &mut task).await.is_err() {
            task.abort();
        }
        let mut told = locked(&self.told);
        let mut errors = std::mem::take(&mut told.errors);
        if told.under_way > 0 {
            let (count, seconds) = (told.under_way, at_most.as_secs());
            let name = self.name;
            errors.push(format!("{name}: {count} not sent within {seconds} s"));
        }
        errors
    }
}

impl Told {
    fn add(&mut self, name: &str, error: &str) {
        let error = format!("{name}: {error}");
        if !self.errors.contains(&error) {
            tracing::warn!("a notice did not get through: {error}");
            self.errors.push(error);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn work(
    name: &'static str,
    target: Target,
    mut queue: Receiver<Message>,
    told: Arc<Mutex<Told>>,
) {
    let ready = match target {
        Target::Desktop(desktop) => Ready::Desktop(desktop),
        Target::Webhook(webhook) => match webhook.await {
            Ok(Ok(webhook)) => Ready::Webhook(Box::new(webhook)),
            Ok(Err(why)) => Ready::Not(why),
            Err(_) => Ready::Not("its address could not be read".to_owned()),
        },
    };
    if let Ready::Not(why) = &ready {
        // Now, while somebody may still be there to mend it.
        tracing::warn!("notices will not get through: {name}: {why}");
    }
    while let Some(message) = queue.recv().await {
        // Each has a bound of its own, with better words; this one holds whatever is inside.
        let bound = ONE_NOTICE + Duration::from_millis(200);
        let sent = tokio::time::timeout(bound, ready.deliver(&message)).await;
        let error = match sent {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error),
            Err(_) => Some(format!("gave no answer within {} s", ONE_NOTICE.as_secs())),
        };
        let mut told = locked(&told);
        told.under_way -= 1;
        if let Some(error) = error {
            told.add(name, &error);
        }
    }
}

enum Ready {
    Desktop(Desktop),
    Webhook(Box<Webhook>),
    Not(String),
}

impl Ready {
    async fn deliver(&self, message: &Message) -> Result<(), String> {
        match self {
            Self::Desktop(desktop) => {
                desktop.show(message, ONE_NOTICE).await.map_err(|error| error.to_string())
            }
            Self::Webhook(webhook) => {
                // Its address may stand in a log that is quoted.
                let text = scrub(&message.text, webhook.hidden());
                let message = Message { text, ..message.clone() };
                webhook.post(&message).await.map_err(|error| error.to_string())
            }
            Self::Not(why) => Err(why.clone()),
        }
    }
}
