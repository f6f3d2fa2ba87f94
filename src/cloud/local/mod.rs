//! The local cloud: a twin of RunPod on loopback.
