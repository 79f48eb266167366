//! The zone of the times of day that people read. It knows no record.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::captured::escape;

/// The most bytes of a file that `TZ` may name. Those of real zones have a few thousand.
const MAX_BYTES: u64 = 1 << 20;

/// The time zone in which times are shown: UTC, or the one of this machine.
#[derive(Clone, Debug, Default)]
pub struct Zone(Option<TimeZone>);

impl Zone {
    /// The zone of this machine: the one that `TZ` names, or else the system's; UTC if the system
    /// has none.
    ///
    /// `TZ` may be the path of a file. `is_plain` tells whether reading it ends.
    ///
    /// # Errors
    /// `TZ` names no zone that this machine knows.
    pub fn local(is_plain: impl Fn(&Path) -> bool) -> Result<Zone, String> {
        let named = std::env::var_os("TZ");
        let found = match named.as_deref().filter(|name| is_endless(name, is_plain)) {
            Some(name) => named_zone(&name.to_string_lossy()),
            None => TimeZone::try_system().ok(),
        };
        match (found, named) {
            (Some(zone), _) => Ok(Zone(Some(zone))),
            (None, None) => Ok(Zone(None)),
            (None, Some(name)) => Err(format!(
                "this machine knows no time zone `{}` (TZ)",
                escape(&name.to_string_lossy())
            )),
        }
    }

    /// A zone as POSIX writes it.
    #[cfg(test)]
    pub(super) fn posix(rule: &str) -> Zone {
        Zone(TimeZone::posix(rule).ok())
    }

    /// Seconds that the zone is ahead of UTC at a time in seconds since 1970.
    pub(super) fn offset(&self, seconds: i64) -> i64 {
        let Some(zone) = &self.0 else { return 0 };
        Timestamp::from_second(seconds).map_or(0, |at| zone.to_offset(at).seconds().into())
    }

    /// What the zone is called at a time in seconds since 1970: `UTC`, `CET, UTC+01:00`.
    pub(super) fn name(&self, seconds: i64) -> String {
        let (Some(zone), Ok(at)) = (&self.0, Timestamp::from_second(seconds)) else {
            return "UTC".into();
        };
        let offset = self.offset(seconds);
        let sign = if offset < 0 { '-' } else { '+' };
        let hours = offset.abs() / 3600;
        let minutes = offset.abs() / 60 % 60;
        match zone.to_offset_info(at).abbreviation() {
            "UTC" => "UTC".into(),
            // A zone without an abbreviation of its own has its offset there.
            name if name.starts_with(['+', '-']) => format!("UTC{sign}{hours:02}:{minutes:02}"),
            name => format!("{name}, UTC{sign}{hours:02}:{minutes:02}"),
        }
    }
}

/// Whether `TZ` is the path of something that is not read: a pipe or a device, which may have no
/// end, or a file that is too long.
fn is_endless(named: &OsStr, is_plain: impl Fn(&Path) -> bool) -> bool {
    let text = named.to_string_lossy();
    let path = text.strip_prefix(':').map_or_else(|| named.to_os_string(), OsString::from);
    let path = Path::new(&path);
    path.metadata()
        .is_ok_and(|facts| !facts.is_dir() && (!is_plain(path) || facts.len() > MAX_BYTES))
}

/// The zone of this name, or with this rule, without a look at a file of this path.
fn named_zone(text: &str) -> Option<TimeZone> {
    let name = text.strip_prefix(':').unwrap_or(text);
    TimeZone::posix(name).or_else(|_| TimeZone::get(name)).ok()
}
