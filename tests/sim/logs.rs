//! What a simulated job writes into its log, as a function of time: blocks of a training, with what may go
//! wrong in one. It follows from the job alone, so that it shifts nothing else of a campaign.

use super::dice::Dice;
use std::fmt::Write as _;
use std::time::Duration;

/// What sort of a run it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It learns to its end.
    Learns,
    /// Its reward does not move from its middle on.
    Flat,
    /// It says nothing for an hour, its GPU idle, and then goes on.
    Silent,
    /// A traceback in its middle is caught, and it goes on.
    Caught,
    /// Its reward is no number from its middle on.
    Nan,
    /// Nothing of it can be read as a training.
    Plain,
}

/// A log.
#[derive(Clone, Debug)]
pub struct SimLog {
    pub kind: Kind,
    /// When each piece is written, after the launch, and what it says.
    pieces: Vec<(Duration, String)>,
    text: String,
    next: usize,
}

/// How far one block is from the next in iterations: the plateau's window is five of them.
const STEP: u64 = 10;
/// How long a silent run says nothing.
const SILENCE: Duration = Duration::from_secs(3_600);
const TRACEBACK: &str = "Traceback (most recent call last):\n  File \"train.py\"\nValueError: x\n";

impl SimLog {
    /// The log of a job that takes so long and ends with `code`; `seed` is the job's own.
    pub fn new(seed: u64, takes: Duration, code: u8) -> Self {
        let mut dice = Dice::new(seed);
        let kind = dice.pick(&[
            Kind::Learns,
            Kind::Learns,
            Kind::Learns,
            Kind::Flat,
            Kind::Silent,
            Kind::Caught,
            Kind::Nan,
            Kind::Plain,
        ]);
        // Who has a number to show for it succeeds.
        let kind = if code == 0 && kind == Kind::Nan { Kind::Learns } else { kind };
        let says_the_end = code == 0 || (code == 1 && dice.percent(10));
        let every = (takes / 40).clamp(Duration::from_secs(20), Duration::from_secs(300));
        let last = takes.saturating_sub(Duration::from_secs(dice.between(2, 40)));
        let blocks = u64::try_from(last.as_millis() / every.as_millis()).unwrap();
        let total = blocks * STEP + if says_the_end { 0 } else { 1_000 };
        let middle = blocks / 2;
        let mut pieces = Vec::new();
        let mut hush = Duration::ZERO;
        for block in 1..=blocks {
            if kind == Kind::Plain {
                break;
            }
            if kind == Kind::Silent && block == middle {
                hush = SILENCE;
            }
            let at = every * u32::try_from(block).unwrap() + hush;
            if at > last {
                break;
            }
            let reward = match kind {
                Kind::Flat => (block.min(middle) * 2).to_string(),
                Kind::Nan if block >= middle => "nan".to_owned(),
                _ => (block * 2).to_string(),
            };
            let caught = if kind == Kind::Caught && block == middle { TRACEBACK } else { "" };
            let at_iteration = block * STEP;
            pieces.push((
                at,
                format!(
                    "{}\n  Learning iteration {at_iteration}/{total}\n\n  Mean reward: {reward}\n  ETA: 9.0s\n\n{caught}",
                    "#".repeat(80)
                ),
            ));
        }
        if code == 1 && dice.percent(60) {
            pieces.push((takes, TRACEBACK.to_owned()));
        }
        Self { kind, pieces, text: String::new(), next: 0 }
    }

    /// Everything that was written by then, after the launch, and when the last of it was.
    pub fn by(&mut self, age: Duration) -> (&str, Duration) {
        while let Some((_, text)) = self.pieces.get(self.next).filter(|(at, _)| *at <= age) {
            let _ = write!(self.text, "{text}");
            self.next += 1;
        }
        let last = self.next.checked_sub(1).map_or(Duration::ZERO, |last| self.pieces[last].0);
        (&self.text, last)
    }

    /// How many pieces there are by then.
    pub fn pieces_by(&self, age: Duration) -> usize {
        self.pieces.iter().filter(|(at, _)| *at <= age).count()
    }

    /// Whether the GPU is at work.
    pub fn is_at_work(&self, age: Duration) -> bool {
        let written = self.pieces.iter().take_while(|(at, _)| *at <= age).last();
        let quiet = age.saturating_sub(written.map_or(Duration::ZERO, |(at, _)| *at));
        self.kind != Kind::Silent || quiet < Duration::from_secs(400)
    }

    /// Whether a watch that calls this a stall was right at some time until then.
    pub fn was_stalled(&self, age: Duration, stall: Duration) -> bool {
        let patience = if self.kind == Kind::Silent { stall } else { stall * 6 };
        self.longest_silence(age) >= patience
    }

    /// The longest time without a word until then.
    fn longest_silence(&self, age: Duration) -> Duration {
        let mut before = Duration::ZERO;
        let mut longest = Duration::ZERO;
        for (at, _) in self.pieces.iter().filter(|(at, _)| *at <= age) {
            longest = longest.max(at.saturating_sub(before));
            before = *at;
        }
        longest.max(age.saturating_sub(before))
    }

    /// Whether something that a watch takes for a failure stands in it by then.
    pub fn shows_a_failure(&self, age: Duration) -> bool {
        let written = self.pieces.iter().take_while(|(at, _)| *at <= age);
        let mut all = written.map(|(_, text)| text);
        all.any(|text| text.contains("Traceback") || text.contains("nan"))
    }
}
