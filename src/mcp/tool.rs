//! What a tool is: arguments, description, effect, and a call into `ops`.

use super::schema;
use crate::error::{Failure, FailureKind, StillBilling};
use crate::ops::Tether;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Longest for a call that only reads.
const READ_LIMIT: Duration = Duration::from_secs(5);

/// What a call may change; becomes the tool's annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Changes nothing. Clients may run such calls side by side.
    Reads,
    /// Adds or starts something.
    Changes {
        /// Whether a second call with the same arguments changes nothing more.
        idempotent: bool,
    },
    /// Ends or deletes something, or may.
    Destroys {
        /// Whether a second call with the same arguments changes nothing more.
        idempotent: bool,
    },
}

/// One tool.
pub trait TetherTool {
    /// Arguments. The doc comment of each field is what a model reads.
    type Arguments: DeserializeOwned + JsonSchema + Send + 'static;
    /// The structured answer.
    type Answer: Serialize + JsonSchema + 'static;
    /// Name, verb first.
    const NAME: &'static str;
    /// Title for people.
    const TITLE: &'static str;
    /// Description for a model, at most 2,000 bytes.
    const DESCRIPTION: &'static str;
    /// What a call may change.
    const EFFECT: Effect;
    /// After so long the client is told that the call goes on without it, since many clients give
    /// up at 60 s. `None` for a call that bounds itself. What goes on is safe to ask for again.
    const PATIENCE: Option<Duration> = None;
    /// Whether a client that cancels the call ends it: only for what can be cut anywhere.
    const CANCELS: bool = false;

    /// Does it.
    fn call(
        tether: &Tether,
        arguments: Self::Arguments,
    ) -> impl Future<Output = Result<Self::Answer, Failure>> + Send;
}

pub(super) type Call = fn(Arc<Tether>, JsonObject) -> BoxFuture<'static, Result<Value, Failure>>;

/// A tool as the server keeps it.
pub struct Entry {
    /// What clients are told.
    pub tool: Tool,
    pub(super) call: Call,
    pub(super) patience: Option<Duration>,
    pub(super) cancels: bool,
    /// Checks arguments without calling, so that bad input is told before anything is set up.
    pub(super) check: fn(&JsonObject) -> Result<(), Failure>,
}

impl Entry {
    pub(super) fn of<T: TetherTool>() -> Self {
        let annotations = match T::EFFECT {
            Effect::Reads => ToolAnnotations::with_title(T::TITLE).read_only(true).idempotent(true),
            Effect::Changes { idempotent } => ToolAnnotations::with_title(T::TITLE)
                .read_only(false)
                .destructive(false)
                .idempotent(idempotent),
            Effect::Destroys { idempotent } => ToolAnnotations::with_title(T::TITLE)
                .read_only(false)
                .destructive(true)
                .idempotent(idempotent),
        };
        let tool = Tool::new(T::NAME, T::DESCRIPTION, schema::input::<T::Arguments>())
            .with_title(T::TITLE)
            .with_raw_output_schema(schema::output::<T::Answer>())
            .with_annotations(annotations.open_world(true));
        Self {
            tool,
            call: |tether, arguments| {
                async move {
                    let arguments = parse::<T>(arguments)?;
                    let calling = T::call(&tether, arguments);
                    // Only a read is cut off; what changes something bounds itself and ends whole.
                    let answer = match T::EFFECT {
                        Effect::Reads => tokio::time::timeout(READ_LIMIT, calling)
                            .await
                            .unwrap_or_else(|_| Err(took_too_long(T::NAME))),
                        _ => calling.await,
                    }?;
                    serde_json::to_value(answer).map_err(|error| {
                        Failure::new(FailureKind::Internal, error, "this is a mistake in podtether")
                            .billing(StillBilling::Unknown)
                    })
                }
                .boxed()
            },
            patience: T::PATIENCE,
            cancels: T::CANCELS,
            check: |arguments| parse::<T>(arguments.clone()).map(|_| ()),
        }
    }
}

/// An explicit null means the same as leaving the argument out.
fn parse<T: TetherTool>(arguments: JsonObject) -> Result<T::Arguments, Failure> {
    let given: JsonObject = arguments.into_iter().filter(|(_, value)| !value.is_null()).collect();
    serde_path_to_error::deserialize(Value::Object(given)).map_err(|error| {
        let at = error.path().to_string();
        let argument = if at == "." { String::new() } else { format!("{at}: ") };
        Failure::bad_input(format!("{}: {argument}{}", T::NAME, error.into_inner()))
    })
}

fn took_too_long(name: &str) -> Failure {
    let message = format!("{name} did not end within {} s", READ_LIMIT.as_secs());
    Failure::new(FailureKind::Timeout, message, "nothing was changed; call again")
        .billing(StillBilling::Unknown)
        .retryable()
}
