//! The glue to rmcp: lists the tools, runs each call in a task of its own, and answers failures as
//! data. A panic is an answer too, never silence.

use super::cap::cap;
use super::eof::NoticeEof;
use super::progress;
use super::tool::Entry;
use super::tools;
use crate::error::{Failure, FailureKind, StillBilling};
use crate::ops::Tether;
use crate::secret::{Secret, scrub};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock,
    CustomRequest, CustomResult, ErrorCode, Implementation, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// Reads config and key and connects; called at the first tool call, and again after a failure, so
/// that a mended config needs no restart.
pub type Opener =
    Box<dyn Fn() -> BoxFuture<'static, Result<(Arc<Tether>, Vec<Secret>), Failure>> + Send + Sync>;

/// What clients are told about the server. Cut at 2,000 bytes by some, so the limits come first.
const INSTRUCTIONS: &str = "\
podtether rents, uses and always stops cloud GPU pods (RunPod) inside limits held in code. Use it to run training or \
other GPU jobs: gpu_availability, ensure_pod, run_job, job_status, sync_logs, stop_pod, spend_report.\n\
- A pod bills by the second from ensure_pod until stop_pod has answered `stopped`. End every piece of work with \
stop_pod; `stop_unconfirmed` means it may still bill: call again and tell the user.\n\
- Each vehicle of the config has exactly one pod. A refusal changed nothing; it names the numbers and the way out. \
Do not look for a way around a refusal: ask the user.\n\
- Show a plan with dry_run=true before you create, start or launch something the user has not asked for in so many words.\n\
- Long work goes through run_job (detached, with a ceiling), never through exec_on_pod. Poll job_status about once a minute.\n\
- ensure_pod answers still_initializing when it needs longer: call it again.\n\
- Failures carry kind, hint, retryable and still_billing. cloud=local in an answer means a rehearsal on this machine, for $0.";

/// Methods of the protocol that rmcp hands over as unknown when their parameters are malformed.
const STANDARD_METHODS: &[&str] = &[
    "initialize",
    "tools/call",
    "tools/list",
    "prompts/get",
    "resources/read",
    "completion/complete",
    "logging/setLevel",
];

/// How long in-flight calls may go on after the client is gone.
const GRACE: Duration = Duration::from_millis(1_500);

struct Server {
    entries: Vec<Entry>,
    open: Opener,
    tether: Mutex<Option<(Arc<Tether>, Vec<Secret>)>>,
}

impl Server {
    async fn tether(&self) -> Result<(Arc<Tether>, Vec<Secret>), Failure> {
        let mut slot = self.tether.lock().await;
        if let Some(open) = &*slot {
            return Ok(open.clone());
        }
        let opened = (self.open)().await?;
        *slot = Some(opened.clone());
        Ok(opened)
    }

    /// Answers one call, whatever happens: silence would hold a client for minutes.
    async fn answer(
        &self,
        request: CallToolRequestParams,
        client: Option<String>,
    ) -> CallToolResult {
        let name = request.name.clone();
        let calling = AssertUnwindSafe(self.carry_out(request, client)).catch_unwind();
        calling.await.unwrap_or_else(|_| failed(&broke_off(&name), &[]))
    }

    async fn carry_out(
        &self,
        request: CallToolRequestParams,
        client: Option<String>,
    ) -> CallToolResult {
        let name = request.name.as_ref();
        let Some(entry) = self.entries.iter().find(|entry| entry.tool.name == name) else {
            return failed(&unknown_tool(name, &self.entries), &[]);
        };
        let arguments = request.arguments.unwrap_or_default();
        if let Err(failure) = (entry.check)(&arguments) {
            return failed(&failure, &[]);
        }
        let (tether, secrets) = match self.tether().await {
            Ok(open) => open,
            Err(failure) => return failed(&failure, &[]),
        };
        if let Some(client) = client {
            tether.called_by(&client);
        }
        // A task of its own: a client that cancels or goes away must not cut a create in half.
        let ongoing = progress::current();
        let cancelled =
            ongoing.as_ref().filter(|_| entry.cancels).map(|call| call.cancelled.clone());
        let work = progress::scope(ongoing, (entry.call)(tether, arguments));
        let mut calling = tokio::spawn(work);
        let patience = async {
            match entry.patience {
                Some(patience) => tokio::time::sleep(patience).await,
                None => std::future::pending().await,
            }
        };
        let cancelled = async {
            match cancelled {
                Some(cancelled) => cancelled.cancelled_owned().await,
                None => std::future::pending().await,
            }
        };
        let ended = tokio::select! {
            ended = &mut calling => ended,
            // Nobody waits for the task any more, and it goes on.
            () = patience => {
                return failed(&goes_on(name, entry.patience.unwrap_or_default()), &secrets);
            }
            () = cancelled => {
                calling.abort();
                calling.await
            }
        };
        match ended {
            // Blanked before it is cut: half a secret would not be found any more.
            Ok(Ok(value)) => CallToolResult::structured(cap(blanked(value, &secrets))),
            Ok(Err(failure)) => failed(&failure, &secrets),
            Err(_) => failed(&broke_off(name), &secrets),
        }
    }
}

