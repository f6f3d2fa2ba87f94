//! What a training's recipe demands, as it was found: gates on the pod, files to edit, values that other
//! files on this machine hold too. Everything that does not hold is told at once.

use super::Tether;
use super::probe::LONG;
use super::wanted::Prepared;
use crate::config::cross_check;
use crate::domain::{Pod, SourceEdit, Vehicle};
use crate::plan::{Gate, Gates, Replacement};
use crate::pod::{Ask, Told};
use crate::training::edit::{self, LineChange};

/// A file that gets a level, with the lines that change.
#[derive(Clone, Debug)]
pub(crate) struct FileEdit {
    pub(crate) replacement: Replacement,
    pub(crate) changes: Vec<LineChange>,
    /// The level that was found in it.
    pub(crate) found: String,
}

/// What was found.
#[derive(Clone, Debug)]
pub(crate) struct RecipeFacts {
    pub(crate) gates: Gates,
    pub(crate) edits: Vec<FileEdit>,
    /// Whether the code respects its seed; `None` when the recipe names no marker, or nobody looked.
    pub(crate) seed_respected: Option<bool>,
    /// Folders of runs before this one: how many, and the last name.
    pub(crate) runs: Option<(u64, Option<String>)>,
}

impl RecipeFacts {
    fn unknown(why: String) -> Self {
        let (gates, edits) = (Gates::Unknown(why), Vec::new());
        Self { gates, edits, seed_respected: None, runs: None }
    }
}

impl Tether {
    /// Looks at all that the recipe of a training is about.
    pub(super) async fn recipe_facts(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        prepared: &Prepared,
    ) -> RecipeFacts {
        let mut asked = Asked::of(vehicle, prepared);
        match self.ask_recipe(vehicle, pod, &asked.asks).await {
            Ok(told) => asked.told = told.into_iter(),
            Err(why) => return RecipeFacts::unknown(why),
        }
        asked.facts(vehicle, prepared, |marker| self.maker_of(vehicle, marker))
    }

    /// What leaves this marker on the vehicle's volume, in words.
    fn maker_of(&self, vehicle: &Vehicle, marker: &str) -> &'static str {
        let workload = self.config.workloads.get(&vehicle.name);
        let patches = workload.and_then(|workload| workload.patches.as_ref());
        let sweep = workload.and_then(|workload| workload.sweep.as_ref());
        if patches.is_some_and(|patches| patches.marker == marker) {
            "apply_bluerov_patches makes it"
        } else if sweep.is_some_and(|sweep| sweep.marker == marker) {
            "axis_sanity_sweep makes it when it passes"
        } else {
            "do first what makes it"
        }
    }

    /// Asks the pod about files.
    ///
    /// # Errors
    /// Why nothing is known, in words.
    pub(super) async fn ask_recipe(
        &self,
        vehicle: &Vehicle,
        pod: &Pod,
        asks: &[Ask],
    ) -> Result<Vec<Told>, String> {
        let told = self.look_at_files(vehicle, pod, LONG, asks).await;
        told.map_err(|failure| failure.message)
    }
}

/// The questions, and their answers as they are read, in the same order.
struct Asked {
    asks: Vec<Ask>,
    told: std::vec::IntoIter<Told>,
}

impl Asked {
    fn of(vehicle: &Vehicle, prepared: &Prepared) -> Self {
        let recipe = &prepared.recipe;
        let at = |path: &String| vehicle.on_volume(path);
        let mut asks: Vec<Ask> = vec![Ask::Marker(at(&recipe.workdir))];
        asks.extend(recipe.gates.iter().map(|marker| Ask::Marker(at(&marker.path))));
        for edit in &recipe.edits {
            let file = at(&edit.file);
            asks.push(Ask::File(file.clone()));
            asks.extend(edit.same_as.iter().map(|other| Ask::Same(file.clone(), at(other))));
        }
        asks.extend(recipe.seed_marker.iter().map(|marker| Ask::Marker(at(marker))));
        asks.extend(recipe.logs.root.iter().map(|root| Ask::Runs(at(root))));
        Self { asks, told: Vec::new().into_iter() }
    }

    fn marker(&mut self) -> Option<bool> {
        match self.told.next() {
            Some(Told::Marker(is_there)) => Some(is_there),
            _ => None,
        }
    }

