//! A campaign's file: from YAML to links whose names, order and ends make sense, and whose words the
//! config knows. Everything that is wrong is told at once, by line.

mod parts;

use super::error::{Problems, nearest};
use super::keys::{self, Key, LINK, WORK};
use super::read::{self, Section, Value};
use super::workload::on_volume;
use super::yaml::{self, Node};
use super::{CloudChoice, Config, ConfigError, Environment, resolve};
use crate::domain::{Campaign, Link, LinkEnd, Usd, Vehicle, Work};
use std::path::Path;

/// Reads and checks the campaign at `path` against the config. Nothing is looked up or changed; a
/// pinned file is not read.
///
/// # Errors
/// [`ConfigError`] with everything that is wrong in the file.
pub fn load(path: &Path, config: &Config, env: &Environment) -> Result<Campaign, ConfigError> {
    let of = ("the campaign's file", "--chain");
    let (text, path) = super::text_of_file(path, of, "name a campaign's file")?;
    let tree = resolve::parsed(&text, &path)?;
    let mut problems = Problems::default();
    let known: Vec<&'static Key> = keys::CAMPAIGN.iter().collect();
    let file = match tree.value {
        // An empty file is one without links, and told so.
        yaml::Value::Null => Section::default(),
        _ => read::section(&tree, "", &known, &mut problems),
    };
    let mut reader = Reader { config, env, path: &path, problems };
    let campaign = reader.campaign(&file);
    match campaign {
        Some(campaign) if reader.problems.is_empty() => Ok(campaign),
        _ => {
            if reader.problems.is_empty() {
                // A hole in the reader: a mistake of ours, but never an empty message.
                let fix = "this is a fault of podtether; please report it with the file";
                reader.problems.add(0, "the file", "could not be understood", fix);
            }
            Err(reader.problems.into_error(path.clone()))
        }
    }
}

struct Reader<'a> {
    config: &'a Config,
    env: &'a Environment,
    path: &'a Path,
    problems: Problems,
}

/// One link while it is read.
struct At {
    path: String,
    section: Section,
}

impl At {
    fn text(&self, key: &str) -> Option<String> {
        match &self.section.get(key)?.value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }

    fn texts(&self, key: &str) -> Vec<String> {
        match self.section.get(key).map(|entry| &entry.value) {
            Some(Value::Texts(list)) => list.clone(),
            _ => Vec::new(),
        }
    }

    fn line_of(&self, key: &str) -> (u64, String) {
        let entry = self.section.get(key);
        let line = entry.map_or(self.section.line, |entry| entry.line);
        (line, entry.map_or_else(|| read::join(&self.path, key), |entry| entry.path.clone()))
    }
}

