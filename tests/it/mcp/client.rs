//! A client in raw lines. Whatever it is sent is checked: each line is one JSON-RPC message, each
//! answer of a tool has the promised shape.

use jsonschema::Validator;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStderr, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// No answer takes that long; a busy machine may.
pub const CEILING: Duration = Duration::from_secs(90);

/// How a client opens the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// 2025-11-25: `initialize`, then requests.
    Initialize,
    /// 2026-07-28: `server/discover`, and every request says who asks.
    Stateless,
}

pub const ERAS: [Era; 2] = [Era::Initialize, Era::Stateless];

pub struct Client {
    pub child: Child,
    era: Era,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Everything that came on stdout and stderr.
    heard: Arc<Mutex<Vec<u8>>>,
    waiting: BTreeMap<u64, Value>,
    next_id: u64,
    /// What the server said of itself.
    pub info: Value,
    pub tools: Vec<Value>,
    answers: BTreeMap<String, Validator>,
}

impl Client {
    /// Starts the server, opens the conversation and reads the tools.
    pub fn start(command: Command, era: Era) -> Self {
        let mut client = Self::spawn(command, era, true).0;
        client.open();
        client
    }

    /// Starts the server and says nothing yet. Its stderr is drained or handed back.
    pub fn spawn(mut command: Command, era: Era, drain: bool) -> (Self, Option<ChildStderr>) {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (send, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let kept = Arc::clone(&heard);
        std::thread::spawn(move || {
            for line in stdout.lines() {
                // A line that is no text is a fault, and the test sees it as one.
                let line = line.unwrap_or_else(|error| format!("stdout: {error}"));
                kept.lock().unwrap().extend_from_slice(line.as_bytes());
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        let mut stderr = child.stderr.take();
        if let Some(mut stderr) = stderr.take_if(|_| drain) {
            let kept = Arc::clone(&heard);
            std::thread::spawn(move || {
                let mut part = [0; 8192];
                while let Ok(length @ 1..) = stderr.read(&mut part) {
                    kept.lock().unwrap().extend_from_slice(&part[..length]);
                }
            });
        }
        let client = Self {
            stdin: child.stdin.take(),
            child,
            era,
            lines,
            heard,
            waiting: BTreeMap::new(),
            next_id: 0,
            info: Value::Null,
            tools: Vec::new(),
            answers: BTreeMap::new(),
        };
        (client, stderr)
    }

    pub fn open(&mut self) {
        self.info = match self.era {
            Era::Initialize => {
                let info = self.result(
                    "initialize",
                    json!({
                        "protocolVersion": "2025-11-25",
                        "capabilities": {},
                        "clientInfo": {"name": "lines", "version": "1"},
                    }),
                );
                assert_eq!(info["protocolVersion"], "2025-11-25");
                self.notify("notifications/initialized");
                info
            }
            Era::Stateless => {
                let info = self.result("server/discover", json!({}));
                let versions = info["supportedVersions"].as_array().unwrap();
                assert!(versions.contains(&json!("2026-07-28")), "{info}");
                info
            }
        };
        let listed = self.result("tools/list", json!({}));
        self.tools = listed["tools"].as_array().unwrap().clone();
        for tool in &self.tools {
            let validator =
                jsonschema::options().should_validate_formats(true).build(&tool["outputSchema"]);
            self.answers.insert(tool["name"].as_str().unwrap().to_owned(), validator.unwrap());
        }
    }

    pub fn send_raw(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).and_then(|()| stdin.flush()).unwrap();
    }

    fn notify(&mut self, method: &str) {
        self.send_raw(format!("{}\n", json!({"jsonrpc": "2.0", "method": method})).as_bytes());
    }

    /// A request as one line, with what the era asks of its parameters.
    pub fn line(&mut self, method: &str, mut params: Value) -> (u64, String) {
        self.next_id += 1;
        if self.era == Era::Stateless {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "lines", "version": "1"},
            });
        }
        let id = self.next_id;
        (id, json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string())
    }

    /// Sends a request and does not wait.
    pub fn begin(&mut self, method: &str, params: Value) -> u64 {
        let (id, line) = self.line(method, params);
        self.send_raw(format!("{line}\n").as_bytes());
        id
    }

