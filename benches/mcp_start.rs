//! How long an MCP client waits for the tools: from the start of the server's process to the reply to
//! `tools/list`, over stdio. podtether beside the provider's official server and a two-tool server on
//! the official Python SDK, in turn within one run, so that a machine whose speed drifts slows all of
//! them alike. Nothing is asserted about time: read the ratios.
//!
//! `cargo bench --bench mcp_start [-- ROUNDS]`; `benches/peers/install.sh` installs the others.
#![expect(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

use serde_json::{Value, json};
use std::error::Error;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Counted rounds, after one that only warms the page cache.
const ROUNDS: usize = 21;

/// A server to start.
struct Server {
    name: &'static str,
    program: PathBuf,
    args: Vec<PathBuf>,
}

/// One start.
struct Start {
    until_tools: Duration,
    /// Tools in the reply, and its length in bytes.
    tools: (usize, usize),
    resident_kib: Option<u64>,
    threads: Option<u64>,
}

fn main() -> Outcome<()> {
    // cargo adds --bench; whatever is a number is ours.
    let rounds = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(ROUNDS).max(1);
    let servers = installed();
    println!("{rounds} rounds, in turn; load before: {}", load());
    let mut starts: Vec<Vec<Start>> = servers.iter().map(|_| Vec::new()).collect();
    for round in 0..=rounds {
        for (server, kept) in servers.iter().zip(&mut starts) {
            let start = start(server).map_err(|error| format!("{}: {error}", server.name))?;
            if round > 0 {
                kept.push(start);
            }
        }
    }
    print_table(&servers, &starts);
    println!("load after: {}", load());
    Ok(())
}

/// podtether, and the peers that are there; says which are not.
fn installed() -> Vec<Server> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let peers = root.join(".tools/bench");
    let podtether = Server {
        name: "podtether",
        program: env!("CARGO_BIN_EXE_podtether").into(),
        args: vec!["mcp".into()],
    };
    let runpod = Server {
        name: "@runpod/mcp-server 4.0.0 (node)",
        program: "node".into(),
        args: vec![peers.join("node_modules/@runpod/mcp-server/dist/stdio.mjs")],
    };
    let python = Server {
        name: "two tools, Python mcp 2.3.0",
        program: peers.join("venv/bin/python"),
        args: vec![root.join("benches/peers/mcp_two_tools.py")],
    };
    let mut servers = vec![podtether];
    for (peer, needs) in [(runpod, "node_modules/@runpod/mcp-server"), (python, "venv/bin/python")]
    {
        if peers.join(needs).exists() {
            servers.push(peer);
        } else {
            println!("{}: not installed: run benches/peers/install.sh", peer.name);
        }
    }
    servers
}

/// Starts a server, asks for its tools as a client would, and ends it.
fn start(server: &Server) -> Outcome<Start> {
    #[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
    let began = Instant::now();
    #[expect(clippy::disallowed_methods, reason = "starting processes is what is measured")]
    let mut child = Command::new(&server.program)
        .args(&server.args)
        // A key that opens nothing: the provider's server does not start without one.
        .env("RUNPOD_API_KEY", "none")
        .current_dir(std::env::temp_dir())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let asked = ask(&mut child, began);
    // Also after a failure: nothing is left behind.
    let _ = child.kill();
    child.wait()?;
    asked
}

fn ask(child: &mut Child, began: Instant) -> Outcome<Start> {
    let mut stdin = child.stdin.take().ok_or("no stdin")?;
    let mut stdout = BufReader::new(child.stdout.take().ok_or("no stdout")?);
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "mcp_start", "version": "1"}});
    let mut send = |message: Value| writeln!(stdin, "{message}").and_then(|()| stdin.flush());
    send(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}))?;
    reply(&mut stdout, 1)?;
    send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
    send(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}))?;
    let (list, bytes) = reply(&mut stdout, 2)?;
    let until_tools = began.elapsed();
    let tools = list["result"]["tools"].as_array().ok_or("the reply lists no tools")?.len();
    let status = status_of(child.id());
    Ok(Start {
        until_tools,
        tools: (tools, bytes),
        resident_kib: status.as_deref().and_then(|text| field(text, "VmRSS:")),
        threads: status.as_deref().and_then(|text| field(text, "Threads:")),
    })
}

/// The reply to request `id` and its length; notifications before it are skipped.
fn reply(stdout: &mut BufReader<ChildStdout>, id: u64) -> Outcome<(Value, usize)> {
    loop {
        let mut line = String::new();
        if stdout.read_line(&mut line)? == 0 {
            return Err("the server ended without an answer".into());
        }
        let message: Value = serde_json::from_str(&line)?;
        if message["id"] == id {
            return Ok((message, line.len()));
        }
    }
}

/// Linux tells memory and threads of a process; elsewhere the columns stay empty.
fn status_of(pid: u32) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{pid}/status")).ok()
}

fn field(status: &str, name: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

fn load() -> String {
    std::fs::read_to_string("/proc/loadavg").map_or_else(
        |_| "unknown".to_owned(),
        |text| text.split_whitespace().take(3).collect::<Vec<_>>().join(" "),
    )
}

fn median<T: Ord + Copy>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

fn print_table(servers: &[Server], starts: &[Vec<Start>]) {
    println!(
        "| server | start to tools/list, median (min–max) | × podtether | resident | threads | tools | reply |"
    );
    println!("|---|---|---|---|---|---|---|");
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let of = |starts: &[Start]| median(starts.iter().map(|start| start.until_tools));
    let own = starts.first().and_then(|starts| of(starts)).unwrap_or_default();
    for (server, starts) in servers.iter().zip(starts) {
        let times = || starts.iter().map(|start| start.until_tools);
        let middle = of(starts).unwrap_or_default();
        let memory = median(starts.iter().filter_map(|start| start.resident_kib));
        let threads = median(starts.iter().filter_map(|start| start.threads));
        let (tools, bytes) = starts.first().map_or((0, 0), |start| start.tools);
        println!(
            "| {} | {:.1} ms ({:.1}–{:.1}) | {:.1} | {} | {} | {tools} | {bytes} bytes |",
            server.name,
            millis(middle),
            millis(times().min().unwrap_or_default()),
            millis(times().max().unwrap_or_default()),
            millis(middle) / millis(own).max(f64::MIN_POSITIVE),
            memory.map_or_else(String::new, |kib| format!("{:.1} MiB", kib as f64 / 1024.0)),
            threads.map_or_else(String::new, |count| count.to_string()),
        );
    }
}
