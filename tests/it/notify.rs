//! Notices, as a webhook and the screen's program receive them.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use podtether::config::{Environment, WebhookShape};
use podtether::notify::{Desktop, Notice, NoticeKind, Screen, TEXT_MAX, Webhook};
use podtether::secret::Secret;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Far above what a healthy receiver takes, also on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// How a receiver answers.
#[derive(Clone, Copy)]
pub enum Mood {
    Takes,
    /// With this status and a body that says the whole request back.
    Says(u16),
    /// So many times like that, and then it takes them.
    SaysFirst(usize, u16),
    /// Not at all, until the sender gives up.
    Hangs,
}

/// A request as it came in.
#[derive(Clone, Debug)]
pub struct Received {
    pub path_and_query: String,
    pub content_type: String,
    pub body: Value,
    pub at: chrono::DateTime<chrono::Utc>,
    /// When it was answered, or the sender gave up; null while neither is so.
    pub over_at: Option<chrono::DateTime<chrono::Utc>>,
}

/// A webhook's receiver on loopback. Gone with its runtime.
#[derive(Clone)]
pub struct Receiver {
    pub base: String,
    received: Arc<Mutex<Vec<Received>>>,
    mood: Mood,
}

struct Over(Arc<Mutex<Vec<Received>>>, usize);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.lock().unwrap()[self.1].over_at = Some(chrono::Utc::now());
    }
}

impl Receiver {
    pub async fn start(mood: Mood) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let receiver = Self { base, received: Arc::default(), mood };
        let app = Router::new().fallback(receive).with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        receiver
    }

    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// What was received, by ntfy's tag.
    pub fn tags(&self) -> Vec<String> {
        let tag = |one: Received| one.body["tags"][0].as_str().unwrap().to_owned();
        self.received().into_iter().map(tag).collect()
    }
}

async fn receive(
    State(receiver): State<Receiver>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, String) {
    let path_and_query = uri.path_and_query().unwrap().as_str().to_owned();
    let received = Received {
        path_and_query: path_and_query.clone(),
        content_type: headers["content-type"].to_str().unwrap().to_owned(),
        body: serde_json::from_slice(&body).unwrap(),
        at: chrono::Utc::now(),
        over_at: None,
    };
    let (over, place) = {
        let mut all = receiver.received.lock().unwrap();
        all.push(received);
        (Over(Arc::clone(&receiver.received), all.len() - 1), all.len())
    };
    let answer = match receiver.mood {
        Mood::Takes => (StatusCode::OK, "ok".to_owned()),
        Mood::SaysFirst(count, _) if place > count => (StatusCode::OK, "ok".to_owned()),
        Mood::Says(status) | Mood::SaysFirst(_, status) => {
            (StatusCode::from_u16(status).unwrap(), format!("no such hook: {path_and_query}"))
        }
        Mood::Hangs => std::future::pending().await,
    };
    drop(over);
    answer
}

