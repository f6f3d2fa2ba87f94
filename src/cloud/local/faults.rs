//! Faults that can be switched on by name: what the provider has been seen to do to people. How they
//! are written is in `written`, how they happen in `active`; `docs/faults.md` lists them for users.

mod active;
mod written;

pub(super) use active::Faults;
pub use written::{Fault, FaultError, ScenarioError, scenario};

/// What the number behind a fault's name counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultValue {
    /// How often it happens before it is over; `None` is every time.
    Times(Option<u32>),
    /// How many seconds it lasts.
    Seconds(u32),
}

/// Which request of the API it is, for a fault that is to meet only some: `@on:WORD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// Any.
    Any,
    /// Every request that changes nothing.
    Read,
    /// Every request that changes something.
    Write,
    /// A list of pods or volumes.
    List,
    /// One pod, read.
    Get,
    /// The create of a pod or volume.
    Create,
    /// The start of a pod.
    Start,
    /// The stop of a pod.
    Stop,
    /// The end of a pod or volume.
    Terminate,
    /// A billing record.
    Billing,
}

impl On {
    /// Every word there is.
    pub const ALL: [Self; 10] = [
        Self::Any,
        Self::Read,
        Self::Write,
        Self::List,
        Self::Get,
        Self::Create,
        Self::Start,
        Self::Stop,
        Self::Terminate,
        Self::Billing,
    ];

    /// The word behind `@on:`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Read => "read",
            Self::Write => "write",
            Self::List => "list",
            Self::Get => "get",
            Self::Create => "create",
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Terminate => "terminate",
            Self::Billing => "billing",
        }
    }
}

/// One kind of fault.
#[derive(Debug, PartialEq, Eq)]
pub struct FaultKind {
    /// Its name, as in `--fault NAME`.
    pub name: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// What `=VALUE` counts, and the value without it.
    pub value: FaultValue,
    /// Whether it meets requests as such, so that `@on:` can choose among them.
    pub meets_requests: bool,
}

const fn request(name: &'static str, value: FaultValue, meaning: &'static str) -> FaultKind {
    FaultKind { name, meaning, value, meets_requests: true }
}

const fn state(name: &'static str, value: FaultValue, meaning: &'static str) -> FaultKind {
    FaultKind { name, meaning, value, meets_requests: false }
}

const ONCE: FaultValue = FaultValue::Times(Some(1));
const ALWAYS: FaultValue = FaultValue::Times(None);

pub(super) const BILLING_HOLES: &str = "billing-holes";
pub(super) const BILLING_LAG: &str = "billing-lag";
pub(super) const CLOCK_AHEAD: &str = "clock-ahead";
pub(super) const CLOCK_BEHIND: &str = "clock-behind";
pub(super) const CLUSTER_POD: &str = "cluster-pod";
pub(super) const CREATE_ERROR: &str = "create-error-after-effect";
pub(super) const CREATE_REPLY_LOST: &str = "create-reply-lost";
pub(super) const DUPLICATE: &str = "duplicate";
pub(super) const ENVIRONMENT_CUT: &str = "environment-cut";
pub(super) const ENVIRONMENT_UNEXPORTED: &str = "environment-unexported";
pub(super) const EDGE_1010: &str = "edge-1010";
pub(super) const EDGE_HTML: &str = "edge-html";
pub(super) const EMPTY_REPLY: &str = "empty-reply";
pub(super) const ERROR_AFTER: &str = "error-after-effect";
pub(super) const FROZEN_VOLUME: &str = "frozen-volume";
pub(super) const FULL_DISK: &str = "full-disk";
pub(super) const LATE_ENVIRONMENT: &str = "late-environment";
pub(super) const LINK_DROPS: &str = "link-drops";
pub(super) const LINK_STALLS: &str = "link-stalls";
pub(super) const LIST_LAG: &str = "list-lag";
pub(super) const LOCKED: &str = "locked";
pub(super) const NEVER_BOOTS: &str = "never-boots";
pub(super) const NO_CAPACITY: &str = "no-capacity";
pub(super) const NO_PACKAGES: &str = "no-packages";
pub(super) const NO_PUBLIC_KEY: &str = "no-public-key";
pub(super) const NO_RSYNC: &str = "no-rsync";
pub(super) const NO_RUNPODCTL: &str = "no-runpodctl";
pub(super) const NOISY_SHELL: &str = "noisy-shell";
pub(super) const NOT_FOUND: &str = "not-found";
pub(super) const OLD_DRIVER: &str = "old-driver";
pub(super) const OTHER_MACHINE: &str = "other-machine";
pub(super) const PID_REUSED: &str = "pid-reused";
pub(super) const POD_CLOCK_AHEAD: &str = "pod-clock-ahead";
pub(super) const POD_CLOCK_BEHIND: &str = "pod-clock-behind";
pub(super) const POD_KEY_BOUND: &str = "pod-key-bound";
pub(super) const POD_KEY_READ_ONLY: &str = "pod-key-read-only";
pub(super) const PRICE_NAN: &str = "price-nan";
pub(super) const PRICE_ZERO: &str = "price-zero";
pub(super) const RATE_LIMITED: &str = "rate-limited";
pub(super) const RATE_LIMITED_BARE: &str = "rate-limited-bare";
pub(super) const RATE_LIMITED_LONG: &str = "rate-limited-long";
pub(super) const READ_ONLY_KEY: &str = "read-only-key";
pub(super) const REPEATED_CURSOR: &str = "repeated-cursor";
pub(super) const REBOOT: &str = "reboot";
pub(super) const REPLY_DELAYED: &str = "reply-delayed";
pub(super) const REPLY_LOST: &str = "reply-lost";
pub(super) const REQUEST_LOST: &str = "request-lost";
pub(super) const RETIRED: &str = "retired";
pub(super) const REVOKED: &str = "revoked-key";
pub(super) const SECOND_PAGE: &str = "second-page";
pub(super) const SLOW_BOOT: &str = "slow-boot";
pub(super) const STALE_MOUNT: &str = "stale-mount";
pub(super) const STALE_PORT: &str = "stale-port";
pub(super) const STALE_STATUS: &str = "stale-status";
pub(super) const STATUS_ERROR: &str = "status-error";
pub(super) const STATUS_UNKNOWN: &str = "status-unknown";
pub(super) const STOP_REFUSED: &str = "stop-refused";
pub(super) const STOP_WITHOUT_EFFECT: &str = "stop-without-effect";
pub(super) const STRANGER: &str = "stranger";
pub(super) const WRAPPER_KILLED: &str = "wrapper-killed";
pub(super) const ZERO_GPUS: &str = "zero-gpus";
pub(super) const ZERO_GPUS_ON_START: &str = "zero-gpus-on-start";

