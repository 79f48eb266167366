//! Outputs: sinks over records and trees, and nothing else. A new protocol changes none of them.

mod batch;
mod clock;
pub mod follow;
pub mod json;
mod kept;
pub mod learned;
mod made;
mod page;
mod paint;
mod problem;
mod record;
pub mod schema;
pub mod stats;
mod tally;
pub mod tree;

pub use batch::{Batch, Reader};
pub use clock::format_time;
pub use paint::Paint;
pub use problem::{problem_path, problem_text};
pub use record::{Body, Counts, EVENTS, Outlined, Record, event_word};
