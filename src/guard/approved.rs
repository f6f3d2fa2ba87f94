//! Plans that every rule has let through.

use super::WorstCase;
use crate::plan::{Change, PodStep, Step};

/// A plan that every rule has let through. There is no way to make one but [`super::review`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approved {
    steps: Vec<Step>,
    worst_case: WorstCase,
}

impl Approved {
    pub(super) const fn new(steps: Vec<Step>, worst_case: WorstCase) -> Self {
        Self { steps, worst_case }
    }

    /// What the plan costs at most, as the rules counted it; no lines when it spends nothing.
    #[must_use]
    pub const fn worst_case(&self) -> &WorstCase {
        &self.worst_case
    }

    /// The steps, as a dry run prints them.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The steps, as apply executes them: the same objects, with leave to do so.
    pub fn approved_steps(&self) -> impl Iterator<Item = ApprovedStep<'_>> {
        self.steps.iter().map(|step| match step {
            Step::Cloud(change) => ApprovedStep::Cloud(ApprovedChange { change }),
            Step::Pod(step) => ApprovedStep::Pod(step),
        })
    }
}

/// One step with leave to execute it.
#[derive(Clone, Copy, Debug)]
pub enum ApprovedStep<'a> {
    /// A change at the provider.
    Cloud(ApprovedChange<'a>),
    /// A command on a pod.
    Pod(&'a PodStep),
}

/// A change at the provider with leave to make it. Only an [`Approved`] plan hands these out.
#[derive(Clone, Copy, Debug)]
pub struct ApprovedChange<'a> {
    change: &'a Change,
}

impl<'a> ApprovedChange<'a> {
    /// The change.
    #[must_use]
    pub const fn get(self) -> &'a Change {
        self.change
    }
}
