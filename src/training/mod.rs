//! Trainings: what is run on a vehicle's pod.

pub mod auv;
