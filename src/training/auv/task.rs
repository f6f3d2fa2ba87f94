//! The task: from a random pose near the goal, get to the goal and hold it, upright and facing
//! ahead, for the length of an episode.

use super::dynamics::{State, step};
use super::geometry::{Quaternion, Vector, norm};
use super::policy::{ACTIONS, OBSERVATIONS, Policy};
use super::vehicle::Hull;
use rand::{Rng, RngExt as _};
use std::f64::consts::PI;

/// Physics steps per decision.
pub(super) const SUBSTEPS: usize = 6;
/// Length of a physics step, s. Physics at 120 Hz as in the research code; decisions at 20 Hz.
pub(super) const STEP_S: f64 = 1.0 / 120.0;
/// Starts lie within this distance of the goal, m.
pub(super) const START_RADIUS_M: f64 = 2.0;
/// An episode ends early farther away than this, m.
pub(super) const BOUNDARY_M: f64 = 7.0;

/// Reward per step at the goal, in its attitude; cost per fully driven propeller.
pub(super) const POSITION_REWARD: f64 = 0.6;
pub(super) const ATTITUDE_REWARD: f64 = 0.4;
pub(super) const EFFORT_COST: f64 = 0.01;

/// Where an episode begins: the goal is the origin, upright, facing x.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Start {
    /// m.
    pub position: Vector,
    /// Body to world.
    pub attitude: Quaternion,
}

impl Start {
    /// Anywhere around the goal, rolled and pitched by up to 30°, heading up to 90° off.
    pub fn sample(rng: &mut impl Rng) -> Self {
        let mut within = |limit: f64| rng.random_range(-limit..limit);
        let position = loop {
            let offset = [(); 3].map(|()| within(START_RADIUS_M));
            if norm(offset) <= START_RADIUS_M {
                break offset;
            }
        };
        let turn = [within(PI / 6.0), within(PI / 6.0), within(PI / 2.0)];
        Self { position, attitude: Quaternion::from_turn(turn) }
    }
}

/// What one episode came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Episode {
    /// Sum of the rewards; at most 1 per step.
    pub reward: f64,
    /// Steps until the end of the time or the boundary.
    pub length: u32,
    /// Distance from the goal at the end, m.
    pub position_error: f64,
    /// Angle from the goal's attitude at the end, rad.
    pub attitude_error: f64,
    /// The first commands given.
    pub first_action: [f64; ACTIONS],
}

/// The vehicle and the rules of an episode.
#[derive(Clone, Debug)]
pub struct Task {
    hull: Hull,
    /// Decisions per episode.
    pub steps: u32,
}

impl Task {
    /// A BlueROV2 Heavy and episodes of `steps` decisions at 20 Hz.
    #[must_use]
    pub fn new(steps: u32) -> Self {
        Self { hull: Hull::bluerov2_heavy(), steps }
    }

    /// Lets a controller swim one episode.
    #[must_use]
    pub fn swim(&self, policy: &Policy, start: &Start) -> Episode {
        let mut state = State::at_rest(start.position, start.attitude);
        let mut episode = Episode {
            reward: 0.0,
            length: 0,
            position_error: 0.0,
            attitude_error: 0.0,
            first_action: policy.act(&observe(&state)),
        };
        while episode.length < self.steps {
            let action = policy.act(&observe(&state));
            (0..SUBSTEPS).for_each(|_| step(&self.hull, &mut state, &action, STEP_S));
            episode.length += 1;
            episode.position_error = norm(state.position);
            episode.attitude_error = state.attitude.angle();
            episode.reward += reward(episode.position_error, episode.attitude_error, &action);
            if episode.position_error > BOUNDARY_M {
                break;
            }
        }
        episode
    }
}

/// What the vehicle senses, in its own axes.
fn observe(state: &State) -> [f64; OBSERVATIONS] {
    let to_body = state.attitude.inverse();
    let goal = to_body.rotate([-state.position[0], -state.position[1], -state.position[2]]);
    // The imaginary part of the shorter rotation back to the goal.
    let sign = if to_body.w < 0.0 { -2.0 } else { 2.0 };
    let turn = to_body.v;
    let v = state.velocity;
    [
        goal[0],
        goal[1],
        goal[2],
        sign * turn[0],
        sign * turn[1],
        sign * turn[2],
        v[0],
        v[1],
        v[2],
        v[3],
        v[4],
        v[5],
        1.0,
    ]
}

/// Up to 1: near the goal, in its attitude, with little effort.
fn reward(position_error: f64, attitude_error: f64, action: &[f64; ACTIONS]) -> f64 {
    let effort: f64 = action.iter().map(|command| command * command).sum();
    POSITION_REWARD * (-position_error).exp() + ATTITUDE_REWARD * (-attitude_error).exp()
        - EFFORT_COST * effort
}
