//! Faults that can be switched on by name: what the provider has been seen to do to people.

use std::fmt;
use std::str::FromStr;

/// What the number behind a fault's name counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultValue {
    /// How often it happens before it is over; `None` is every time.
    Times(Option<u32>),
    /// How many seconds it lasts.
    Seconds(u32),
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
}

pub(super) const CREATE_REPLY_LOST: &str = "create-reply-lost";
pub(super) const NO_CAPACITY: &str = "no-capacity";
pub(super) const SLOW_BOOT: &str = "slow-boot";
pub(super) const STOP_WITHOUT_EFFECT: &str = "stop-without-effect";
pub(super) const RATE_LIMITED: &str = "rate-limited";
pub(super) const CREATE_ERROR: &str = "create-error-after-effect";
pub(super) const EDGE_HTML: &str = "edge-html";
pub(super) const EDGE_1010: &str = "edge-1010";
pub(super) const EMPTY_REPLY: &str = "empty-reply";
pub(super) const LATE_ENVIRONMENT: &str = "late-environment";
pub(super) const LIST_LAG: &str = "list-lag";
pub(super) const NEVER_BOOTS: &str = "never-boots";
pub(super) const OLD_DRIVER: &str = "old-driver";
pub(super) const READ_ONLY_KEY: &str = "read-only-key";
pub(super) const RETIRED: &str = "retired";
pub(super) const STALE_PORT: &str = "stale-port";
pub(super) const STOP_REFUSED: &str = "stop-refused";
pub(super) const ZERO_GPUS: &str = "zero-gpus";

/// Every fault there is.
pub const FAULTS: &[FaultKind] = &[
    FaultKind {
        name: CREATE_REPLY_LOST,
        meaning: "a pod is created and the connection is cut instead of an answer",
        value: FaultValue::Times(Some(1)),
    },
    FaultKind {
        name: NO_CAPACITY,
        meaning: "create and start are refused with the provider's words for a lack of machines",
        value: FaultValue::Times(None),
    },
    FaultKind {
        name: SLOW_BOOT,
        meaning: "a pod stays STARTING so much longer",
        value: FaultValue::Seconds(20),
    },
    FaultKind {
        name: STOP_WITHOUT_EFFECT,
        meaning: "a stop is answered with 200 and nothing happens",
        value: FaultValue::Times(None),
    },
    FaultKind {
        name: RATE_LIMITED,
        meaning: "requests are answered with 429",
        value: FaultValue::Times(Some(3)),
    },
    FaultKind {
        name: CREATE_ERROR,
        meaning: "a pod is created and the answer is 500",
        value: FaultValue::Times(Some(1)),
    },
    FaultKind {
        name: EDGE_HTML,
        meaning: "requests are answered with 502 and a page of HTML",
        value: FaultValue::Times(Some(1)),
    },
    FaultKind {
        name: EDGE_1010,
        meaning: "requests are answered with 403 and `error code: 1010`, as by the edge",
        value: FaultValue::Times(Some(1)),
    },
    FaultKind {
        name: EMPTY_REPLY,
        meaning: "requests take effect and are answered with 200 and no body",
        value: FaultValue::Times(Some(1)),
    },
    FaultKind {
        name: LATE_ENVIRONMENT,
        meaning: "the environment file is written so much later than SSH is there",
        value: FaultValue::Seconds(2),
    },
    FaultKind {
        name: LIST_LAG,
        meaning: "a new pod is in no list and has no page of its own for so long",
        value: FaultValue::Seconds(5),
    },
    FaultKind {
        name: NEVER_BOOTS,
        meaning: "a pod stays STARTING for ever, and bills",
        value: FaultValue::Times(None),
    },
    FaultKind {
        name: OLD_DRIVER,
        meaning: "a pod boots on a host with a driver that is too old",
        value: FaultValue::Times(None),
    },
    FaultKind {
        name: READ_ONLY_KEY,
        meaning: "the account's key may read and nothing else",
        value: FaultValue::Times(None),
    },
    FaultKind {
        name: RETIRED,
        meaning: "requests are answered with 410: this version of the API is gone",
        value: FaultValue::Times(None),
    },
    FaultKind {
        name: STALE_PORT,
        meaning: "after a start so many reads of a pod show the SSH port of before",
        value: FaultValue::Times(Some(1)),
    },
    FaultKind {
        name: STOP_REFUSED,
        meaning: "a pod with a network volume cannot be stopped, only terminated",
        value: FaultValue::Times(None),
    },
    FaultKind {
        name: ZERO_GPUS,
        meaning: "a pod boots without a GPU",
        value: FaultValue::Times(None),
    },
];

