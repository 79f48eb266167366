//! TCP streams and UDP datagrams out of frames.
