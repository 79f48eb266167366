//! What decides a condition on fields or names without a tree: a search of the message's bytes, the
//! place of a field in them, and the names that earlier records gave.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Check;
use super::info::InfoTest;
use super::path::{Path, PathKey, PathStep};
use super::sought::SoughtValues;
use super::symbols::SymbolPart;
use crate::table::{FieldRoute, RouteStep, SearchedMessage, Tables};
use crate::tree::Node;

/// The ways to decide one condition.
pub(super) struct Shortcuts {
    pub(super) start: PathStart,
    /// The values of which one must be in the message's bytes; without them where the bytes do not
    /// decide.
    pub(super) sought: Option<SoughtValues>,
    /// Set for the paths of fields.
    pub(super) place: Option<FieldPlace>,
    /// Set for the names of numbers.
    pub(super) names: Option<NameTest>,
    /// Set for the line that says what a message is about.
    pub(super) info: Option<InfoTest>,
}

impl Shortcuts {
    pub(super) fn new(path: &Path, check: &Check, protocols: usize) -> Shortcuts {
        Shortcuts {
            start: PathStart::of(path, check),
            sought: SoughtValues::new(path, check, protocols),
            place: FieldPlace::new(path, check, protocols),
            names: NameTest::new(path, protocols),
            info: InfoTest::new(path, check, protocols),
        }
    }
}

/// What a path begins with, as far as that tells something without a tree. A message that may be a
/// reply always gets a tree, so without one it has no keys of a reply; and no message has the keys
/// of events.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PathStart {
    /// A key whose values are known.
    Known,
    /// Keys that most messages certainly do not have.
    ExpectsReply,
    Refused,
    Problems,
    /// The path to the severities of all problems.
    Severities,
    /// A key whose values are not known, or a name at any depth.
    Unknown,
}

impl PathStart {
    fn of(path: &Path, check: &Check) -> PathStart {
        let [PathStep::Key(PathKey { record: Some(key), .. }), rest @ ..] = path.steps.as_slice()
        else {
            return PathStart::Unknown;
        };
        match (key.name, rest) {
            ("expects_reply", _) => PathStart::ExpectsReply,
            ("refused", _) => PathStart::Refused,
            ("problems", [PathStep::All, PathStep::Key(last)]) if last.text == "severity" => {
                PathStart::Severities
            }
            ("problems", _) => PathStart::Problems,
            ("info", _) if matches!(check, Check::Present) => PathStart::Known,
            ("info" | "fields" | "names", _) => PathStart::Unknown,
            _ => PathStart::Known,
        }
    }
}

/// The part of a number that a path ends with, and the steps before it.
fn symbol_part(steps: &[PathStep]) -> (&[PathStep], Option<SymbolPart>) {
    match steps {
        [before @ .., PathStep::Key(last), PathStep::All]
            if last.symbol == Some(SymbolPart::Names) =>
        {
            (before, last.symbol)
        }
        [before @ .., PathStep::Key(last)]
            if matches!(last.symbol, Some(SymbolPart::Value | SymbolPart::Name)) =>
        {
            (before, last.symbol)
        }
        _ => (steps, None),
    }
}

/// A path to values in a message, as each protocol's tables have it.
pub(super) struct FieldPlace {
    steps: Vec<PathStep>,
    /// What is asked of a number there.
    pub(super) part: Option<SymbolPart>,
    /// Whether it leads straight to one field, so that finding it is cheaper than any search.
    pub(super) is_direct: bool,
    /// Whether objects and lists there can be tested. They may be times.
    composites: bool,
    /// If it has to be a flag set: the name that one of its flags has to have.
    flag: Option<String>,
    routes: Vec<OnceLock<Option<FieldRoute>>>,
}

impl FieldPlace {
    fn new(path: &Path, check: &Check, protocols: usize) -> Option<FieldPlace> {
        let steps = match path.steps.split_first()? {
            (PathStep::Key(first), rest) if first.text == "fields" => rest,
            (PathStep::Anywhere(_), _) => path.steps.as_slice(),
            _ => return None,
        };
        let (steps, part) = symbol_part(steps);
        let has_parts = steps.iter().filter_map(PathStep::key).any(|key| key.symbol.is_some());
        // Without names of fields, an anywhere leads to other parts of a record, too.
        let fields = !has_parts && !steps.is_empty() && path.field_names().next().is_some();
        let is_direct = steps.iter().all(|step| matches!(step, PathStep::Key(_)));
        let routes = std::iter::repeat_with(OnceLock::new).take(protocols).collect();
        let composites = part.is_none() && !check.is_about_times();
        let flag = match check {
            Check::Has(literal) if literal.number.is_none() => Some(literal.raw.clone()),
            _ => None,
        };
        fields.then(|| FieldPlace {
            steps: steps.to_vec(),
            part,
            is_direct,
            composites,
            flag,
            routes,
        })
    }

    /// Whether a value there passes a test, in a message that was read into an outline (see
    /// [`FieldRoute::any`]); `None` if only a tree can tell.
    pub(super) fn any(
        &self,
        protocol: usize,
        tables: &Tables,
        message: SearchedMessage<'_>,
        test: &mut dyn FnMut(Node, &[u8]) -> bool,
    ) -> Option<bool> {
        let step = |step: &PathStep| {
            Some(match step {
                PathStep::Key(key) => RouteStep::Name(key.sym(protocol, tables)?),
                PathStep::Anywhere(key) => RouteStep::Anywhere(key.sym(protocol, tables)?),
                PathStep::Index(place) => RouteStep::Element(Some(*place)),
                PathStep::All => RouteStep::Element(None),
            })
        };
        // Of numbers only those count that have the flag. What is no number is left to the test.
        let is_sought = |ty| {
            let named = |flag: &String| {
                tables.symbols(ty).is_some_and(|set| set.values.iter().any(|one| one.name == *flag))
            };
            self.flag.as_ref().is_none_or(|flag| named(flag) || !tables.is_plain_number(ty))
        };
        let new = || {
            FieldRoute::new(
                tables,
                self.steps.iter().map(step).collect::<Option<_>>()?,
                self.composites,
                is_sought,
            )
        };
        self.routes.get(protocol)?.get_or_init(new).as_ref()?.any(tables, message, test)
    }
}

/// A condition on the names that earlier records give to numbers: `names[*].name`, or `*.name`,
/// which also finds fields and values of enums.
pub(super) struct NameTest {
    /// Whether a name passed the test since the first record.
    learned: AtomicBool,
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
        Some(NameTest { learned: AtomicBool::new(false), anywhere })
    }

    /// A record gave a name to a number.
    pub(super) fn learn_name(&self, name: &str, check: &Check) {
        if check.holds_for_name(name) {
            self.learned.store(true, Ordering::Relaxed);
        }
    }

    /// Whether no name that a record gave passes the test.
    pub(super) fn fails(&self) -> bool {
        !self.learned.load(Ordering::Relaxed)
    }

    /// For `*.name`: the key, where no value of an enum has a name that passes.
    pub(super) fn fields(
        &self,
        check: &Check,
        protocol: usize,
        tables: &Tables,
    ) -> Option<&PathKey> {
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
