//! What decides a condition on fields or names without a tree: a search of the message's bytes, the place of a field in them, and the names that earlier
//! records gave.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Check;
use super::keys::SYMBOL_KEYS;
use super::path::{Path, PathKey, PathStep};
use super::sought::SoughtValues;
use crate::table::{FieldRoute, FoundField, MessageDef, Tables};

/// The ways to decide one condition.
pub(super) struct Shortcuts {
    /// The values of which one must be in the message's bytes; without them where the bytes do not decide.
    pub(super) sought: Option<SoughtValues>,
    /// Set for the path of one field.
    pub(super) place: Option<FieldPlace>,
    /// Set for the names of numbers.
    pub(super) names: Option<NameTest>,
}

impl Shortcuts {
    pub(super) fn new(path: &Path, check: &Check, protocols: usize) -> Shortcuts {
        Shortcuts {
            sought: SoughtValues::new(path, check, protocols),
            place: FieldPlace::new(path, protocols),
            names: NameTest::new(path, protocols),
        }
    }
}

/// The path of one field in a message, as each protocol's tables have it.
pub(super) struct FieldPlace {
    keys: Vec<PathKey>,
    routes: Vec<OnceLock<Option<FieldRoute>>>,
}

impl FieldPlace {
    fn new(path: &Path, protocols: usize) -> Option<FieldPlace> {
        let (PathStep::Key(first), rest) = path.steps.split_first()? else { return None };
        let field = |step: &PathStep| match step {
            PathStep::Key(key) if !SYMBOL_KEYS.contains(&key.text.as_str()) => Some(key.clone()),
            _ => None,
        };
        let keys: Vec<PathKey> = rest.iter().map(field).collect::<Option<_>>()?;
        let routes = std::iter::repeat_with(OnceLock::new).take(protocols).collect();
        (first.text == "fields" && !keys.is_empty()).then_some(FieldPlace { keys, routes })
    }

    /// What is there in a message that was read into an outline.
    pub(super) fn find(&self, protocol: usize, tables: &Tables, message: &MessageDef, bytes: &[u8]) -> FoundField {
        let Some(route) = self.routes.get(protocol) else { return FoundField::Unknown };
        let route = route.get_or_init(|| {
            let names = self.keys.iter().map(|key| key.sym(protocol, tables)).collect::<Option<_>>()?;
            FieldRoute::new(tables, names)
        });
        route.as_ref().map_or(FoundField::Unknown, |route| route.find(tables, message, bytes))
    }
}

/// A condition on the names that earlier records give to numbers: `names[*].name`, or `*.name`, which also finds fields and values of enums.
pub(super) struct NameTest {
    /// Whether a name passed the test since the first record.
    heard: AtomicBool,
    /// For `*.name`: the key, and for each protocol whether the name of a value of an enum passes.
    anywhere: Option<(PathKey, Vec<OnceLock<bool>>)>,
}

impl NameTest {
    fn new(path: &Path, protocols: usize) -> Option<NameTest> {
        let anywhere = match path.steps.as_slice() {
            [PathStep::Anywhere(key)] if key.text == "name" => {
                Some((key.clone(), std::iter::repeat_with(OnceLock::new).take(protocols).collect()))
            }
            [PathStep::Key(first), PathStep::All | PathStep::Key(_), PathStep::Key(last)]
                if first.record.is_some_and(|key| key.name == "names") && last.text == "name" =>
            {
                None
            }
            _ => return None,
        };
        Some(NameTest { heard: AtomicBool::new(false), anywhere })
    }

    /// A record gave a name to a number.
    pub(super) fn hear(&self, name: &str, check: &Check) {
        if check.holds_for_name(name) {
            self.heard.store(true, Ordering::Relaxed);
        }
    }

    /// Whether no name that a record gave passes the test.
    pub(super) fn fails(&self) -> bool {
        !self.heard.load(Ordering::Relaxed)
    }

    /// For `*.name`: the key, where no value of an enum has a name that passes.
    pub(super) fn fields(&self, check: &Check, protocol: usize, tables: &Tables) -> Option<&PathKey> {
        let (key, known) = self.anywhere.as_ref()?;
        let passes = || {
            let mut names = tables.enums().flat_map(|one| &one.values).map(|value| &*value.name);
            names.any(|name| check.holds_for_name(name))
        };
        (!*known.get(protocol)?.get_or_init(passes)).then_some(key)
    }

    /// Whether it is about nothing but names that records give.
    pub(super) fn is_of_names_only(&self) -> bool {
        self.anywhere.is_none()
    }
}
