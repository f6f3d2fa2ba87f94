//! Runs a model through the checker and says what was explored.

use stateright::{Checker, Expectation, Model};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What was explored.
pub struct Explored {
    pub states: usize,
    pub unique: usize,
    pub depth: usize,
    pub took: Duration,
    /// Every property with its kind, and the path that speaks about it: against an `always` or
    /// `eventually`, for a `sometimes`.
    pub properties: BTreeMap<&'static str, (Expectation, Option<Vec<String>>)>,
}

impl Explored {
    /// The properties that do not hold, with the path that shows it.
    pub fn broken(&self) -> Vec<(&'static str, Vec<String>)> {
        let broken = |(name, (kind, path)): (
            &&'static str,
            &(Expectation, Option<Vec<String>>),
        )| match (kind, path) {
            (Expectation::Sometimes, None) => Some((*name, vec!["no such path".to_owned()])),
            (Expectation::Sometimes, Some(_)) | (_, None) => None,
            (_, Some(path)) => Some((*name, path.clone())),
        };
        self.properties.iter().filter_map(broken).collect()
    }

    /// Whether a path was found against the model for this: a property, or what was noted at its end.
    pub fn is_against(&self, what: &str) -> bool {
        self.properties.iter().any(|(name, (kind, path))| {
            let noted = |path: &Vec<String>| path.last().is_some_and(|end| end.contains(what));
            *kind != Expectation::Sometimes
                && path.as_ref().is_some_and(|path| name.starts_with(what) || noted(path))
        })
    }
}

/// Explores all of it: no bound on the depth, no time limit.
pub fn explore<M>(model: M) -> Explored
where
    M: Model + Send + Sync + 'static,
    M::State: std::hash::Hash + Send + Sync + Clone + PartialEq + std::fmt::Debug + 'static,
    M::Action: Send + Sync + Clone + PartialEq + std::fmt::Debug,
{
    let began = Instant::now();
    let checker = model.checker().threads(2).spawn_bfs().join();
    let took = began.elapsed();
    let discoveries = checker.discoveries();
    let tell = |name: &str| {
        let path = discoveries.get(name)?.clone();
        let last = format!("{:?}", path.last_state());
        let mut steps: Vec<String> =
            path.into_actions().iter().map(|action| format!("{action:?}")).collect();
        steps.push(format!("which ends in {last}"));
        Some(steps)
    };
    let properties = checker.model().properties();
    let properties =
        properties.iter().map(|of| (of.name, (of.expectation.clone(), tell(of.name)))).collect();
    Explored {
        states: checker.state_count(),
        unique: checker.unique_state_count(),
        depth: checker.max_depth(),
        took,
        properties,
    }
}
