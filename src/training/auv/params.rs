//! What a run was made of, as YAML beside its results, where Isaac Lab puts it too.

use super::learner::Settings;
use super::task;
use super::vehicle::Hull;

/// `params/env.yaml`: the vehicle and the task.
#[must_use]
pub fn env(settings: &Settings) -> String {
    let hull = Hull::bluerov2_heavy();
    let decision_s = task::STEP_S * task::SUBSTEPS as f64;
    lines(&[
        ("num_envs", settings.envs.to_string()),
        ("seed", settings.seed.to_string()),
        ("sim_dt_s", number(task::STEP_S)),
        ("decimation", task::SUBSTEPS.to_string()),
        ("episode_length_s", number(f64::from(settings.episode_steps) * decision_s)),
        ("start_radius_m", number(task::START_RADIUS_M)),
        ("boundary_m", number(task::BOUNDARY_M)),
        ("rew_scale_pos", number(task::POSITION_REWARD)),
        ("rew_scale_ang", number(task::ATTITUDE_REWARD)),
        ("rew_scale_actions", number(-task::EFFORT_COST)),
        ("vehicle", "bluerov2_heavy".to_owned()),
        ("weight_n", number(hull.weight)),
        ("buoyancy_n", number(hull.buoyancy)),
        ("com_to_cob_offset_m", numbers(&hull.buoyancy_centre)),
        ("inertia_with_added_mass", numbers(&hull.inertia)),
        ("linear_drag", numbers(&hull.linear_drag)),
        ("quadratic_drag", numbers(&hull.quadratic_drag)),
    ])
}

/// `params/agent.yaml`: the learner.
#[must_use]
pub fn agent(settings: &Settings, iterations: u64, save_interval: u64) -> String {
    lines(&[
        ("algorithm", "augmented_random_search".to_owned()),
        ("policy", "linear_tanh".to_owned()),
        ("seed", settings.seed.to_string()),
        ("max_iterations", iterations.to_string()),
        ("save_interval", save_interval.to_string()),
        ("directions_per_iteration", (settings.envs / 2).to_string()),
        ("weight_noise_std", number(settings.noise)),
        ("step_size", number(settings.step_size)),
    ])
}

fn lines(rows: &[(&str, String)]) -> String {
    rows.iter().map(|(key, value)| format!("{key}: {value}\n")).collect()
}

/// As short as it can be read back without loss.
fn number(value: f64) -> String {
    format!("{value:?}")
}

fn numbers(values: &[f64]) -> String {
    format!("{values:?}")
}
