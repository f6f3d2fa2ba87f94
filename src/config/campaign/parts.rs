//! What a link is held to: the links it needs, pinned files, gates, and what it must leave.

use super::{At, Reader};
use crate::config::error::nearest;
use crate::config::keys::{Key, PIN};
use crate::config::paths;
use crate::config::read::{self, Value};
use crate::domain::{
    ExpectedReward, Link, LinkExpected, Marker, Pin, PinnedFile, RewardLines, Vehicle, Work,
};
use std::path::Path;

impl Reader<'_> {
    pub(super) fn needs(&mut self, at: &At, before: &[Link]) -> Vec<String> {
        let needs = at.texts("needs");
        for need in &needs {
            if !before.iter().any(|link| link.name == *need) {
                let (line, path) = at.line_of("needs");
                let fix = nearest(need, before.iter().map(|link| link.name.as_str()));
                let what = format!("{need} is not the name of a link before it");
                self.problems.add(line, path, what, fix);
            }
        }
        needs
    }

    pub(super) fn pins(&mut self, at: &At, vehicle: &Vehicle) -> Vec<Pin> {
        let Some(entry) = at.section.get("pins") else { return Vec::new() };
        let Value::Items(nodes) = &entry.value else { return Vec::new() };
        let known: Vec<&'static Key> = PIN.iter().collect();
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let mut pins = Vec::new();
        for (i, node) in nodes.iter().enumerate() {
            let path = format!("{}[{i}]", entry.path);
            let section = read::section(node, &path, &known, &mut self.problems);
            let text = |key: &str| match section.get(key).map(|entry| &entry.value) {
                Some(Value::Text(text) | Value::Path(text)) => Some(text.clone()),
                _ => None,
            };
            if !section.was_given("sha256") {
                let fix = "write what sha256sum or shasum -a 256 prints for it";
                self.problems.add(section.line, read::join(&path, "sha256"), "is missing", fix);
            }
            let file = match (text("here"), text("pod")) {
                (Some(here), None) => {
                    paths::expand(&here, folder, self.env.home()).map(PinnedFile::Here)
                }
                (None, Some(pod)) => self.on_volume(&pod, vehicle).map(PinnedFile::OnPod),
                _ if section.was_given("here") != section.was_given("pod") => continue,
                _ => Err((
                    "names no file, or two".to_owned(),
                    "give it here (a file on this computer) or pod (one on the volume)".to_owned(),
                )),
            };
            match (file, text("sha256")) {
                (Err((what, fix)), _) => self.problems.add(section.line, &path, what, fix),
                (Ok(file), Some(sha256)) => pins.push(Pin { file, sha256 }),
                (Ok(_), None) => {}
            }
        }
        pins
    }

    pub(super) fn markers(&mut self, at: &At, vehicle: &Vehicle, group: &str) -> Vec<Marker> {
        let mut markers: Vec<Marker> = Vec::new();
        for (word, must_exist) in [("require", true), ("forbid", false)] {
            let key = format!("{group}.{word}");
            for written in at.texts(&key) {
                let (line, path) = at.line_of(&key);
                match self.on_volume(&written, vehicle) {
                    Ok(path_on_pod) if markers.iter().any(|one| one.path == path_on_pod) => {
                        let what = format!("{written} must be there and must not");
                        self.problems.add(line, path, what, "keep one of them");
                    }
                    Ok(path) => markers.push(Marker { path, must_exist }),
                    Err((what, fix)) => self.problems.add(line, path, what, fix),
                }
            }
        }
        markers
    }

    pub(super) fn expect(&mut self, at: &At, work: &Work) -> LinkExpected {
        let artifacts = at.texts("expect.artifacts");
        for pattern in &artifacts {
            if let Err(error) = glob::Pattern::new(pattern) {
                let (line, path) = at.line_of("expect.artifacts");
                let what = format!("{pattern} is no pattern: {}", error.msg);
                self.problems.add(line, path, what, "write for example model_*.pt");
            }
        }
        let reward_lines = at
            .text("expect.reward_lines")
            .map(|text| text.parse().map_or(RewardLines::Iterations, RewardLines::Count));
        let reward = match at.section.get("expect.reward").map(|entry| &entry.value) {
            Some(Value::Range(low, high)) => {
                Some(ExpectedReward::Between(low.clone(), high.clone()))
            }
            Some(_) => Some(ExpectedReward::OfRecipe),
            None => None,
        };
        let recipe = match work {
            Work::Training { training, .. } => {
                self.config.trainings.iter().find(|one| one.name == *training)
            }
            _ => None,
        };
        let mut of_recipe = |is_asked: bool, has: bool, key: &str, what: &str| {
            if is_asked && !has {
                let (line, path) = at.line_of(key);
                let fix = "write the numbers here, or into the recipe's expect";
                self.problems.add(line, path, what, fix);
            }
        };
        let iterates = reward_lines == Some(RewardLines::Iterations);
        let knows_iterations = recipe.is_some_and(|one| one.expect.iterations.is_some());
        of_recipe(
            iterates,
            knows_iterations,
            "expect.reward_lines",
            "iterations of this link are not known",
        );
        let knows_reward = recipe.is_some_and(|one| one.expect.reward.is_some());
        of_recipe(
            reward == Some(ExpectedReward::OfRecipe),
            knows_reward,
            "expect.reward",
            "the recipe of this link expects no reward",
        );
        if matches!(work, Work::Patches | Work::Nothing) && !artifacts.is_empty() {
            let (line, path) = at.line_of("expect.artifacts");
            let fix = "name what it leaves on the pod under gates.after.require";
            self.problems.add(line, path, "of a link that brings nothing home", fix);
        }
        if !work.is_job() && (reward.is_some() || reward_lines.is_some()) {
            let (line, path) = at.line_of("expect");
            let what = "belongs to a link that runs a job";
            self.problems.add(line, path, what, "leave the rewards out");
        }
        LinkExpected { artifacts, reward_lines, reward }
    }
}
