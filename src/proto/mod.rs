//! One room per protocol.
pub mod moul;
