//! MOUL, the network protocol of Myst Online.
pub mod sdl;
