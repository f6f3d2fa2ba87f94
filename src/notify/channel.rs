//! One way to people: a queue, and a task that sends one notice after the other, so that they arrive
//! in order.

use super::notice::Message;
use super::notice::NoticeKind;
use super::webhook::Webhook;
use super::{Desktop, ONE_NOTICE};
use crate::config::{Environment, WebhookShape};
use crate::secret::scrub;
use std::collections::VecDeque;
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

/// The pauses before a notice that was lost is sent again, while the command goes on. Those behind it wait,
/// so that they arrive in order.
const PAUSES: [Duration; 3] =
    [Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(30)];
/// The pause at the end of a command, where somebody waits.
const LAST_PAUSE: Duration = Duration::from_secs(1);
/// How often each is sent then.
const LAST_TRIES: usize = 2;

/// What became of the notices of a channel.
#[derive(Default)]
struct Told {
    errors: Vec<String>,
    under_way: usize,
    /// Why the last one is sent again.
    lost: Option<String>,
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
            let why =
                told.lost.take().map_or_else(String::new, |why| format!("; the last try: {why}"));
            errors.push(format!("{name}: {count} not sent within {seconds} s{why}"));
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
    let mut waiting: VecDeque<Waiting> = VecDeque::new();
    let mut is_open = true;
    loop {
        let Some(first) = waiting.front_mut() else {
            match queue.recv().await {
                Some(message) => waiting.push_back(Waiting { message, tries: 0, last_tries: 0 }),
                None => return,
            }
            continue;
        };
        // Each has a bound of its own, with better words; this one holds whatever is inside.
        let bound = ONE_NOTICE + Duration::from_millis(200);
        let sent = tokio::time::timeout(bound, ready.deliver(&first.message)).await;
        let late = || Lost::again(format!("gave no answer within {} s", ONE_NOTICE.as_secs()));
        let sent = sent.unwrap_or_else(|_| Err(late()));
        first.tries += 1;
        first.last_tries += usize::from(!is_open);
        let pause = first.pause(is_open);
        match (sent, pause) {
            (Err(Lost { why, may_be_sent_again: true }), Some(pause)) => {
                tracing::info!("a notice is sent again: {name}: {why}");
                locked(&told).lost = Some(why);
                is_open = collect(&mut queue, &mut waiting, pause, is_open).await;
            }
            (sent, _) => {
                let was_tried_again = first.tries > 1;
                waiting.pop_front();
                let mut told = locked(&told);
                (told.under_way, told.lost) = (told.under_way - 1, None);
                if let Err(Lost { why, .. }) = sent {
                    let again = if was_tried_again { " (also when sent again)" } else { "" };
                    told.add(name, &format!("{why}{again}"));
                }
            }
        }
    }
}

/// A notice that is to be sent.
struct Waiting {
    message: Message,
    tries: usize,
    /// Those since the end of the command.
    last_tries: usize,
}

impl Waiting {
    /// How long to wait before it is sent again; `None` when it is given up. A test tells what is so.
    fn pause(&self, is_open: bool) -> Option<Duration> {
        match is_open {
            _ if self.message.kind == NoticeKind::Test => None,
            true => PAUSES.get(self.tries.saturating_sub(1)).copied(),
            false => (self.last_tries < LAST_TRIES).then_some(LAST_PAUSE),
        }
    }
}

/// Waits, and takes what comes meanwhile; whether more can come. The end of the queue ends the wait.
async fn collect(
    queue: &mut Receiver<Message>,
    waiting: &mut VecDeque<Waiting>,
    pause: Duration,
    is_open: bool,
) -> bool {
    let mut pause = std::pin::pin!(tokio::time::sleep(pause));
    if !is_open {
        pause.await;
        return false;
    }
    loop {
        tokio::select! {
            () = &mut pause => return true,
            message = queue.recv() => match message {
                Some(message) => waiting.push_back(Waiting { message, tries: 0, last_tries: 0 }),
                None => return false,
            },
        }
    }
}

/// Why a notice did not get through.
struct Lost {
    why: String,
    may_be_sent_again: bool,
}

impl Lost {
    const fn again(why: String) -> Self {
        Self { why, may_be_sent_again: true }
    }

    const fn for_good(why: String) -> Self {
        Self { why, may_be_sent_again: false }
    }
}

enum Ready {
    Desktop(Desktop),
    Webhook(Box<Webhook>),
    Not(String),
}

impl Ready {
    async fn deliver(&self, message: &Message) -> Result<(), Lost> {
        match self {
            Self::Desktop(desktop) => desktop
                .show(message, ONE_NOTICE)
                .await
                .map_err(|error| Lost::for_good(error.to_string())),
            Self::Webhook(webhook) => {
                // Its address may stand in a log that is quoted.
                let text = scrub(&message.text, webhook.hidden());
                let message = Message { text, ..message.clone() };
                webhook.post(&message).await.map_err(|error| Lost {
                    why: error.to_string(),
                    may_be_sent_again: error.may_be_sent_again(),
                })
            }
            Self::Not(why) => Err(Lost::for_good(why.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::Notice;

    fn waiting(kind: NoticeKind, tries: usize, last_tries: usize) -> Waiting {
        let message = Notice::general(kind, "x").written(false, &[]);
        Waiting { message, tries, last_tries }
    }

    /// What a receiver that is away costs has an end, also in the middle of a run of days.
    #[test]
    fn a_notice_is_sent_again_a_few_times_with_growing_pauses_and_then_given_up() {
        let pauses: Vec<_> =
            (1..=9).map_while(|tries| waiting(NoticeKind::Ended, tries, 0).pause(true)).collect();
        assert_eq!(pauses, PAUSES);
        assert!(pauses.is_sorted());
        let last = |last_tries| waiting(NoticeKind::StopFailed, 1, last_tries).pause(false);
        assert_eq!((last(0), last(1), last(2)), (Some(LAST_PAUSE), Some(LAST_PAUSE), None));
        assert_eq!(waiting(NoticeKind::Test, 1, 1).pause(false), None, "a test tells what is so");
    }
}
