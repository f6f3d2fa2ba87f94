//! What is noted of the training that a job is: recipe, level to the letter, seed, edits.

use super::recipe_facts::RecipeFacts;
use super::wanted::Prepared;
use crate::training;
use serde_json::{Value, json};

/// What the record of a training's job says beside that of any job.
pub(super) fn recorded(prepared: &Prepared, facts: &RecipeFacts) -> Value {
    let recipe = &prepared.recipe;
    let files: Vec<Value> = facts
        .edits
        .iter()
        .map(|edit| {
            let file = &edit.replacement;
            json!({"file": file.path, "from_level": edit.found, "sha256": file.sha256_after})
        })
        .collect();
    json!({
        "name": recipe.name,
        "recipe_sha256": recipe.sha256,
        "level": prepared.level.as_ref().map(|level| &level.name),
        "values": prepared.level.as_ref().map(|level| &level.values),
        "seed": prepared.seed,
        "seed_respected": facts.seed_respected,
        "edits": files,
        "iterations": prepared.run.iterations,
        "artifacts": training::artifacts(recipe, prepared.seed, prepared.run.iterations),
        "expect_reward": recipe.expect.reward.as_ref().map(|reward| json!({"low": reward.low, "high": reward.high})),
        "log_root": recipe.logs.root,
        "run_line": recipe.logs.run_line,
        "runs_before": facts.runs.as_ref().map(|(count, last)| json!({"count": count, "last": last})),
    })
}
