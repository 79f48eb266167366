//! The user's options for City of Heroes.

use crate::proto::{OptionKind, OptionSpec, OptionValues};
use crate::session::Settings;

/// The options.
pub(super) const OPTIONS: [OptionSpec; 1] = [OptionSpec {
    name: COOKIES,
    value_name: "WHEN",
    help: "City of Heroes: expect cookies in packets, or none",
    more_help: "",
    kind: OptionKind::Word(&["auto", "on", "off"]),
    variable: None,
    everywhere: false,
}];

const COOKIES: &str = "ouro-cookies";

/// The settings of a run.
#[derive(Default)]
pub(super) struct OuroSettings {
    /// Whether packets carry cookies. With `None`, the reading that fits best decides.
    pub(super) cookies: Option<bool>,
}

impl OuroSettings {
    /// The settings from the given options.
    pub(super) fn new(values: &OptionValues) -> OuroSettings {
        let cookies = match values.word(COOKIES) {
            Some("on") => Some(true),
            Some("off") => Some(false),
            _ => None,
        };
        OuroSettings { cookies }
    }

    /// Whether packets carry cookies, by the settings of a run.
    pub(super) fn cookies(settings: &Settings) -> Option<bool> {
        settings.get::<OuroSettings>()?.cookies
    }
}
