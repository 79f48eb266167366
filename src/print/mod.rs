//! Outputs: they read records and trees, and nothing else. A new protocol changes none of them.

#[cfg(feature = "cli")]
pub mod chat;
mod clock;
#[cfg(feature = "answers")]
mod conclusions;
#[cfg(feature = "answers")]
mod csv;
#[cfg(feature = "cli")]
pub mod follow;
#[cfg(feature = "cli")]
pub mod graph;
pub mod json;
#[cfg(feature = "cli")]
mod lua;
#[cfg(feature = "answers")]
mod marked;
#[cfg(feature = "cli")]
pub mod oneline;
mod paint;
mod problem;
#[cfg(feature = "answers")]
pub mod report;
#[cfg(feature = "cli")]
pub mod schema;
mod scratch;
#[cfg(feature = "answers")]
pub mod sessions;
#[cfg(feature = "answers")]
pub mod stats;
mod table_cache;
mod times;
pub mod tree;
mod value_texts;
mod view;
#[cfg(feature = "answers")]
mod width;
#[cfg(feature = "cli")]
mod zone;
#[cfg(not(feature = "cli"))]
mod zone_utc;

pub use clock::format_time;
#[cfg(feature = "answers")]
pub use conclusions::{ConclusionLines, conclusion_lines};
#[cfg(feature = "answers")]
pub use csv::csv_cell;
#[cfg(feature = "cli")]
pub use lua::lua_script;
#[cfg(feature = "answers")]
pub use marked::append_marked;
pub use paint::{Marks, Paint, Style};
pub use problem::{problem_path, problem_text};
pub use times::{PrintedTime, PrintedTimes, TimeForm};
#[cfg(feature = "cli")]
pub use zone::Zone;
#[cfg(not(feature = "cli"))]
pub use zone_utc::UtcZone as Zone;