    /// Begins a call of a tool.
    pub fn begin_call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.begin("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// The next message, whatever it is.
    pub fn next_message(&mut self, ceiling: Duration) -> Option<Value> {
        let line = self.lines.recv_timeout(ceiling).ok()?;
        // G02: one stray line drops the session of most clients.
        let message: Value = serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("stdout carried {line:?}: {error}"));
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        Some(message)
    }

    /// The answer to a request that was begun.
    pub fn wait(&mut self, id: u64) -> Value {
        let start = Instant::now();
        while !self.waiting.contains_key(&id) {
            let left = CEILING.saturating_sub(start.elapsed());
            let message = self.next_message(left);
            let message = message.unwrap_or_else(|| {
                let heard = String::from_utf8_lossy(&self.heard.lock().unwrap()).into_owned();
                panic!("no answer to request {id}; heard so far: {heard}")
            });
            // Errors about a line that nobody can tell the request of carry no id.
            if let Some(id) = message["id"].as_u64() {
                self.waiting.insert(id, message);
            }
        }
        self.waiting.remove(&id).unwrap()
    }

    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.wait(id)
    }

    fn result(&mut self, method: &str, params: Value) -> Value {
        let mut message = self.request(method, params);
        assert!(message["result"].is_object(), "{method}: {message}");
        message["result"].take()
    }

    /// Something that any server answers at once: `ping`, which the stateless era does not know.
    pub fn is_alive(&mut self) -> Duration {
        let start = Instant::now();
        match self.era {
            Era::Initialize => assert_eq!(self.result("ping", json!({})), json!({})),
            Era::Stateless => {
                assert!(self.result("tools/list", json!({}))["tools"].is_array());
            }
        }
        start.elapsed()
    }

    /// Calls a tool that has to succeed; returns its structured content.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.begin_call(tool, arguments);
        self.success(id, tool)
    }

    /// The structured content of a call that was begun and has to succeed.
    pub fn success(&mut self, id: u64, tool: &str) -> Value {
        let result = self.wait(id)["result"].take();
        assert_ne!(result["isError"], true, "{tool}: {result}");
        let answer = result["structuredContent"].clone();
        if let Err(error) = self.answers[tool].validate(&answer) {
            panic!(
                "{tool} against its output schema: {error} at {}: {answer}",
                error.instance_path()
            );
        }
        // Clients without structured content read the text.
        let text: Value =
            serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, answer);
        assert!(answer.to_string().len() <= 32 * 1024, "{tool}: {}", answer.to_string().len());
        answer
    }

    /// Calls a tool that has to fail; returns the failure.
    pub fn fail(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.begin_call(tool, arguments);
        let message = self.wait(id);
        Self::failure(&message)
    }

    /// The failure in a message, in the one shape that failures have.
    pub fn failure(message: &Value) -> Value {
        let result = &message["result"];
        assert_eq!(result["isError"], true, "{message}");
        let failure = result["structuredContent"].clone();
        let text = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), failure);
        let fields: Vec<&str> = failure.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(fields, ["hint", "kind", "message", "retryable", "still_billing"], "{failure}");
        assert!(failure["retryable"].is_boolean());
        assert!(["yes", "no", "unknown"].contains(&failure["still_billing"].as_str().unwrap()));
        for field in ["kind", "message", "hint"] {
            assert!(!failure[field].as_str().unwrap().is_empty(), "{failure}");
        }
        failure
    }

    /// The client goes away without a word.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Whether stdout comes to its end without another line.
    pub fn is_silent(&self, ceiling: Duration) -> bool {
        self.lines.recv_timeout(ceiling) == Err(RecvTimeoutError::Disconnected)
    }

    /// How the server ended, and how long that took.
    pub fn ended(&mut self) -> (ExitStatus, Duration) {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status, start.elapsed());
            }
            assert!(start.elapsed() < CEILING, "the server is still there");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Everything that was heard on stdout and stderr.
    pub fn heard(&self) -> Vec<u8> {
        self.heard.lock().unwrap().clone()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.close_stdin();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