/// A fault with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which one.
    pub kind: &'static FaultKind,
    /// The number: times left or seconds, as [`FaultKind::value`] says. `None` is every time.
    pub value: Option<u32>,
}

/// Text that names no fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// No fault has this name.
    #[error("there is no fault `{name}`{}; there are: {}", hint(.nearest), list())]
    Unknown {
        /// The name given.
        name: String,
        /// The nearest name there is.
        nearest: Option<&'static str>,
    },
    /// The value is not a whole number.
    #[error("the value of fault `{name}` is not a whole number: `{value}`")]
    NotANumber {
        /// The fault.
        name: &'static str,
        /// The value given.
        value: String,
    },
}

fn hint(nearest: &Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

fn list() -> String {
    FAULTS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ")
}

impl FromStr for Fault {
    type Err = FaultError;

    /// Reads `NAME` or `NAME=VALUE`.
    fn from_str(text: &str) -> Result<Self, FaultError> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (text.trim(), None),
        };
        let Some(kind) = FAULTS.iter().find(|kind| kind.name == name) else {
            let nearest = FAULTS
                .iter()
                .map(|kind| (strsim::jaro_winkler(kind.name, name), kind.name))
                .filter(|(likeness, _)| *likeness > 0.75)
                .max_by(|(one, _), (other, _)| one.total_cmp(other))
                .map(|(_, name)| name);
            return Err(FaultError::Unknown { name: name.to_owned(), nearest });
        };
        let value = match (value, kind.value) {
            (Some(value), _) => Some(value.parse().map_err(|_| FaultError::NotANumber {
                name: kind.name,
                value: value.to_owned(),
            })?),
            (None, FaultValue::Times(times)) => times,
            (None, FaultValue::Seconds(seconds)) => Some(seconds),
        };
        Ok(Self { kind, value })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            Some(value) => write!(f, "{}={value}", self.kind.name),
            None => f.write_str(self.kind.name),
        }
    }
}

/// The faults that are switched on.
#[derive(Debug, Default)]
pub(super) struct Faults {
    active: Vec<Fault>,
}

impl Faults {
    pub fn new(active: Vec<Fault>) -> Self {
        Self { active }
    }

    pub fn list(&self) -> Vec<String> {
        self.active.iter().map(ToString::to_string).collect()
    }

    /// Whether the fault happens now; counts it when it is limited in number.
    pub fn happens(&mut self, name: &str) -> bool {
        let Some(position) = self.active.iter().position(|fault| fault.kind.name == name) else {
            return false;
        };
        let Some(fault) = self.active.get_mut(position) else { return false };
        match &mut fault.value {
            None => true,
            Some(0) => {
                self.active.remove(position);
                false
            }
            Some(left) => {
                *left -= 1;
                if *left == 0 {
                    self.active.remove(position);
                }
                true
            }
        }
    }

    /// How many seconds the fault lasts, when it is switched on.
    pub fn seconds(&self, name: &str) -> Option<u32> {
        self.active.iter().find(|fault| fault.kind.name == name).and_then(|fault| fault.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_fault_is_refused_with_the_nearest_name_and_the_list() {
        let message = "slowboot".parse::<Fault>().unwrap_err().to_string();
        assert!(message.contains("did you mean `slow-boot`"), "{message}");
        assert!(message.contains("create-reply-lost, no-capacity"), "{message}");
        assert!("slow-boot=soon".parse::<Fault>().is_err());
        assert!("slow-boot=-1".parse::<Fault>().is_err());
    }

    #[test]
    fn a_counted_fault_ends_and_an_uncounted_one_does_not() {
        let parse = |text: &str| text.parse::<Fault>().unwrap();
        let mut faults = Faults::new(vec![parse("rate-limited=2"), parse("stop-without-effect")]);
        let seen: Vec<bool> = (0..4).map(|_| faults.happens(RATE_LIMITED)).collect();
        assert_eq!(seen, [true, true, false, false]);
        assert!((0..9).all(|_| faults.happens(STOP_WITHOUT_EFFECT)));
        assert_eq!(faults.list(), ["stop-without-effect"]);
        assert!(!Faults::new(vec![parse("no-capacity=0")]).happens(NO_CAPACITY));
    }
}
