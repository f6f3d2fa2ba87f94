//! What `why` adds to the account of a training: its level, files and gates as far as they are known, and
//! in words what is not.

use super::estimate::Estimate;
use super::launch_training::EditView;
use super::recipe_facts::{RecipeFacts, checks};
use super::wanted::Prepared;
use crate::domain::Vehicle;
use crate::plan::{Gate, Gates};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// One condition of a launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GateTold {
    /// What must hold.
    pub what: String,
    /// Whether it does; null when nobody could look.
    pub holds: Option<bool>,
    /// Why it does not, or why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A training in an account.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TrainingTold {
    /// Its name.
    pub training: String,
    /// The level's one name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// The level's values to the letter.
    pub values: BTreeMap<String, String>,
    /// Its seed.
    pub seed: u32,
    /// Its words, quoted.
    pub command: String,
    /// The folder it starts in.
    pub workdir: String,
    /// What the launch depends on.
    pub gates: Vec<GateTold>,
    /// Files with the level's values, as they would be edited; known only by a look at the pod.
    pub edits: Vec<EditView>,
    /// What it is expected to take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// What is not known, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_known: Option<String>,
}

/// The account of a training, with the pod's files or without.
pub(super) fn told(
    prepared: &Prepared,
    vehicle: &Vehicle,
    facts: Option<&RecipeFacts>,
    estimate: Option<Estimate>,
) -> TrainingTold {
    let (gates, edits, not_known) = match facts {
        Some(RecipeFacts { gates: Gates::Seen(gates), edits, .. }) => {
            let edits = edits.iter().map(EditView::from).collect();
            (gates.iter().map(gate_told).collect(), edits, None)
        }
        Some(RecipeFacts { gates: Gates::Unknown(why), .. }) => {
            let words = format!("the pod's files could not be looked at: {why}");
            (without_pod(prepared, vehicle, &words), Vec::new(), Some(words))
        }
        _ => {
            let words = "the vehicle has no running pod: markers, the level that stands in the code, and whether there are two checkouts are known only by a look at it".to_owned();
            let why = "not known without a running pod";
            (without_pod(prepared, vehicle, why), Vec::new(), Some(words))
        }
    };
    TrainingTold {
        training: prepared.recipe.name.clone(),
        level: prepared.level.as_ref().map(|level| level.name.clone()),
        values: prepared.level.as_ref().map(|level| level.values.clone()).unwrap_or_default(),
        seed: prepared.seed,
        command: prepared.run.command(),
        workdir: vehicle.on_volume(&prepared.recipe.workdir),
        gates,
        edits,
        estimate,
        not_known,
    }
}

fn gate_told(gate: &Gate) -> GateTold {
    let holds = Some(gate.fault.is_none());
    GateTold { what: gate.what.clone(), holds, why: gate.fault.clone() }
}

/// The gates on the pod, of which nothing is known, and the values that files here hold too.
fn without_pod(prepared: &Prepared, vehicle: &Vehicle, why: &str) -> Vec<GateTold> {
    let recipe = &prepared.recipe;
    let unknown = |what: String| GateTold { what, holds: None, why: Some(why.to_owned()) };
    let mut gates = vec![unknown(format!("{} is there", vehicle.on_volume(&recipe.workdir)))];
    gates.extend(recipe.gates.iter().map(|marker| {
        let word = if marker.must_exist { "is there" } else { "is not there" };
        unknown(format!("{} {word}", vehicle.on_volume(&marker.path)))
    }));
    for edit in &recipe.edits {
        gates.push(unknown(format!("{} holds a known level", vehicle.on_volume(&edit.file))));
        let same = edit.same_as.iter().map(|other| vehicle.on_volume(other));
        gates.extend(same.map(|other| unknown(format!("{other} is the same file"))));
    }
    gates.extend(checks(prepared).iter().map(gate_told));
    gates
}