/// Every fault there is, by name.
pub const FAULTS: &[FaultKind] = &[
    state(BILLING_HOLES, ALWAYS, "every other billing record is missing"),
    state(BILLING_LAG, FaultValue::Seconds(86_400), "billing is so much further behind"),
    state(CLOCK_AHEAD, FaultValue::Seconds(7200), "the times of pods are so far in the future"),
    state(CLOCK_BEHIND, FaultValue::Seconds(7200), "the times of pods are so far in the past"),
    state(CLUSTER_POD, ALWAYS, "lists that include cluster pods show one that nobody declared"),
    state(CREATE_ERROR, ONCE, "a pod is created and the answer is 500"),
    state(
        CREATE_REPLY_LOST,
        ONCE,
        "a pod is created and the connection is cut instead of an answer",
    ),
    state(DUPLICATE, ALWAYS, "lists show every pod a second time, under another id"),
    request(
        EDGE_1010,
        ONCE,
        "requests are answered with 403 and `error code: 1010`, as by the edge",
    ),
    request(EDGE_HTML, ONCE, "requests are answered with 502 and a page of HTML"),
    request(EMPTY_REPLY, ONCE, "requests take effect and are answered with 200 and no body"),
    state(ENVIRONMENT_CUT, ALWAYS, "the environment file ends in the middle of the pod's own key"),
    state(
        ENVIRONMENT_UNEXPORTED,
        ALWAYS,
        "the environment file has no `export`, and its values stand in single quotes",
    ),
    request(ERROR_AFTER, ONCE, "requests take effect and are answered with 500"),
    state(
        FROZEN_VOLUME,
        ALWAYS,
        "programs of pods hang as long as it is on when they touch the volume",
    ),
    state(
        FULL_DISK,
        ALWAYS,
        "programs of pods get `No space left on device` when they write to the volume",
    ),
    state(
        LATE_ENVIRONMENT,
        FaultValue::Seconds(2),
        "the environment file is written so much later than SSH is there",
    ),
    state(
        LINK_DROPS,
        ONCE,
        "an SSH connection is cut just after a command has begun, which goes on",
    ),
    state(
        LINK_STALLS,
        FaultValue::Seconds(5),
        "nothing goes over SSH connections for so long, and none of them ends",
    ),
    state(
        LIST_LAG,
        FaultValue::Seconds(5),
        "a new pod is in no list and has no page of its own for so long",
    ),
    state(LOCKED, ALWAYS, "pods are locked: a stop or restart is answered with 409"),
    state(NEVER_BOOTS, ALWAYS, "a pod stays STARTING for ever, and bills"),
    state(
        NO_CAPACITY,
        ALWAYS,
        "create and start are refused with the provider's words for a lack of machines",
    ),
    state(NO_PACKAGES, ALWAYS, "a pod boots where apt-get finds no package"),
    state(NO_PUBLIC_KEY, ALWAYS, "a pod boots without PUBLIC_KEY: its SSH server lets nobody in"),
    state(NO_RSYNC, ALWAYS, "a pod boots without rsync, which apt-get can install"),
    state(NO_RUNPODCTL, ALWAYS, "a pod boots without runpodctl"),
    state(NOISY_SHELL, ALWAYS, "the shell of pods writes a greeting before each command"),
    request(NOT_FOUND, ONCE, "requests that name a pod are answered with 404"),
    state(OLD_DRIVER, ALWAYS, "a pod boots on a host with a driver that is too old"),
    state(
        OTHER_MACHINE,
        ALWAYS,
        "what boots at a pod's address is somebody else's machine, by its environment file",
    ),
    state(
        PID_REUSED,
        ONCE,
        "every process of a pod ends, and the pids of its jobs belong to another one",
    ),
    state(
        POD_CLOCK_AHEAD,
        FaultValue::Seconds(10_800),
        "a pod boots with a `date` that is so far ahead",
    ),
    state(
        POD_CLOCK_BEHIND,
        FaultValue::Seconds(10_800),
        "a pod boots with a `date` that is so far behind",
    ),
    state(
        POD_KEY_BOUND,
        ALWAYS,
        "a pod's own key gets 403 for every other pod, also for one that does not exist",
    ),
    state(
        POD_KEY_READ_ONLY,
        ALWAYS,
        "a pod's own key may read its pod; a change is answered with 403",
    ),
    state(PRICE_NAN, ALWAYS, "pods and the catalog show the price NaN"),
    state(PRICE_ZERO, ALWAYS, "pods and the catalog show the price 0"),
    request(
        RATE_LIMITED,
        FaultValue::Times(Some(3)),
        "requests are answered with 429 and a Retry-After of one second",
    ),
    request(
        RATE_LIMITED_BARE,
        FaultValue::Times(Some(3)),
        "requests are answered with 429 and no header that says for how long",
    ),
    request(
        RATE_LIMITED_LONG,
        FaultValue::Times(Some(3)),
        "requests are answered with 429 and a Retry-After of two minutes",
    ),
    request(READ_ONLY_KEY, ALWAYS, "the account's key may read; a change is answered with 403"),
    state(
        REBOOT,
        ONCE,
        "the machine of a pod that runs is booted: its processes end, its boot id is new",
    ),
    state(REPEATED_CURSOR, ALWAYS, "each page of a list names the same next page"),
    request(
        REPLY_DELAYED,
        FaultValue::Seconds(3),
        "requests take effect and are answered so much later",
    ),
    request(
        REPLY_LOST,
        ONCE,
        "requests take effect and the connection is cut instead of an answer",
    ),
    request(REQUEST_LOST, ONCE, "the connection is cut before a request takes effect"),
    request(RETIRED, ALWAYS, "requests are answered with 410: this version of the API is gone"),
    request(
        REVOKED,
        ALWAYS,
        "requests are answered with 401, changes only unless `@on:` says otherwise",
    ),
    state(SECOND_PAGE, ALWAYS, "lists come in pages of one entry, asked for or not"),
    state(SLOW_BOOT, FaultValue::Seconds(20), "a pod stays STARTING so much longer"),
    state(STALE_MOUNT, ALWAYS, "the mount of a volume leads nowhere"),
    state(STALE_PORT, ONCE, "after a start so many reads of a pod show the SSH port of before"),
    state(STALE_STATUS, ALWAYS, "lists show a stopped pod as RUNNING"),
    state(
        STATUS_ERROR,
        ALWAYS,
        "pods that are not stopped show ERROR; a stop is answered with 409",
    ),
    state(
        STATUS_UNKNOWN,
        ALWAYS,
        "pods that are not stopped show MIGRATING, a word of no documentation",
    ),
    state(STOP_REFUSED, ALWAYS, "a pod with a network volume cannot be stopped, only terminated"),
    state(STOP_WITHOUT_EFFECT, ALWAYS, "a stop is answered with 200 and nothing happens"),
    state(STRANGER, ALWAYS, "lists show a running pod of a name that nobody declared"),
    state(
        WRAPPER_KILLED,
        ONCE,
        "the wrapper of a job is killed, as for want of memory; the job lives on",
    ),
    state(ZERO_GPUS, ALWAYS, "a pod boots without a GPU"),
    state(
        ZERO_GPUS_ON_START,
        ALWAYS,
        "a start of a stopped pod leaves it without a GPU, and says so",
    ),
];
