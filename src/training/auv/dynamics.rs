//! Rigid-body motion in water after Fossen: added mass, Coriolis terms of both masses, linear and
//! quadratic drag, weight and buoyancy, eight lagging propellers.

use super::geometry::{Quaternion, Vector, cross};
use super::vehicle::{Hull, Thruster};

/// Where the vehicle is and how it moves.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// Position in the world, m.
    pub position: Vector,
    /// Body to world.
    pub attitude: Quaternion,
    /// Velocity in body axes: m/s (x, y, z), rad/s (roll, pitch, yaw).
    pub velocity: [f64; 6],
    /// What each propeller pushes with right now, N.
    pub thrust: [f64; 8],
}

impl State {
    /// At rest, propellers still.
    #[must_use]
    pub fn at_rest(position: Vector, attitude: Quaternion) -> Self {
        Self { position, attitude, velocity: [0.0; 6], thrust: [0.0; 8] }
    }
}

/// Moves `state` by `dt` seconds under `command` (−1 to 1 per propeller). Drag is integrated
/// implicitly, so that no step length lets it turn the motion around.
pub fn step(hull: &Hull, state: &mut State, command: &[f64; 8], dt: f64) {
    let mut load = propulsion(hull, state, command, dt);
    let v = [state.velocity[0], state.velocity[1], state.velocity[2]];
    let w = [state.velocity[3], state.velocity[4], state.velocity[5]];
    let m = &hull.inertia;
    // Kirchhoff's equations: momentum is carried along by the turning body. The last term is the
    // Munk moment of the added mass; for equal masses it is zero.
    let linear = [m[0] * v[0], m[1] * v[1], m[2] * v[2]];
    let angular = [m[3] * w[0], m[4] * w[1], m[5] * w[2]];
    let (carried, turned, munk) = (cross(w, linear), cross(w, angular), cross(v, linear));

    let up = state.attitude.inverse().rotate([0.0, 0.0, 1.0]);
    let lift = hull.buoyancy - hull.weight;
    let righting = cross(hull.buoyancy_centre, up);
    for axis in 0..3 {
        load[axis] += lift * up[axis] - carried[axis];
        load[axis + 3] += hull.buoyancy * righting[axis] - turned[axis] - munk[axis];
    }
    for axis in 0..6 {
        let speed = state.velocity[axis];
        let drag = hull.linear_drag[axis] + hull.quadratic_drag[axis] * speed.abs();
        state.velocity[axis] = (speed + dt * load[axis] / m[axis]) / (1.0 + dt * drag / m[axis]);
    }

    let v = state.velocity;
    let moved = state.attitude.rotate([v[0] * dt, v[1] * dt, v[2] * dt]);
    for (position, moved) in state.position.iter_mut().zip(moved) {
        *position += moved;
    }
    let turn = Quaternion::from_turn([v[3] * dt, v[4] * dt, v[5] * dt]);
    state.attitude = state.attitude.after(turn);
}

/// Lets the propellers follow their commands; force and torque in body axes.
fn propulsion(hull: &Hull, state: &mut State, command: &[f64; 8], dt: f64) -> [f64; 6] {
    let approach = Thruster::approach(dt);
    let mut load = [0.0; 6];
    for ((thrust, command), thruster) in state.thrust.iter_mut().zip(command).zip(&hull.thrusters) {
        *thrust += approach * (Thruster::steady(*command) - *thrust);
        for axis in 0..3 {
            load[axis] += *thrust * thruster.direction[axis];
            load[axis + 3] += *thrust * thruster.arm[axis];
        }
    }
    load
}

/// Kinetic energy (with the added mass) plus the height of weight and buoyancy, J.
#[must_use]
pub fn energy(hull: &Hull, state: &State) -> f64 {
    let kinetic: f64 = (0..6).map(|i| 0.5 * hull.inertia[i] * state.velocity[i].powi(2)).sum();
    let centre = state.attitude.rotate(hull.buoyancy_centre)[2];
    kinetic + (hull.weight - hull.buoyancy) * state.position[2] - hull.buoyancy * centre
}

