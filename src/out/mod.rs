//! Outputs: sinks over records and trees, and nothing else. A new protocol changes none of them.

mod batch;
pub mod follow;
pub mod json;
pub mod learned;
mod paint;
mod record;
pub mod stats;
pub mod tree;

pub use batch::Batch;
pub use paint::Paint;
pub use record::{Body, Counts, Record, event_word, format_time, problem_path, problem_text};
