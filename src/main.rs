//! podtether.
fn main() {}