/// Blanks secrets out of every text in an answer. Not in its JSON, where a quote within a secret
/// would be spelt otherwise.
fn blanked(value: Value, secrets: &[Secret]) -> Value {
    match value {
        Value::String(text) => Value::String(scrub(&text, secrets)),
        Value::Array(items) => items.into_iter().map(|item| blanked(item, secrets)).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, inner)| (scrub(&name, secrets), blanked(inner, secrets)))
            .collect(),
        other => other,
    }
}

fn goes_on(name: &str, patience: Duration) -> Failure {
    let message = format!(
        "{name} has not ended after {} s; it goes on in the background",
        patience.as_secs()
    );
    let hint = "call it again in a minute: it takes up what has come so far";
    Failure::new(FailureKind::Timeout, message, hint).billing(StillBilling::Yes).retryable()
}

fn broke_off(name: &str) -> Failure {
    Failure::new(
        FailureKind::Internal,
        format!("{name} broke off by a mistake in podtether; the state of what it did is unknown"),
        "call pod_status; stop_pod still works",
    )
    .billing(StillBilling::Unknown)
}

/// Clients show a model only the text of an error and only the structure of a success, so the
/// failure goes into both.
fn failed(failure: &Failure, secrets: &[Secret]) -> CallToolResult {
    // A wrong argument is told before anybody has looked: `no` would be believed beside a pod that bills.
    let nobody_looked = failure.kind == FailureKind::BadInput;
    let billing = match failure.still_billing {
        StillBilling::No if nobody_looked => StillBilling::Unknown,
        known => known,
    };
    let failure = &failure.clone().billing(billing);
    let value = serde_json::to_value(failure).unwrap_or_else(|_| failure.to_string().into());
    let value = cap(blanked(value, secrets));
    let mut result = CallToolResult::error(vec![ContentBlock::text(value.to_string())]);
    result.structured_content = Some(value);
    result
}

fn unknown_tool(name: &str, entries: &[Entry]) -> Failure {
    let names: Vec<&str> = entries.iter().map(|entry| entry.tool.name.as_ref()).collect();
    Failure::bad_input(format!("there is no tool {name:?}; there are {}", names.join(", ")))
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(
                Implementation::new("runpod", env!("CARGO_PKG_VERSION")).with_title("podtether"),
            )
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut result = ListToolsResult::with_all_items(
            self.entries.iter().map(|entry| entry.tool.clone()).collect(),
        );
        if context
            .protocol_version()
            .is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
        {
            result.ttl_ms = Some(3_600_000);
            result.cache_scope = Some(CacheScope::Public);
        }
        Ok(result)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.entries.iter().find(|entry| entry.tool.name == name).map(|entry| entry.tool.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (ongoing, _until_answered) = progress::Ongoing::of(&context);
        let client = context.client_info().map(|client| client.name);
        Ok(progress::scope(Some(ongoing), self.answer(request, client)).await.into())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if STANDARD_METHODS.contains(&request.method.as_str()) {
            return Err(ErrorData::invalid_params(
                format!("malformed params for {}", request.method),
                None,
            ));
        }
        Err(ErrorData::new(
            ErrorCode::METHOD_NOT_FOUND,
            format!("unknown method: {}", request.method),
            None,
        ))
    }
}