impl Reader<'_> {
    fn campaign(&mut self, file: &Section) -> Option<Campaign> {
        let name = match file.get("campaign").map(|entry| &entry.value) {
            Some(Value::Text(name)) => Some(name.clone()),
            _ => {
                self.missing(file, "campaign", "give it a name, such as campaign: train-and-look");
                None
            }
        };
        let vehicle = match file.get("vehicle") {
            Some(read::Entry { line, path, value: Value::Text(given) }) => {
                let found = self.config.vehicles.iter().find(|one| one.name.0 == *given);
                if found.is_none() {
                    let known = self.config.vehicles.iter().map(|one| one.name.0.as_str());
                    let fix = nearest(given, known);
                    self.problems.add(*line, path, format!("{given} is not a vehicle"), fix);
                }
                found
            }
            _ => self.config.vehicle(None).ok().filter(|_| !file.was_given("vehicle")),
        };
        let links = match file.get("links").map(|entry| &entry.value) {
            Some(Value::Items(nodes)) => nodes.as_slice(),
            _ => {
                self.missing(file, "links", "write for example links: [{name: off, stop: true}]");
                return None;
            }
        };
        let known: Vec<&'static Key> = LINK.iter().collect();
        let mut read_links = Vec::new();
        for (i, node) in links.iter().enumerate() {
            let path = format!("links[{i}]");
            let section = read::section(node, &path, &known, &mut self.problems);
            if let Some(link) =
                vehicle.and_then(|vehicle| self.link(&At { path, section }, vehicle, &read_links))
            {
                read_links.push(link);
            }
        }
        let line = file.get("links").map_or(0, |entry| entry.line);
        self.check_ends(links, &read_links, line);
        let vehicle = vehicle?.name.clone();
        let path = self.path.to_owned();
        Some(Campaign { path, name: name?, vehicle, links: read_links })
    }

    fn missing(&mut self, section: &Section, key: &str, fix: &str) {
        if !section.was_given(key) {
            self.problems.add(section.line, key, "is missing", fix);
        }
    }

    /// Exactly one link owns the stop, and it is the last: a campaign that ends in any other way leaves
    /// a pod on the bill.
    fn check_ends(&mut self, nodes: &[Node], links: &[Link], line: u64) {
        let fix = "add a last link such as {name: off, stop: true}";
        match links.last() {
            _ if links.len() < nodes.len() => {}
            None => self.problems.add(line, "links", "has no link", fix),
            Some(last) if last.end != LinkEnd::Stop => {
                let what = "is the last link and does not stop the pod";
                self.problems.add(last.line, format!("links.{}", last.name), what, fix);
            }
            Some(_) => {}
        }
        let stops = |link: &&Link| link.end == LinkEnd::Stop;
        for link in links.iter().rev().skip(1).filter(stops) {
            let what = "stops the pod before the last link";
            let fix = "only the last link stops it; pause: stop makes a stop point";
            self.problems.add(link.line, format!("links.{}", link.name), what, fix);
        }
    }

    fn link(&mut self, at: &At, vehicle: &Vehicle, before: &[Link]) -> Option<Link> {
        let line = at.section.line;
        if !at.section.was_given("name") {
            let fix = "give each link a name of its own";
            self.problems.add(line, read::join(&at.path, "name"), "is missing", fix);
        }
        let name = at.text("name").unwrap_or_default();
        if let Some(twin) = before.iter().find(|link| link.name == name) {
            let (line, path) = at.line_of("name");
            let what = format!("{name} is the name of the link on line {} too", twin.line);
            self.problems.add(line, path, what, "give each link a name of its own");
        }
        let work = self.work(at, vehicle);
        let end = self.end(at);
        let max_usd = match at.section.get("max_usd").map(|entry| &entry.value) {
            Some(Value::Money(usd)) => *usd,
            _ => {
                let is_free = work == Some(Work::Nothing);
                if !at.section.was_given("max_usd") && !is_free {
                    let fix =
                        "write what it may cost at worst; --dry-run tells the least that passes";
                    self.problems.add(line, read::join(&at.path, "max_usd"), "is missing", fix);
                }
                Usd::ZERO
            }
        };
        let needs = self.needs(at, before);
        let pins = self.pins(at, vehicle);
        let before = self.markers(at, vehicle, "gates.before");
        let after = self.markers(at, vehicle, "gates.after");
        let expect = work.as_ref().map(|work| self.expect(at, work)).unwrap_or_default();
        let max_runtime_sec = match at.section.get("max_runtime_sec").map(|entry| &entry.value) {
            Some(Value::Whole(sec)) => Some(*sec),
            _ => None,
        };
        let pull = at.text("pull");
        Some(Link {
            name,
            line,
            work: work?,
            max_runtime_sec,
            pull,
            needs,
            pins,
            before,
            after,
            max_usd,
            expect,
            end,
        })
    }

    fn work(&mut self, at: &At, vehicle: &Vehicle) -> Option<Work> {
        let given: Vec<&str> = WORK.into_iter().filter(|key| at.section.was_given(key)).collect();
        let kind = match given[..] {
            [one] => one,
            [] if at.section.was_given("stop") => "",
            [] => {
                let fix = format!("give it one of: {}, or stop: true", WORK.join(", "));
                self.problems.add(at.section.line, &at.path, "does nothing", fix);
                return None;
            }
            _ => {
                let what = format!("does several things: {}", given.join(", "));
                self.problems.add(at.section.line, &at.path, what, "make a link of each");
                return None;
            }
        };
        let only_of = [("training", &["dr", "seed", "extra_args"][..]), ("command", &["workdir"])];
        for (owner, keys) in only_of.into_iter().filter(|(owner, _)| *owner != kind) {
            for key in keys.iter().filter(|key| at.section.was_given(key)) {
                let (line, path) = at.line_of(key);
                self.problems.add(line, path, format!("belongs to a {owner}"), "leave it out");
            }
        }
        let is_job = matches!(kind, "setup" | "training" | "sweep" | "command");
        for key in ["max_runtime_sec", "pull"].iter().filter(|key| at.section.was_given(key)) {
            if !is_job {
                let (line, path) = at.line_of(key);
                self.problems.add(line, path, "belongs to a link that runs a job", "leave it out");
            }
        }
        let workload = self.config.workloads.get(&vehicle.name);
        let mut declares = |has: bool, key: &str| {
            if !has {
                let (line, path) = at.line_of(key);
                let what = format!("vehicle {} declares no {key}", vehicle.name);
                self.problems.add(line, path, what, "declare it in podtether.yaml");
            }
        };
        match kind {
            "setup" => {
                declares(workload.is_some_and(|work| work.setup.is_some()), "setup");
                Some(Work::SetUp)
            }
            "patches" => {
                declares(workload.is_some_and(|work| work.patches.is_some()), "patches");
                Some(Work::Patches)
            }
            "sweep" => {
                declares(workload.is_some_and(|work| work.sweep.is_some()), "sweep");
                Some(Work::Sweep)
            }
            "training" => self.training(at, vehicle),
            "command" => {
                let workdir = at.text("workdir").map(|given| self.workdir(at, &given, vehicle));
                Some(Work::Command { command: at.text("command")?, workdir })
            }
            "sync" => Some(Work::Sync { folder: at.text("sync")? }),
            _ => Some(Work::Nothing),
        }
    }

    /// The folder that a command runs in: as everywhere relative to the mount path, or absolute; then it may
    /// lie elsewhere on the pod, too.
    fn workdir(&mut self, at: &At, given: &str, vehicle: &Vehicle) -> String {
        match self.on_volume(given, vehicle) {
            Ok(inside) => vehicle.on_volume(&inside),
            Err(_) if given.starts_with('/') => given.to_owned(),
            Err((what, fix)) => {
                let (line, path) = at.line_of("workdir");
                self.problems.add(line, path, what, fix);
                given.to_owned()
            }
        }
    }

    /// A path relative to the mount path. Written absolute it begins with the mount path as the config has
    /// it, also where a local pod has it elsewhere on this machine.
    fn on_volume(&self, written: &str, vehicle: &Vehicle) -> Result<String, (String, String)> {
        let here = &vehicle.volume_mount_path;
        let as_written = match &self.config.cloud {
            CloudChoice::Local { state_dir } => {
                let base = resolve::local_base(state_dir, &vehicle.name.0);
                here.strip_prefix(&*base.to_string_lossy()).unwrap_or(here)
            }
            CloudChoice::RunPod => here,
        };
        on_volume(written, here).or_else(|_| on_volume(written, as_written))
    }

    fn training(&mut self, at: &At, vehicle: &Vehicle) -> Option<Work> {
        let training = at.text("training")?;
        let (line, path) = at.line_of("training");
        let Some(recipe) = self.config.trainings.iter().find(|one| one.name == training) else {
            let known = self.config.trainings.iter().map(|one| one.name.as_str());
            let fix = nearest(&training, known);
            self.problems.add(line, path, format!("{training} is not a training"), fix);
            return None;
        };
        if recipe.vehicle != vehicle.name {
            let what = format!("{training} runs on vehicle {}", recipe.vehicle);
            let fix = format!("this campaign is of vehicle {}; make one for each", vehicle.name);
            self.problems.add(line, path, what, fix);
        }
        if let Some(level) = at.text("dr").filter(|_| !recipe.levels.is_empty())
            && !recipe.levels.iter().any(|one| one.is_called(&level))
        {
            let (line, path) = at.line_of("dr");
            let fix = nearest(&level, recipe.levels.iter().map(|one| one.name.as_str()));
            self.problems.add(line, path, format!("{level} is not a level of {training}"), fix);
        }
        Some(Work::Training {
            training,
            level: at.text("dr"),
            seed: at.text("seed"),
            extra_args: at.text("extra_args").unwrap_or_default(),
        })
    }

    fn end(&mut self, at: &At) -> LinkEnd {
        match (at.text("stop"), at.text("pause").as_deref()) {
            (Some(_), Some(_)) => {
                let (line, path) = at.line_of("pause");
                self.problems.add(line, path, "is at the end anyway", "leave it out");
                LinkEnd::Stop
            }
            (Some(_), None) => LinkEnd::Stop,
            (None, Some("leave")) => LinkEnd::Pause { stops: false },
            (None, Some(_)) => LinkEnd::Pause { stops: true },
            (None, None) => LinkEnd::Next,
        }
    }
}
