//! Vectors and rotations, as far as one vehicle needs them. World and body axes are z-up.

/// Three numbers along x, y and z.
pub type Vector = [f64; 3];

/// a × b.
#[must_use]
pub fn cross(a: Vector, b: Vector) -> Vector {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// Length.
#[must_use]
pub fn norm(a: Vector) -> f64 {
    (a[0] * a[0] + a[1] * a[1] + a[2] * a[2]).sqrt()
}

/// A rotation from body to world axes, always of length 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quaternion {
    /// Real part.
    pub w: f64,
    /// Imaginary part.
    pub v: Vector,
}

impl Quaternion {
    /// No rotation.
    pub const IDENTITY: Self = Self { w: 1.0, v: [0.0; 3] };

    /// The rotation by the length of `turn` (rad) about its direction.
    #[must_use]
    pub fn from_turn(turn: Vector) -> Self {
        let angle = norm(turn);
        // sin(x/2)/x, where x = 0 has a limit but no quotient.
        let scale = if angle < 1e-9 { 0.5 } else { (angle / 2.0).sin() / angle };
        Self { w: (angle / 2.0).cos(), v: turn.map(|part| part * scale) }
    }

    /// First `other`, then `self`; brought back to length 1, which rounding would leave.
    #[must_use]
    pub fn after(self, other: Self) -> Self {
        let (a, b) = (self, other);
        let w = a.w * b.w - a.v[0] * b.v[0] - a.v[1] * b.v[1] - a.v[2] * b.v[2];
        let turned = cross(a.v, b.v);
        let v = [
            a.w * b.v[0] + b.w * a.v[0] + turned[0],
            a.w * b.v[1] + b.w * a.v[1] + turned[1],
            a.w * b.v[2] + b.w * a.v[2] + turned[2],
        ];
        let length = (w * w + v[0] * v[0] + v[1] * v[1] + v[2] * v[2]).sqrt();
        Self { w: w / length, v: [v[0] / length, v[1] / length, v[2] / length] }
    }

    /// The reverse rotation: world to body.
    #[must_use]
    pub fn inverse(self) -> Self {
        Self { w: self.w, v: [-self.v[0], -self.v[1], -self.v[2]] }
    }

    /// Rotates a vector.
    #[must_use]
    pub fn rotate(self, a: Vector) -> Vector {
        let once = cross(self.v, a);
        let twice = cross(self.v, once);
        [
            a[0] + 2.0 * (self.w * once[0] + twice[0]),
            a[1] + 2.0 * (self.w * once[1] + twice[1]),
            a[2] + 2.0 * (self.w * once[2] + twice[2]),
        ]
    }

    /// The smaller angle of the rotation, rad.
    #[must_use]
    pub fn angle(self) -> f64 {
        2.0 * norm(self.v).atan2(self.w.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::FRAC_PI_2;

    #[test]
    fn a_quarter_turn_about_z_brings_x_to_y_and_back() {
        let turn = Quaternion::from_turn([0.0, 0.0, FRAC_PI_2]);
        let there = turn.rotate([1.0, 0.0, 0.0]);
        assert!(norm([there[0], there[1] - 1.0, there[2]]) < 1e-12);
        assert!(norm([turn.inverse().rotate(there)[0] - 1.0, 0.0, 0.0]) < 1e-12);
        assert!((turn.angle() - FRAC_PI_2).abs() < 1e-12);
    }

    #[test]
    fn turns_add_up() {
        let half = Quaternion::from_turn([0.0, 0.4, 0.0]);
        let whole = Quaternion::from_turn([0.0, 0.8, 0.0]);
        assert!(half.after(half).after(whole.inverse()).angle() < 1e-9);
    }
}