#[cfg(test)]
mod tests {
    use super::*;

    const STILL: [f64; 8] = [0.0; 8];

    fn tumbling() -> State {
        let attitude = Quaternion::from_turn([0.4, -0.9, 2.0]);
        let velocity = [1.5, -1.0, 0.8, 2.0, -3.0, 1.0];
        State { velocity, ..State::at_rest([0.0; 3], attitude) }
    }

    #[test]
    fn without_thrust_energy_only_decays() {
        let hull = Hull::bluerov2_heavy();
        let mut state = tumbling();
        let mut before = energy(&hull, &state);
        let start = before;
        // A fine step, so that what is tested is the equations and not the integrator.
        for _ in 0..40_000 {
            step(&hull, &mut state, &STILL, 2.5e-4);
            let after = energy(&hull, &state);
            assert!(after <= before + 1e-6, "{before} -> {after}");
            before = after;
        }
        assert!(before < start - 20.0, "{start} -> {before}");
    }

    #[test]
    fn a_coarse_step_loses_energy_too() {
        let hull = Hull::bluerov2_heavy();
        let mut state = tumbling();
        let mut seconds = vec![energy(&hull, &state)];
        for _ in 0..10 {
            (0..40).for_each(|_| step(&hull, &mut state, &STILL, 0.025));
            seconds.push(energy(&hull, &state));
        }
        assert!(seconds.is_sorted_by(|earlier, later| earlier > later), "{seconds:?}");
    }

    #[test]
    fn the_restoring_moment_rights_a_rolled_vehicle() {
        let hull = Hull::bluerov2_heavy();
        let mut state = State::at_rest([0.0; 3], Quaternion::from_turn([1.2, 0.3, 0.0]));
        (0..4000).for_each(|_| step(&hull, &mut state, &STILL, 0.025));
        assert!(state.attitude.rotate([0.0, 0.0, 1.0])[2] > 0.999, "{state:?}");
    }

    #[test]
    fn the_attitude_stays_a_rotation_under_full_thrust() {
        let hull = Hull::bluerov2_heavy();
        let mut state = tumbling();
        for round in 0..4000_u32 {
            let command = std::array::from_fn(|i| {
                if (round / 7 + i as u32).is_multiple_of(3) { 1.0 } else { -1.0 }
            });
            step(&hull, &mut state, &command, 0.025);
            let q = state.attitude;
            let length = q.w * q.w + q.v.iter().map(|part| part * part).sum::<f64>();
            assert!((length - 1.0).abs() < 1e-9, "{length}");
            assert!(state.velocity.iter().all(|speed| speed.abs() < 60.0), "{state:?}");
        }
    }

    #[test]
    fn full_ahead_ends_at_the_speed_where_drag_equals_thrust() {
        let mut hull = Hull::bluerov2_heavy();
        // The level propellers sit below the centre of mass and would pitch the vehicle.
        hull.thrusters.iter_mut().for_each(|thruster| thruster.arm = [0.0; 3]);
        hull.buoyancy = hull.weight;
        let ahead = [1.0, 1.0, -1.0, -1.0, 0.0, 0.0, 0.0, 0.0];
        let mut state = State::at_rest([0.0; 3], Quaternion::IDENTITY);
        (0..400).for_each(|_| step(&hull, &mut state, &ahead, 0.025));
        let speed = state.velocity[0];
        let thrust: f64 = (0..4).map(|i| state.thrust[i] * hull.thrusters[i].direction[0]).sum();
        assert!((13.7 * speed + 141.0 * speed * speed - thrust).abs() < 1e-3 * thrust, "{speed}");
        assert!(state.thrust[0] > 51.0, "forward at full command");
    }
}
