//! Outputs: sinks over records and trees, and nothing else. A new protocol changes none of them.

mod batch;
pub mod chat;
mod clock;
mod csv;
pub mod follow;
pub mod graph;
pub mod json;
mod lua;
pub mod oneline;
mod paint;
mod problem;
pub mod report;
pub mod schema;
mod scratch;
pub mod sessions;
pub mod stats;
mod table_cache;
pub mod tree;
mod value_texts;

pub use crate::record::{Body, Counts, EVENTS, EndedBy, Outlined, Record, event_word};
pub use batch::{Batch, OutlineReader};
pub use clock::{Zone, format_time};
pub use csv::csv_cell;
pub use lua::lua_script;
pub use paint::{Marks, Paint};
pub use problem::{problem_path, problem_text};
