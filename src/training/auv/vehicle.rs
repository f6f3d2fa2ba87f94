//! The vehicle's constants: a BlueROV2 Heavy in fresh water.
//!
//! Mass, inertia, drag and added mass are those of von Benzon et al., J. Mar. Sci. Eng. 10 (2022)
//! 1898, turned from their z-down to our z-up axes (diagonal terms keep their signs).

use super::geometry::{Vector, cross};

/// Newtons of a Blue Robotics T200 at 16 V and full command, forward (5.25 kgf) and reverse
/// (4.1 kgf), from the maker's data sheet.
const FORWARD_N: f64 = 51.5;
const REVERSE_N: f64 = 40.2;

/// Commands of less than this move nothing: the electronics' dead band around neutral.
const DEAD_BAND: f64 = 0.08;

/// Seconds until 63 % of a new thrust is there.
const LAG_S: f64 = 0.05;

/// One propeller, fixed to the hull.
#[derive(Clone, Debug)]
pub struct Thruster {
    /// Direction of its force at a positive command, length 1.
    pub direction: Vector,
    /// Torque in N·m about the centre of mass per newton.
    pub arm: Vector,
}

impl Thruster {
    fn new(position: Vector, direction: Vector) -> Self {
        Self { direction, arm: cross(position, direction) }
    }

    /// The thrust in N that a lasting command ends at. Saturates at ±1; in between it grows with
    /// the square of the propeller's speed.
    #[must_use]
    pub fn steady(command: f64) -> f64 {
        let command = command.clamp(-1.0, 1.0);
        if command.abs() < DEAD_BAND {
            0.0
        } else if command > 0.0 {
            FORWARD_N * command * command
        } else {
            -REVERSE_N * command * command
        }
    }

    /// The share of the way to the steady thrust that `dt` seconds cover.
    #[must_use]
    pub fn approach(dt: f64) -> f64 {
        1.0 - (-dt / LAG_S).exp()
    }
}

/// A hull with its propellers. Body axes: x forward, y left, z up, origin at the centre of mass.
#[derive(Clone, Debug)]
pub struct Hull {
    /// Weight, N.
    pub weight: f64,
    /// Buoyancy when submerged, N.
    pub buoyancy: f64,
    /// Centre of buoyancy, m.
    pub buoyancy_centre: Vector,
    /// Mass and moments of inertia, each with its added mass: kg (x, y, z), kg·m² (roll, pitch, yaw).
    pub inertia: [f64; 6],
    /// Drag per speed: N·s/m (x, y, z), N·m·s (roll, pitch, yaw).
    pub linear_drag: [f64; 6],
    /// Drag per squared speed: N·s²/m², N·m·s².
    pub quadratic_drag: [f64; 6],
    /// The propellers.
    pub thrusters: [Thruster; 8],
}

impl Hull {
    /// The BlueROV2 Heavy.
    #[must_use]
    pub fn bluerov2_heavy() -> Self {
        const MASS_KG: f64 = 13.5;
        const VOLUME_M3: f64 = 0.0134;
        const WATER_KG_M3: f64 = 1000.0;
        const GRAVITY: f64 = 9.81;
        const DIAGONAL: f64 = std::f64::consts::FRAC_1_SQRT_2;
        let rigid = [MASS_KG, MASS_KG, MASS_KG, 0.26, 0.23, 0.37];
        let added = [6.357, 7.121, 18.69, 0.1858, 0.1348, 0.2215];
        let level = |x, y, dx, dy| {
            Thruster::new(
                [x, y, -0.085],
                [f64::copysign(DIAGONAL, dx), f64::copysign(DIAGONAL, dy), 0.0],
            )
        };
        let upright = |x, y| Thruster::new([x, y, 0.0], [0.0, 0.0, 1.0]);
        Self {
            weight: MASS_KG * GRAVITY,
            buoyancy: WATER_KG_M3 * VOLUME_M3 * GRAVITY,
            buoyancy_centre: [0.0, 0.0, 0.01],
            inertia: std::array::from_fn(|axis| rigid[axis] + added[axis]),
            linear_drag: [13.7, 0.0, 33.0, 0.0, 0.8, 0.0],
            quadratic_drag: [141.0, 217.0, 190.0, 1.19, 0.47, 1.5],
            thrusters: [
                level(0.156, -0.111, 1.0, 1.0),
                level(0.156, 0.111, 1.0, -1.0),
                level(-0.156, -0.111, -1.0, 1.0),
                level(-0.156, 0.111, -1.0, -1.0),
                upright(0.120, -0.218),
                upright(0.120, 0.218),
                upright(-0.120, -0.218),
                upright(-0.120, 0.218),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thruster_has_a_dead_band_and_saturates() {
        assert!(Thruster::steady(0.079).abs() < f64::EPSILON);
        assert!(Thruster::steady(0.081) > 0.0);
        assert!((Thruster::steady(7.0) - FORWARD_N).abs() < 1e-12);
        assert!((Thruster::steady(-7.0) + REVERSE_N).abs() < 1e-12);
    }

    #[test]
    fn the_propellers_can_push_and_turn_about_every_axis() {
        // Gauss elimination of the 6×8 matrix of forces and torques: its rank must be 6.
        let hull = Hull::bluerov2_heavy();
        let mut rows: Vec<[f64; 6]> = hull
            .thrusters
            .iter()
            .map(|t| [t.direction[0], t.direction[1], t.direction[2], t.arm[0], t.arm[1], t.arm[2]])
            .collect();
        for axis in 0..6 {
            let best =
                (axis..8).max_by(|a, b| rows[*a][axis].abs().total_cmp(&rows[*b][axis].abs()));
            rows.swap(axis, best.unwrap());
            assert!(rows[axis][axis].abs() > 1e-3, "axis {axis} is out of reach");
            let pivot = rows[axis];
            for row in &mut rows[axis + 1..] {
                let factor = row[axis] / pivot[axis];
                row.iter_mut().zip(pivot).for_each(|(cell, above)| *cell -= factor * above);
            }
        }
    }
}
