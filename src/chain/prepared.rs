//! The links with their jobs, checked before anything is asked of the provider, and what each of them
//! comes to: equal hashes are the same work.

use crate::digest::sha256_hex;
use crate::domain::{Campaign, ExpectedReward, Link, PinnedFile, RewardLines, Vehicle, Work};
use crate::error::{Failure, FailureKind};
use crate::ops::Tether;
use crate::ops::campaign::LinkJob;
use serde_json::json;
use std::collections::BTreeMap;

/// A link that can be run.
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    pub link: Link,
    /// Its job; `None` for a link that is none.
    pub job: Option<LinkJob>,
    /// SHA-256 over what it is. Not part of it: its name, envelope and ceiling alone, and what comes
    /// after it.
    pub inputs_sha256: String,
}

/// Every link of the campaign.
///
/// # Errors
/// Everything that will not do, by line: a level, a seed, a placeholder, a file that cannot be read.
pub(super) fn prepare(
    tether: &Tether,
    campaign: &Campaign,
    vehicle: &Vehicle,
) -> Result<Vec<Prepared>, Failure> {
    let mut prepared: Vec<Prepared> = Vec::new();
    let mut hashes: BTreeMap<String, String> = BTreeMap::new();
    let mut wrong: Vec<(FailureKind, String)> = Vec::new();
    for link in &campaign.links {
        let place = format!("{}:{}: link {}", campaign.path.display(), link.line, link.name);
        let one = one(tether, vehicle, link, &hashes);
        match one {
            Ok(one) => {
                hashes.insert(link.name.clone(), one.inputs_sha256.clone());
                prepared.push(one);
            }
            Err(failure) => wrong.push((failure.kind, format!("{place}: {}", failure.message))),
        }
    }
    let Some((kind, _)) = wrong.first() else { return Ok(prepared) };
    let told: Vec<&str> = wrong.iter().map(|(_, told)| told.as_str()).collect();
    Err(Failure::new(*kind, told.join("\n"), "mend the campaign's file; nothing was changed"))
}

fn one(
    tether: &Tether,
    vehicle: &Vehicle,
    link: &Link,
    hashes: &BTreeMap<String, String>,
) -> Result<Prepared, Failure> {
    let job = tether.link_job(vehicle, link)?;
    let work = match (&job, &link.work) {
        (Some(job), _) => job.essence.clone(),
        (None, Work::Patches) => tether.patches_essence()?,
        (None, work) => work.told(),
    };
    let pins: Vec<_> = link
        .pins
        .iter()
        .map(|pin| match &pin.file {
            PinnedFile::Here(path) => json!(["here", path, pin.sha256]),
            PinnedFile::OnPod(path) => json!(["pod", path, pin.sha256]),
        })
        .collect();
    let gates = |markers: &[crate::domain::Marker]| -> Vec<_> {
        markers.iter().map(|one| json!([one.path, one.must_exist])).collect()
    };
    let lines = link.expect.reward_lines.map(|lines| match lines {
        RewardLines::Iterations => "iterations".to_owned(),
        RewardLines::Count(count) => count.to_string(),
    });
    let reward = link.expect.reward.as_ref().map(|reward| match reward {
        ExpectedReward::OfRecipe => json!("recipe"),
        ExpectedReward::Between(low, high) => json!([low, high]),
    });
    let needs: Vec<_> = link.needs.iter().map(|name| hashes.get(name)).collect();
    let inputs = json!({
        "vehicle": vehicle.name.0, "work": work, "pull": link.pull, "pins": pins,
        "before": gates(&link.before), "after": gates(&link.after),
        "artifacts": link.expect.artifacts, "reward_lines": lines, "reward": reward,
        "needs": needs,
    });
    let inputs_sha256 = sha256_hex(inputs.to_string().as_bytes());
    Ok(Prepared { link: link.clone(), job, inputs_sha256 })
}
