//! The fault script of a campaign: what goes wrong, on which calls, from when to when, how often. What
//! each fault looks like to podtether is what `cloud/runpod/classify.rs` makes of the real thing.

use super::dice::Dice;
use std::time::Duration;

/// Which calls a fault meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// Every call.
    Any,
    /// Calls that change nothing.
    Read,
    /// Calls that change something.
    Write,
    /// The list of all pods.
    List,
    /// One pod.
    Get,
    /// Volumes, catalog, bill.
    Rest,
    /// A create.
    Create,
    /// A start.
    Start,
    /// A stop.
    Stop,
}

impl On {
    /// Whether a fault on `self` meets a call of the kind `call`, which is never a group.
    pub fn meets(self, call: Self) -> bool {
        let writes = matches!(call, Self::Create | Self::Start | Self::Stop);
        match self {
            Self::Any => true,
            Self::Read => !writes,
            Self::Write => writes,
            single => single == call,
        }
    }
}

/// What goes wrong with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No connection: the request was certainly not sent.
    NoConnection,
    /// The request is lost on its way, nobody answers.
    LostRequest,
    /// The effect comes, the answer does not.
    LostReply,
    /// The answer does not come, the effect does, so many seconds later.
    LateEffect(u64),
    /// 500 in place of an effect.
    Error,
    /// 500 after the effect.
    ErrorAfter,
    /// 200 with nothing in it; a change has had its effect.
    Empty,
    /// A web page of the edge with status 502; the request never got through.
    Html,
    /// The same, after the effect.
    HtmlAfter,
    /// 403 `error code: 1010`.
    Edge1010,
    /// 401.
    Auth,
    /// 403 in the API's words.
    Forbidden,
    /// 410.
    Retired,
    /// 429, with seconds to wait or without.
    Limited(Option<u64>),
    /// The answer takes so many seconds; a client gives up after 30.
    Slow(u64),
    /// 404 for a pod that is there.
    NotFound,
    /// The provider takes a change, answers 200, and does nothing.
    NoEffect,
    /// No machine is free.
    NoCapacity,
}

/// What goes wrong with the state of things, whoever asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Lists show pods as they were so many seconds ago.
    ListLag(u64),
    /// A pod that was just created is shown nowhere for so many seconds (A05).
    Hidden(u64),
    /// Pods are locked.
    Locked,
    /// Pods on the bill are shown with status ERROR and cannot be stopped.
    ShownError,
    /// Pods on the bill are shown with a status that nobody knows.
    ShownUnknown,
    /// What starts comes up without a GPU.
    ZeroGpus,
    /// What starts never comes up.
    NeverBoots,
    /// Pods and the catalog show no price.
    NoPrice,
    /// The catalog's price is so many percent of what it was.
    Price(u64),
    /// The environment of a pod is not told.
    NoEnvironment,
    /// The bill is so many seconds behind, beyond the usual hour.
    BillLag(u64),
    /// Every other record is missing from the bill.
    BillHoles,
    /// The shells of pods do not answer.
    ShellDown,
    /// Commands run, their answers do not come.
    ShellLost,
    /// The pods' volumes hang: whoever touches one does not come back before this is over (E14).
    VolumeHangs,
    /// The laptop has no network: neither provider nor pods are reached.
    Offline,
}

/// Either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// With calls.
    Call(Kind, On),
    /// With the state.
    State(State),
}

/// One line of the script.
#[derive(Clone, Debug)]
pub struct Fault {
    /// What.
    pub what: What,
    /// From when on, after the start of the campaign.
    pub from: Duration,
    /// Until when.
    pub until: Duration,
    /// How often it still happens; faults of the state do not count.
    pub left: u32,
}

impl Fault {
    /// Whether it is on at this time.
    pub fn is_on(&self, at: Duration) -> bool {
        self.left > 0 && self.from <= at && at < self.until
    }
}

const CALLS: [On; 9] =
    [On::Any, On::Read, On::Write, On::List, On::Get, On::Rest, On::Create, On::Start, On::Stop];

/// How late an effect comes, how long a new pod is hidden and how far lists lag, each at most. Together
/// they stay below the 120 s of `Settings::absent_after`: beyond that no absence is ever proof.
const LATE_SEC: u64 = 30;

/// Draws a script for a campaign of this length.
pub fn draw(dice: &mut Dice, length: Duration) -> Vec<Fault> {
    let count = dice.pick(&[0, 1, 1, 2, 2, 3, 4, 6, 9]);
    (0..count).map(|_| one(dice, length)).collect()
}

fn one(dice: &mut Dice, length: Duration) -> Fault {
    let what = if dice.percent(60) { call(dice) } else { What::State(state(dice)) };
    let length = u64::try_from(length.as_millis()).unwrap();
    // Most of what matters is at the beginning, where pods are made.
    let from = match dice.between(0, 9) {
        0..4 => 0,
        4..7 => dice.between(0, 600_000),
        _ => dice.between(0, length),
    };
    let lasts = dice.time(4_000, 30 * 60_000);
    let left = dice.pick(&[1, 1, 2, 3, 5, 20, u32::MAX]);
    let from = Duration::from_millis(from);
    Fault { what, from, until: from + lasts, left }
}

fn call(dice: &mut Dice) -> What {
    let late = dice.between(1, LATE_SEC);
    let kind = dice.pick(&[
        Kind::NoConnection,
        Kind::LostRequest,
        Kind::LostReply,
        Kind::LostReply,
        Kind::LateEffect(late),
        Kind::Error,
        Kind::ErrorAfter,
        Kind::Empty,
        Kind::Html,
        Kind::HtmlAfter,
        Kind::Edge1010,
        Kind::Auth,
        Kind::Forbidden,
        Kind::Retired,
        Kind::Limited(None),
        Kind::Limited(Some(1)),
        Kind::Limited(Some(120)),
        Kind::Slow(5),
        Kind::Slow(25),
        Kind::NotFound,
        Kind::NoEffect,
        Kind::NoCapacity,
    ]);
    let on = match kind {
        // A key that can read and not write (A07); a key that is not accepted at all.
        Kind::Forbidden => On::Write,
        Kind::Auth => dice.pick(&[On::Any, On::Write, On::Stop]),
        Kind::NotFound => dice.pick(&[On::Get, On::Stop, On::Start]),
        Kind::NoEffect => dice.pick(&[On::Stop, On::Stop, On::Start]),
        Kind::NoCapacity => dice.pick(&[On::Create, On::Start]),
        Kind::LostReply | Kind::LateEffect(_) | Kind::ErrorAfter | Kind::HtmlAfter => {
            dice.pick(&[On::Create, On::Create, On::Start, On::Stop, On::Write])
        }
        _ => dice.pick(&CALLS),
    };
    What::Call(kind, on)
}

fn state(dice: &mut Dice) -> State {
    let seconds = dice.between(1, LATE_SEC);
    let price = dice.pick(&[40, 110, 300]);
    let lag = dice.between(60, 7_200);
    dice.pick(&[
        State::ListLag(seconds),
        State::ListLag(seconds),
        State::Hidden(seconds),
        State::Hidden(seconds),
        State::Locked,
        State::ShownError,
        State::ShownUnknown,
        State::ZeroGpus,
        State::NeverBoots,
        State::NoPrice,
        State::Price(price),
        State::NoEnvironment,
        State::BillLag(lag),
        State::BillHoles,
        State::ShellDown,
        State::ShellLost,
        State::Offline,
        State::Offline,
    ])
}
