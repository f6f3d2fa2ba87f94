//! The client of RunPod REST v2.