/// Everything that has ever ended a string, a command or a document.
pub fn hostile() -> String {
    "\"double\" 'single' `id` $(touch /tmp/x) ${HOME} \\n \\\" %s %n; rm -rf / && \n\nsecond line\ttab
<!channel> <b>bold</b> &amp; <module> é 漢字 🦀 {\"json\": [1]} \u{2028} end tell"
        .to_owned()
}

fn without_entities(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

async fn post(
    shape: WebhookShape,
    receiver: &Receiver,
    address: &str,
    notice: &Notice,
) -> Received {
    let address = Secret::new(&format!("{}{address}", receiver.base)).unwrap();
    let webhook = Webhook::new(shape, &address, LONG).unwrap();
    webhook.post(&notice.written(false, &[])).await.unwrap();
    receiver.received().pop().unwrap()
}

/// The body is ntfy's JSON, at the server's root with the address's own query; text is only ever text.
#[tokio::test]
async fn ntfy_gets_its_json_at_the_root_with_the_text_byte_for_byte() {
    let receiver = Receiver::start(Mood::Takes).await;
    let notice = Notice::of(NoticeKind::StopFailed, "rover", hostile());
    let got = post(WebhookShape::Ntfy, &receiver, "/my-topic?auth=QmFzaWM", &notice).await;
    assert_eq!(got.path_and_query, "/?auth=QmFzaWM");
    assert_eq!(got.content_type, "application/json");
    let expected = json!({
        "topic": "my-topic", "title": "podtether: rover: STOP NOT CONFIRMED", "message": hostile(),
        "priority": 5, "tags": ["stop_failed"],
    });
    assert_eq!(got.body, expected);
}

/// A log that says `<!channel>` calls nobody.
#[tokio::test]
async fn slack_gets_its_json_without_control_sequences() {
    let receiver = Receiver::start(Mood::Takes).await;
    let notice = Notice::of(NoticeKind::Paged, "rover", hostile());
    let got = post(WebhookShape::Slack, &receiver, "/services/T0/B0/x", &notice).await;
    assert_eq!(got.path_and_query, "/services/T0/B0/x");
    let text = got.body["text"].as_str().unwrap();
    assert_eq!(got.body, json!({"text": text, "mrkdwn": false}));
    assert!(!text.contains(['<', '>']), "{text}");
    assert_eq!(without_entities(text), format!("podtether: rover: page\n{}", hostile()));
}

#[tokio::test]
async fn ten_kilobytes_arrive_cut_with_a_mark() {
    let receiver = Receiver::start(Mood::Takes).await;
    let notice = Notice::of(NoticeKind::Failed, "rover", "漢".repeat(3_500));
    let got = post(WebhookShape::Ntfy, &receiver, "/topic", &notice).await;
    let message = got.body["message"].as_str().unwrap();
    let whole = TEXT_MAX / 3;
    let mark = format!(" … ({} bytes cut)", (3_500 - whole) * 3);
    assert_eq!(message, format!("{}{mark}", "漢".repeat(whole)));
}

/// H01: the address is a secret; a receiver that says it back does not get it into our words.
#[tokio::test]
async fn no_error_shows_the_address() {
    let notice = Notice::general(NoticeKind::Test, "x").written(false, &[]);
    let failed = async |base: &str, wait| {
        let address =
            Secret::new(&format!("{base}/services/MARKER-path?auth=MARKER-query")).unwrap();
        let webhook = Webhook::new(WebhookShape::Slack, &address, wait).unwrap();
        webhook.post(&notice).await.unwrap_err().to_string()
    };
    let receiver = Receiver::start(Mood::Says(404)).await;
    let said = failed(&receiver.base, LONG).await;
    assert!(said.contains("404") && said.contains("no such hook: "), "{said}");
    let redirects = failed(&Receiver::start(Mood::Says(302)).await.base, LONG).await;
    let late = failed(&Receiver::start(Mood::Hangs).await.base, Duration::from_millis(300)).await;
    assert!(late.contains("no answer in time"), "{late}");
    let nobody = failed("http://127.0.0.1:9", LONG).await;
    assert!(nobody.contains("no connection"), "{nobody}");
    for said in [said, redirects, late, nobody] {
        assert!(!said.contains("MARKER") && !said.contains("127.0.0.1"), "{said}");
    }
}

/// A program that notes its arguments, each ended by NUL, in `record` beside it, and ends as told.
pub fn fake_screen(folder: &Path, program: &str, end: &str) {
    let path = folder.join(program);
    let script = format!("#!/bin/sh\nprintf '%s\\0' \"$@\" >>\"${{0%/*}}/record\"\n{end}\n");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// What a fake was called with.
pub fn recorded(folder: &Path) -> Vec<String> {
    let bytes = fs::read(folder.join("record")).unwrap_or_default();
    let text = String::from_utf8(bytes).unwrap();
    text.split_terminator('\0').map(str::to_owned).collect()
}

async fn shown(
    screen: Screen,
    end: &str,
    wait: Duration,
    text: &str,
) -> (Vec<String>, Result<(), String>) {
    let folder = tempfile::tempdir().unwrap();
    fake_screen(folder.path(), screen.program(), end);
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let env = Environment::isolated([("PATH", path.as_str()), ("RUNPOD_API_KEY", "MARKER-key")]);
    let message = Notice::of(NoticeKind::StopFailed, "rover", text).written(true, &[]);
    let outcome = Desktop::new(screen, &env).show(&message, wait).await;
    (recorded(folder.path()), outcome.map_err(|error| error.to_string()))
}

/// The words are arguments of a script that is the same for every notice.
#[tokio::test]
async fn osascript_gets_the_words_as_arguments_and_not_in_its_script() {
    let (arguments, outcome) = shown(Screen::Osascript, "exit 0", LONG, &hostile()).await;
    assert_eq!(outcome, Ok(()));
    let title = "podtether (local cloud, $0): rover: STOP NOT CONFIRMED";
    let script =
        "display notification (item 2 of argv) with title (item 1 of argv) sound name \"Basso\"";
    let expected = ["-e", "on run argv", "-e", script, "-e", "end run", title, &hostile()];
    assert_eq!(arguments, expected);
}

#[tokio::test]
async fn notify_send_gets_the_words_after_the_end_of_its_options() {
    let text = format!("--replace-id=1 {}", hostile());
    let (arguments, outcome) = shown(Screen::NotifySend, "exit 0", LONG, &text).await;
    assert_eq!(outcome, Ok(()));
    let title = "podtether (local cloud, $0): rover: STOP NOT CONFIRMED";
    assert_eq!(arguments[..4], ["--app-name=podtether", "--urgency=critical", "--", title]);
    assert_eq!((without_entities(&arguments[4]), arguments.len()), (text, 5));
    assert!(!arguments[4].contains('<'), "{arguments:?}");
}

#[tokio::test]
async fn a_screen_that_fails_hangs_or_is_not_there_is_told() {
    let of = async |end: &str, wait| shown(Screen::NotifySend, end, wait, "x").await.1.unwrap_err();
    let failed = of("echo 'Cannot autolaunch D-Bus rpa_ABCDEFGH1234' >&2; exit 1", LONG).await;
    assert!(failed.contains("Cannot autolaunch D-Bus [secret]"), "{failed}");
    let hangs = of("sleep 1000", Duration::from_millis(300)).await;
    assert!(hangs.contains("did not end within"), "{hangs}");
    let env = Environment::isolated([("PATH", "/nowhere")]);
    let message = Notice::general(NoticeKind::Test, "x").written(false, &[]);
    let gone = Desktop::new(Screen::NotifySend, &env).show(&message, LONG).await.unwrap_err();
    assert!(gone.to_string().contains("notify-send is not installed"), "{gone}");
}