    fn facts(
        mut self,
        vehicle: &Vehicle,
        prepared: &Prepared,
        maker_of: impl Fn(&str) -> &'static str,
    ) -> RecipeFacts {
        let recipe = &prepared.recipe;
        let mut gates = Vec::new();
        let mut edits = Vec::new();
        let workdir = vehicle.on_volume(&recipe.workdir);
        let fault = (self.marker() != Some(true))
            .then(|| format!("there is no {workdir} on the pod; run_pod_setup makes it"));
        gates.push(Gate { what: format!("{workdir} is there"), fault });
        for marker in &recipe.gates {
            let path = vehicle.on_volume(&marker.path);
            let fault = match (self.marker(), marker.must_exist) {
                (Some(true), true) | (Some(false), false) => None,
                (_, true) => Some(format!(
                    "{path} is missing, and training {} requires it: {}",
                    recipe.name,
                    maker_of(&marker.path)
                )),
                (_, false) => Some(format!(
                    "{path} is there, and training {} must not run where it is: this pod is prepared for another training",
                    recipe.name
                )),
            };
            let word = if marker.must_exist { "is there" } else { "is not there" };
            gates.push(Gate { what: format!("{path} {word}"), fault });
        }
        for source in &recipe.edits {
            let path = vehicle.on_volume(&source.file);
            let (fault, edit) = match self.told.next() {
                Some(Told::File(Ok(bytes))) => {
                    match file_edit(&bytes, path.clone(), source, prepared) {
                        Ok(edit) => (None, edit),
                        Err(fault) => (Some(fault), None),
                    }
                }
                Some(Told::File(Err(why))) => (Some(format!("{path} {why}")), None),
                _ => (Some(format!("nothing was told of {path}")), None),
            };
            gates.push(Gate { what: format!("{path} holds a known level"), fault });
            edits.extend(edit);
            for other in &source.same_as {
                let other = vehicle.on_volume(other);
                let fault = match self.told.next() {
                    Some(Told::Same(Some(true))) => None,
                    Some(Told::Same(Some(false))) => Some(format!(
                        "{path} and {other} are two files, so there are two checkouts: the one would be edited and the other run; make the second a link to the first"
                    )),
                    _ => Some(format!(
                        "{other} or {path} is not there, so it is not known which file is run"
                    )),
                };
                gates.push(Gate { what: format!("{other} is the same file"), fault });
            }
        }
        let seed_respected = recipe.seed_marker.as_ref().and_then(|_| self.marker());
        let runs = recipe.logs.root.as_ref().and_then(|_| match self.told.next() {
            Some(Told::Runs(count, last)) => Some((count, last)),
            _ => None,
        });
        gates.extend(checks(prepared));
        RecipeFacts { gates: Gates::Seen(gates), edits, seed_respected, runs }
    }
}

fn file_edit(
    bytes: &[u8],
    path: String,
    source: &SourceEdit,
    prepared: &Prepared,
) -> Result<Option<FileEdit>, String> {
    // A recipe with edits has levels, or there would be no fields.
    let Some(level) = &prepared.level else { return Ok(None) };
    let edited =
        edit::edited(bytes, &prepared.recipe, source, level).map_err(|error| error.to_string())?;
    let replacement = Replacement {
        path,
        sha256_before: edited.sha256_before,
        sha256_after: edited.sha256_after,
        text: edited.text,
    };
    Ok(Some(FileEdit { replacement, changes: edited.changes, found: edited.found }))
}

/// The values that files on this machine hold too: of every level, since one that differs says that
/// recipe and file are of two minds about the vehicle.
pub(super) fn checks(prepared: &Prepared) -> Vec<Gate> {
    let recipe = &prepared.recipe;
    let one = |check: &crate::domain::CrossCheck| {
        let name = check.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let value = recipe
            .levels
            .iter()
            .find(|level| level.name == check.level)
            .and_then(|level| level.values.get(&check.field));
        let fault = match value {
            Some(value) => {
                let checked = cross_check(&check.file, &check.key, value);
                checked.err().map(|error| format!("{}.{}: {error}", check.level, check.field))
            }
            None => Some(format!("level {} has no {}", check.level, check.field)),
        };
        Gate { what: format!("{name} {} = {}.{}", check.key, check.level, check.field), fault }
    };
    recipe.checks.iter().map(one).collect()
}
