//! Which names of types may be used more than once.