/// Serves until the client goes away or `stop` is cancelled.
///
/// # Errors
/// What keeps the server from starting, in words. A client that leaves before it has said a word is
/// no error.
pub async fn serve<R, W>(
    open: Opener,
    reader: R,
    writer: W,
    stop: CancellationToken,
) -> Result<(), String>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let ended = CancellationToken::new();
    let server = Server { entries: tools::all(), open, tether: Mutex::new(None) };
    let transport = (NoticeEof::new(reader, ended.clone()), writer);
    let serving = async {
        match server.serve_with_ct(transport, stop.clone()).await {
            Ok(running) => running.waiting().await.map(|_| ()).map_err(|error| error.to_string()),
            // Whoever only looks whether the server starts closes stdin at once.
            Err(_) if ended.is_cancelled() || stop.is_cancelled() => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    };
    let client_is_gone = async {
        tokio::select! {
            () = ended.cancelled() => {}
            () = stop.cancelled() => {}
        }
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        result = serving => result,
        () = client_is_gone => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Environment;
    use rmcp::model::{JsonObject, ToolAnnotations};
    use serde_json::json;

    const CONFIG: &str = "\
cloud: runpod
vehicles:
  rover:
    pod_name: rover
    network_volume_name: rover
    datacenter_preference: [EU-RO-1]
    known_hosts_file: known_hosts
    local_log_dir: logs
";

    fn entry(name: &'static str, call: super::super::tool::Call) -> Entry {
        let tool = Tool::new(name, "", Arc::new(JsonObject::new()))
            .with_annotations(ToolAnnotations::default());
        Entry { tool, call, patience: None, cancels: false, check: |_| Ok(()) }
    }

    async fn ask(server: &Server, name: &'static str) -> (Option<bool>, Value) {
        let result = server.answer(CallToolRequestParams::new(name), None).await;
        (result.is_error, result.structured_content.unwrap())
    }

    fn server(folder: &std::path::Path, entries: Vec<Entry>) -> Server {
        let config = folder.join("podtether.yaml");
        std::fs::write(&config, CONFIG).unwrap();
        let start = crate::ops::Start {
            config: Some(config),
            env: Environment::isolated([("RUNPOD_API_KEY", "MARKER\"+key"), ("HOME", "/home/ann")]),
            cwd: folder.to_owned(),
            program: folder.join("podtether"),
        };
        let open: Opener = Box::new(move || {
            let start = start.clone();
            async move {
                let clock = crate::clock::SystemClock::shared();
                let (tether, secrets) = crate::ops::open(&start, clock).await?;
                Ok((Arc::new(tether), secrets))
            }
            .boxed()
        });
        Server { entries, open, tether: Mutex::new(None) }
    }

    /// G05: many clients give up at 60 s; what they asked for must not be lost with them.
    #[tokio::test]
    async fn a_call_that_takes_too_long_is_answered_and_goes_on() {
        static MAY_END: tokio::sync::Notify = tokio::sync::Notify::const_new();
        static HAS_ENDED: tokio::sync::Notify = tokio::sync::Notify::const_new();
        let folder = tempfile::tempdir().unwrap();
        let call: super::super::tool::Call = |_, _| {
            async {
                MAY_END.notified().await;
                HAS_ENDED.notify_one();
                Ok(json!({}))
            }
            .boxed()
        };
        let pulls = Entry { patience: Some(Duration::from_millis(5)), ..entry("pulls", call) };
        let server = server(folder.path(), vec![pulls]);
        let (is_error, answer) = ask(&server, "pulls").await;
        assert_eq!((is_error, &answer["kind"]), (Some(true), &json!("timeout")));
        assert_eq!((&answer["retryable"], &answer["still_billing"]), (&json!(true), &json!("yes")));
        MAY_END.notify_one();
        let ended = tokio::time::timeout(Duration::from_secs(60), HAS_ENDED.notified()).await;
        ended.expect("the call was cut off with its client");
    }

    /// G05: a client waits for minutes for an answer that never comes.
    #[tokio::test]
    async fn a_panic_is_an_answer_and_the_next_call_is_answered() {
        let folder = tempfile::tempdir().unwrap();
        let entries = vec![
            entry("panics", |_, _| async { panic!("on purpose") }.boxed()),
            entry("panics_at_once", |_, _| panic!("on purpose")),
            entry("echoes", |_, _| {
                let text = "x".repeat(40_000) + "MARKER\"+key";
                async move { Ok(json!({ "text": text, "MARKER\"+key": [1] })) }.boxed()
            }),
        ];
        let server = server(folder.path(), entries);
        for name in ["panics", "panics_at_once"] {
            let (is_error, answer) = ask(&server, name).await;
            assert_eq!(is_error, Some(true));
            assert_eq!(
                (&answer["kind"], &answer["still_billing"]),
                (&json!("internal"), &json!("unknown"))
            );
            assert!(answer["message"].as_str().unwrap().contains(name), "{answer}");
        }
        // H01: also where JSON spells the secret otherwise, and where the answer is cut.
        let (is_error, answer) = ask(&server, "echoes").await;
        assert_ne!(is_error, Some(true));
        assert_eq!((&answer["truncated"], &answer["[secret]"]), (&json!(true), &json!([1])));
        assert!(!answer.to_string().contains("MARKER"));
        assert!(answer["text"].as_str().unwrap().ends_with("x[secret]"));
        let (is_error, answer) = ask(&server, "ech").await;
        assert_eq!((is_error, &answer["kind"]), (Some(true), &json!("bad_input")));
    }
}
