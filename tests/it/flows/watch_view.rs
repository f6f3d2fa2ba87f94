//! The live view of `podtether watch`: the real program on a terminal of its own, beside a job on the local
//! cloud. What the terminal shows is read by `tests/clients/terminal.py`.

use super::fixture::{Fixture, POD};
use super::twin::CEILING;
use super::watch::{job, status_file};
use crate::local_cloud::program;
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// A terminal in which a program runs.
struct Terminal {
    child: Child,
    tell: ChildStdin,
    said: BufReader<ChildStdout>,
}

impl Terminal {
    /// `podtether watch` in a terminal of this size.
    fn start(fixture: &Fixture, columns: u16, rows: u16, arguments: &[&str]) -> Self {
        let mut child = Command::new("python3")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/terminal.py"))
            .args([columns.to_string(), rows.to_string()])
            .arg(program())
            .args(["watch", "--interval", "1", "--config"])
            .arg(fixture.config_file())
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", fixture.path(""))
            .env("TERM", "xterm-256color")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (tell, said) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, tell, said: BufReader::new(said) }
    }

    fn ask(&mut self, command: &str) -> Value {
        writeln!(self.tell, "{command}").unwrap();
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{command}: {error}: {line}"))
    }

    fn shown(&mut self) -> Value {
        self.ask("show")
    }

    /// Waits until the screen shows all of these words.
    async fn shows(&mut self, words: &[&str]) -> Value {
        let start = Instant::now();
        loop {
            let shown = self.shown();
            let missing = words.iter().find(|words| !text(&shown).contains(**words));
            let Some(missing) = missing else { return shown };
            assert!(start.elapsed() < CEILING, "never showed {missing:?}:\n{}", text(&shown));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits for the end of the program; its exit code and what the terminal shows then.
    fn end(&mut self) -> (i64, Value) {
        let last = self.ask("end");
        (last["code"].as_i64().unwrap(), last)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(screen: &Value) -> String {
    let lines = screen["lines"].as_array().unwrap();
    lines.iter().map(|line| format!("{}\n", line.as_str().unwrap())).collect()
}

/// The terminal is as a shell left it.
fn assert_given_back(screen: &Value) {
    assert_eq!(screen["alternate"], false, "{screen:#}");
    assert_eq!(screen["cursor"], true, "{screen:#}");
    assert_eq!(screen["keys_are_lines"], true, "{screen:#}");
}

/// The whole of it: the run, the curve, the log, the money and the fuse; another size; and at the end the
/// terminal as it was, with the verdict in it and the same exit code as without a view.
#[tokio::test(flavor = "multi_thread")]
async fn a_watched_run_is_shown_and_the_verdict_stays_in_the_terminal() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await.arming_fuses();
    fixture.running(&tether).await;
    let command = "for i in 0 1 2 3; do block $i $i.5; done; echo 'a line for people'; wait_for go; \
         printf 'Traceback (most recent call last):\\n  File \"a\"\\nOSError: [Errno 28] No space left on device\\n'; exit 3";
    let id = job(&tether, command).await;
    let changes = fixture.changes();
    let mut terminal = Terminal::start(&fixture, 80, 24, &[]);
    let words = [
        "podtether watch · rover · local cloud, $0",
        &format!("running · job {id}"),
        "iteration 3/500",
        "mean reward 3.50",
        "GPU ",
        "/h · pod ",
        "deadman armed: off within ",
        "a line for people",
        "q leaves the watch",
    ];
    let shown = terminal.shows(&words).await;
    let is_braille = |c: char| ('\u{2801}'..='\u{28ff}').contains(&c);
    assert!(text(&shown).contains(is_braille), "{}", text(&shown));
    assert_eq!((&shown["alternate"], &shown["cursor"]), (&true.into(), &false.into()));
    terminal.ask("size 40 10");
    let small = terminal.shows(&["iteration 3/500", "deadman armed: off within"]).await;
    let lines: Vec<&str> =
        small["lines"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert!(lines.len() <= 10 && lines.iter().all(|line| line.chars().count() <= 40), "{lines:#?}");

    terminal.ask("size 80 24");
    fs::write(fixture.volume().join("go"), "").unwrap();
    let (code, last) = terminal.end();
    assert_eq!(code, 4, "{}", text(&last));
    assert_given_back(&last);
    let left = text(&last);
    for words in ["PAGE: failure (disk full)", &id, "status: "] {
        assert!(left.contains(words), "{words}:\n{left}");
    }
    assert!(!left.contains("q leaves the watch"), "{left}");
    let status: Value =
        serde_json::from_slice(&fs::read(status_file(&fixture, &id)).unwrap()).unwrap();
    assert_eq!(status["process_exit_code"], 4);
    assert_eq!(fixture.changes(), changes, "a watch changes nothing");
}

/// Whoever leaves leaves the watch alone: the job and the pod go on, and the terminal is given back.
#[tokio::test(flavor = "multi_thread")]
async fn q_ctrl_c_and_sigterm_leave_the_watch_and_nothing_else() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let id = job(&tether, "block 1 2.0; wait_for go").await;
    for (word, code) in
        [("type q", 130), ("type \\x03", 130), ("signal TERM", 143), ("signal INT", 130)]
    {
        let mut terminal = Terminal::start(&fixture, 80, 24, &["--job-id", &id]);
        let shown = terminal.shows(&["iteration 1/500"]).await;
        assert_eq!(shown["keys_are_lines"], false);
        terminal.ask(word);
        let (ended, last) = terminal.end();
        assert_eq!(ended, code, "{word}: {}", text(&last));
        assert_given_back(&last);
        assert!(text(&last).contains("the job and the pod go on"), "{}", text(&last));
    }
    let status = tether.job_status(&id, 5, None).await.unwrap();
    assert_eq!(status.state, podtether::domain::JobState::Running);
    assert_eq!(fixture.status().await, "RUNNING");
    assert_eq!(fixture.pods_named(POD).await.len(), 1);
    fs::write(fixture.volume().join("go"), "").unwrap();
}

/// A terminal that is closed, as by a lost login, ends the watch: nothing reads on from nobody.
#[tokio::test(flavor = "multi_thread")]
async fn a_closed_terminal_ends_the_watch() {
    let fixture = Fixture::new();
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let id = job(&tether, "block 1 2.0; wait_for go").await;
    let mut terminal = Terminal::start(&fixture, 80, 24, &["--job-id", &id]);
    terminal.shows(&["iteration 1/500"]).await;
    assert_eq!(terminal.ask("hangup")["code"], 129);
    assert_eq!(fixture.status().await, "RUNNING");
    fs::write(fixture.volume().join("go"), "").unwrap();
}

/// Lines where they are asked for, and for programs; what is refused at once never takes the screen.
#[tokio::test(flavor = "multi_thread")]
async fn plain_and_json_and_a_refusal_take_no_screen() {
    let fixture = Fixture::new();
    let mut terminal = Terminal::start(&fixture, 80, 24, &[]);
    let (code, last) = terminal.end();
    assert_eq!((code, &last["took_alternate"]), (2, &Value::Bool(false)), "{}", text(&last));
    assert!(text(&last).contains("has no pod"), "{}", text(&last));
    let tether = fixture.tether().await;
    fixture.running(&tether).await;
    let id = job(&tether, "block 1 2.0").await;
    for plain in ["--plain", "--json"] {
        let mut terminal = Terminal::start(&fixture, 80, 24, &["--job-id", &id, plain]);
        let (code, last) = terminal.end();
        assert_eq!((code, &last["took_alternate"]), (0, &Value::Bool(false)), "{}", text(&last));
        assert!(text(&last).contains("done"), "{}", text(&last));
    }
}
