//! In the place of `zone`, in a library without the program: all times are in UTC.

/// The time zone in which times are shown: UTC.
#[derive(Clone, Debug, Default)]
pub struct UtcZone;

impl UtcZone {
    /// Seconds that the zone is ahead of UTC at a time in seconds since 1970.
    pub(super) fn offset(&self, _seconds: i64) -> i64 {
        0
    }

    /// What the zone is called at a time in seconds since 1970.
    pub(super) fn name(&self, _seconds: i64) -> String {
        "UTC".into()
    }
}
