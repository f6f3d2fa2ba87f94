//! The controller: a linear map from what the vehicle senses to its propellers, through tanh.

/// Numbers the controller sees: goal in body axes (3), attitude error (3), velocity (6), and a 1.
pub const OBSERVATIONS: usize = 13;
/// Numbers it answers with: one command per propeller.
pub const ACTIONS: usize = 8;

/// A controller.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    weights: Vec<f64>,
}

impl Policy {
    /// How many weights there are.
    pub const WEIGHTS: usize = OBSERVATIONS * ACTIONS;

    /// The controller that does nothing.
    #[must_use]
    pub fn idle() -> Self {
        Self { weights: vec![0.0; Self::WEIGHTS] }
    }

    /// The weights, one row of [`OBSERVATIONS`] per action.
    #[must_use]
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// This controller moved by `scale` along `direction`.
    #[must_use]
    pub fn moved(&self, direction: &[f64], scale: f64) -> Self {
        let weights = self.weights.iter().zip(direction);
        Self { weights: weights.map(|(weight, part)| weight + scale * part).collect() }
    }

    /// Commands for the propellers, −1 to 1.
    #[must_use]
    pub fn act(&self, observation: &[f64; OBSERVATIONS]) -> [f64; ACTIONS] {
        let mut action = [0.0; ACTIONS];
        for (row, command) in action.iter_mut().enumerate() {
            let weights = &self.weights[row * OBSERVATIONS..(row + 1) * OBSERVATIONS];
            let mut sum = 0.0;
            for column in 0..OBSERVATIONS {
                sum += weights[column] * observation[column];
            }
            *command = sum.tanh();
        }
        action
    }
}
