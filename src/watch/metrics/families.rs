//! Every family over one log: which of them owns it, how far the run is, and whether it has ended.

use super::bar::Bar;
use super::hugging_face::HuggingFace;
use super::lightning::Lightning;
use super::pattern::{Pattern, PatternLines};
use super::rl_games::RlGames;
use super::rsl_rl::RslRl;
use super::sb3::Sb3;
use super::ultralytics::Ultralytics;
use super::{Block, Family};
use std::time::Duration;

/// The families of logs that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FamilyName {
    /// Blocks of `rsl_rl`, as Isaac Lab and legged_gym print them.
    RslRl,
    /// Speed lines of `rl_games`.
    RlGames,
    /// Tables of Stable-Baselines3.
    Sb3,
    /// skrl, which prints nothing but a progress bar.
    Skrl,
    /// Dictionaries between the progress bars of Hugging Face's Trainer.
    HuggingFace,
    /// Epochs of PyTorch Lightning.
    Lightning,
    /// Epoch rows of Ultralytics YOLO.
    Ultralytics,
    /// Lines of a form that the user gave.
    Pattern,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Position {
    /// The iteration as printed.
    pub iteration: u64,
    /// How many there will be, when the log says so.
    pub total: Option<u64>,
    /// Whether it is the last one, by the family's own way of counting.
    pub is_last: bool,
    /// Since the start of the run, as the log says.
    pub elapsed: Option<Duration>,
    /// To its end, as the log says.
    pub eta: Option<Duration>,
}

/// What one line gave.
#[derive(Debug, Default)]
pub(in crate::watch) struct Taken {
    /// A block that it completed.
    pub(in crate::watch) block: Option<Block>,
    /// Whether the run is further than before it.
    pub(in crate::watch) progress: bool,
}

/// The families that may own the log; one, once there is evidence.
#[derive(Debug)]
pub(in crate::watch) struct Families {
    families: Vec<Box<dyn Family>>,
    owned: bool,
    position: Option<Position>,
    said_the_end: bool,
}

impl Families {
    pub(in crate::watch) fn all() -> Self {
        Self::over(vec![
            Box::new(RslRl::default()),
            Box::new(RlGames::default()),
            Box::new(Sb3::default()),
            Box::new(HuggingFace::default()),
            Box::new(Lightning::default()),
            Box::new(Ultralytics::default()),
        ])
    }

    pub(in crate::watch) fn of(name: FamilyName) -> Self {
        let mut all = Self::all();
        // skrl has no lines of its own: its progress bar is read whatever the family.
        all.families.retain(|family| family.name() == name);
        if name == FamilyName::Ultralytics {
            all.families = vec![Box::new(Ultralytics::of_a_known_log())];
        }
        all.owned = true;
        all
    }

    pub(in crate::watch) fn of_pattern(pattern: Pattern) -> Self {
        Self { owned: true, ..Self::over(vec![Box::new(PatternLines::new(pattern))]) }
    }

    fn over(families: Vec<Box<dyn Family>>) -> Self {
        Self { families, owned: false, position: None, said_the_end: false }
    }

    /// Goes on with a run that was read before.
    pub(in crate::watch) fn resume(&mut self, position: Option<Position>) {
        self.position = position;
    }

    pub(in crate::watch) fn line(&mut self, line: &str) -> Taken {
        let bar = Bar::read(line);
        let mut taken = Taken::default();
        if let Some(bar) = bar.as_ref().filter(|bar| bar.is_the_runs_own()) {
            taken.progress = self.position.is_none_or(|before| before.iteration != bar.at);
            self.move_to(Position {
                iteration: bar.at,
                total: Some(bar.total),
                is_last: bar.at >= bar.total,
                elapsed: bar.elapsed,
                eta: bar.eta,
            });
        }
        let found = self.families.iter_mut().enumerate().find_map(|(index, family)| {
            family.line(line, bar.as_ref()).map(|block| (index, block))
        });
        if let Some((index, block)) = found {
            // Evidence: from here on the log belongs to this family.
            self.families.swap(0, index);
            self.families.truncate(1);
            self.owned = true;
            self.take(&block);
            taken = Taken { block: Some(block), progress: true };
        }
        if self.owned {
            self.said_the_end |= self.families.iter().any(|family| family.said_the_end());
        }
        taken
    }

    pub(in crate::watch) fn end(&mut self) -> Option<Block> {
        let block = self.families.iter_mut().find_map(|family| family.end())?;
        let said_the_end = self.said_the_end;
        self.take(&block);
        self.said_the_end = said_the_end;
        Some(block)
    }

    pub(in crate::watch) fn is_open(&self) -> bool {
        self.families.iter().any(|family| family.is_open())
    }

    pub(in crate::watch) fn position(&self) -> Option<Position> {
        self.position
    }

    pub(in crate::watch) fn is_finished(&self) -> bool {
        self.said_the_end || self.position.is_some_and(|position| position.is_last)
    }

    pub(in crate::watch) fn owner(&self) -> Option<FamilyName> {
        match (self.owned, self.families.first()) {
            (true, Some(family)) => Some(family.name()),
            (true, None) => Some(FamilyName::Skrl),
            (false, _) => None,
        }
    }

    fn take(&mut self, block: &Block) {
        self.move_to(Position {
            iteration: block.iteration,
            total: block.total_iterations,
            is_last: block.is_last,
            elapsed: block.elapsed,
            eta: block.eta,
        });
    }

    fn move_to(&mut self, position: Position) {
        // A run that was started again in the same log is not at its end any more.
        if self.position.is_some_and(|before| position.iteration < before.iteration) {
            self.said_the_end = false;
        }
        self.position = Some(position);
    }
}
