//! What comes after a job, which is part of what it costs at most.

use std::time::Duration;

/// What comes after a job, however it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobEnd {
    /// Nothing: the pod goes on.
    Left,
    /// The pod stops itself.
    AutoStop,
    /// supervise looks on, captures and stops.
    Supervised {
        /// How long it follows the job in all; `None` is the ceiling, the kill grace and `backstop`.
        max_wait: Option<Duration>,
        /// How long it looks on beyond the ceiling and the kill grace.
        backstop: Duration,
        /// How long capture may take.
        capture: Duration,
        /// How long the stop is asked for.
        stop: Duration,
    },
}

impl JobEnd {
    /// How long the pod asks for its own stop before it gives up: `remote/stop_pod.sh` has 28 tries in
    /// rounds of four ways. Its pauses are 5 s, doubled every round up to 600 s; a try takes up to
    /// 30 s (the API, twice) or 60 s (`runpodctl`, twice).
    pub const AUTO_STOP_MAX: Duration =
        Duration::from_secs(4 * (5 + 10 + 20 + 40 + 80 + 160 + 320) + 7 * (30 + 30 + 60 + 60));
}

#[cfg(test)]
mod tests {
    use crate::domain::scripts;

    /// What `AUTO_STOP_MAX` is made of.
    #[test]
    fn the_pods_own_stop_gives_up_when_the_worst_case_says() {
        let text = scripts::STOP_POD.text;
        for part in [
            "PODTETHER_STOP_TRIES:-28}",
            "PODTETHER_STOP_GAP_SEC:-5}",
            "way=$(((round - 1) % 4))",
            "gap=$((gap * 2 > 600 ? 600 : gap * 2))",
            "--max-time 30",
            "timeout 60",
        ] {
            assert!(text.contains(part), "{part}");
        }
        assert_eq!(super::JobEnd::AUTO_STOP_MAX.as_secs(), 3_800);
    }
}
