//! What a training is expected to take: by its own earlier runs where there are any, else by its recipe.
//! Nothing is refused by it, and no worst case depends on it.

use super::Tether;
use super::run_job::PlannedJob;
use super::runs::known_of;
use super::wanted::Prepared;
use crate::domain::{Pod, Usd, UsdPerHour, Vehicle};
use crate::plan::Facts;
use crate::runs::{Past, past};
use crate::training;
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// What a run is expected to take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Estimate {
    /// Iterations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u32>,
    /// How long, in seconds.
    pub sec: u64,
    /// What that costs at the pod's price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<Usd>,
    /// From how many earlier runs; 0 when from the recipe.
    pub runs: usize,
    /// The shortest of them, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shortest_sec: Option<u64>,
    /// The longest of them, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_sec: Option<u64>,
    /// What the longest costs at the pod's price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_usd: Option<Usd>,
    /// What it is taken from, in words.
    pub from: String,
}

impl Tether {
    /// What a training is expected to take on this pod; `None` when neither history nor recipe says.
    pub(super) fn estimate(&self, prepared: &Prepared, pod: &Pod) -> Option<Estimate> {
        let gpu = pod.gpu.as_ref().map(|(gpu, count)| format!("{count} x {gpu}"));
        self.estimate_on(prepared, gpu.as_deref(), pod.price.known())
    }

    /// The same of a job that is planned; `None` when it is no training.
    pub(crate) fn estimate_of(&self, job: &PlannedJob) -> Option<Estimate> {
        let (prepared, _) = job.training.as_ref()?;
        self.estimate(prepared, &job.pod)
    }

    /// The same for the first GPU type that the vehicle allows, at its price in the catalog.
    pub(super) fn estimate_without_pod(
        &self,
        prepared: &Prepared,
        vehicle: &Vehicle,
        facts: &Facts,
    ) -> Option<Estimate> {
        let count = vehicle.gpu_count;
        let first = vehicle.gpu_type_ids.first();
        let price = first.and_then(|gpu| facts.price_of(gpu, count).known());
        let gpu = first.map(|gpu| format!("{count} x {gpu}"));
        self.estimate_on(prepared, gpu.as_deref(), price)
    }

    /// The same on GPUs as the record of a run names them, at this price.
    fn estimate_on(
        &self,
        prepared: &Prepared,
        gpu: Option<&str>,
        rate: Option<UsdPerHour>,
    ) -> Option<Estimate> {
        let known = known_of(&self.config, self.ledger.as_ref(), self.cloud_name());
        let (recipe, iterations) = (&prepared.recipe, prepared.run.iterations);
        let history = gpu.and_then(|gpu| past(known.runs.iter(), &recipe.name, gpu, iterations));
        let usd = |time: Duration| rate.map(|rate| rate.cost_of(time));
        if let Some(Past { runs, median, shortest, longest }) = history {
            let of = match runs {
                1 => "one earlier run".to_owned(),
                runs => format!("the median of {runs} earlier runs"),
            };
            return Some(Estimate {
                iterations,
                sec: rounded(median),
                usd: usd(median),
                runs,
                shortest_sec: Some(rounded(shortest)),
                longest_sec: Some(rounded(longest)),
                longest_usd: usd(longest),
                from: format!(
                    "{of} of {} that succeeded on {} with as many iterations, whatever their level and seed",
                    recipe.name,
                    gpu.unwrap_or("the same GPU")
                ),
            });
        }
        let time = training::expected_time(recipe, iterations)?;
        Some(Estimate {
            iterations,
            sec: rounded(time),
            usd: usd(time),
            runs: 0,
            shortest_sec: None,
            longest_sec: None,
            longest_usd: None,
            from: "the recipe's expect; no run of it on this GPU is known yet".to_owned(),
        })
    }
}

fn rounded(time: Duration) -> u64 {
    time.saturating_add(Duration::from_millis(500)).as_secs()
}

impl Estimate {
    /// In words, such as `7 min, $0.08 (5 to 9 min); from …`.
    #[must_use]
    pub fn told(&self) -> String {
        let usd = self.usd.map_or_else(String::new, |usd| format!(", {usd}"));
        let range = self.shortest_sec.zip(self.longest_sec).filter(|_| self.runs > 1);
        let range = range.map_or_else(String::new, |(shortest, longest)| {
            let most = self.longest_usd.map_or_else(String::new, |usd| format!(", {usd}"));
            format!(" (from {} to {}{most})", span(shortest), span(longest))
        });
        format!("{}{usd}{range}; by {}", span(self.sec), self.from)
    }

    /// What is to be said of it beside a ceiling; nothing when all is well.
    pub(super) fn beside(&self, ceiling_sec: u64) -> String {
        let word = match () {
            () if self.sec > ceiling_sec => "It is expected",
            () if self.longest_sec.is_some_and(|longest| longest > ceiling_sec) => {
                "The longest of its earlier runs took"
            }
            () => return String::new(),
        };
        let took = if word.starts_with("It") { " to take longer" } else { " longer" };
        format!(" {word}{took} than its ceiling: raise timeouts.training_sec.")
    }
}

/// Seconds for people.
fn span(sec: u64) -> String {
    match sec {
        0..120 => format!("{sec} s"),
        120..7_200 => format!("{} min", (sec + 30) / 60),
        _ => format!("{}.{} h", sec / 3_600, sec % 3_600 / 360),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_says_what_it_is_taken_from_and_warns_of_the_ceiling() {
        let of_recipe = Estimate {
            iterations: Some(400),
            sec: 128,
            usd: Some(Usd::from_micros(24_534)),
            runs: 0,
            shortest_sec: None,
            longest_sec: None,
            longest_usd: None,
            from: "the recipe's expect".to_owned(),
        };
        assert_eq!(of_recipe.told(), "2 min, $0.02; by the recipe's expect");
        assert_eq!(of_recipe.beside(3_600), "");
        assert!(of_recipe.beside(100).contains("expected to take longer than its ceiling"));
        let of_runs = Estimate {
            runs: 3,
            shortest_sec: Some(100),
            longest_sec: Some(9_000),
            longest_usd: Some(Usd::from_micros(1_725_000)),
            from: "the median of 3 earlier runs".to_owned(),
            ..of_recipe
        };
        let told = "2 min, $0.02 (from 100 s to 2.5 h, $1.73); by the median of 3 earlier runs";
        assert_eq!(of_runs.told(), told);
        assert!(of_runs.beside(3_600).contains("longest of its earlier runs took longer"));
    }
}
