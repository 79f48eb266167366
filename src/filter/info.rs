//! Decides conditions on a message's `info` line without a tree: where the line cannot have the
//! wanted text, neither in what tables write nor in the message's texts nor in names that earlier
//! records gave.
//!
//! What tables write in a line can be a part of the wanted text, or begin or end in it. Where it
//! cannot, the wanted text lies within one value, because no two values come directly behind each
//! other.

use std::borrow::Cow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::needle::{Needle, any_is_in};
use super::path::{Path, PathStep};
use super::sought::{PartOfText, SoughtValue, needle_of, values};
use super::{Check, CompareOp};
use crate::captured::is_control;
use crate::table::{InfoText, LayoutAnswers, OutlineOf, Tables};

/// A condition on the line.
pub(super) struct InfoTest {
    /// Texts of which the line has to have one for the condition to hold, or not to hold.
    texts: Vec<WantedText>,
    /// Whether the condition certainly holds for a line that has none of them.
    pub(super) without: bool,
    /// Whether a name that a record gave has one of them.
    learned: AtomicBool,
    protocols: Vec<OnceLock<WantedBytes>>,
}

/// A text that a line may have.
struct WantedText {
    whole: PartOfText,
    /// The longest part between spaces, which control characters become in a line.
    word: PartOfText,
}

/// The texts in a protocol's messages.
struct WantedBytes {
    /// For which layouts what tables write may have a text, or a part of one.
    written: LayoutAnswers,
    needles: Vec<Needle>,
}

impl InfoTest {
    /// `None` where the texts of values do not decide about the condition.
    pub(super) fn new(path: &Path, check: &Check, protocols: usize) -> Option<InfoTest> {
        let [PathStep::Key(key)] = path.steps.as_slice() else { return None };
        let without = matches!(check, Check::Compare(CompareOp::Ne, _));
        let values = match check {
            Check::Compare(CompareOp::Ne, literal) => vec![SoughtValue::Whole(literal.clone())],
            other => values(other)?,
        };
        let texts = values.into_iter().map(WantedText::new).collect::<Option<_>>()?;
        let protocols = std::iter::repeat_with(OnceLock::new).take(protocols).collect();
        let info = key.record.is_some_and(|key| key.name == "info");
        info.then_some(InfoTest { texts, without, learned: AtomicBool::new(false), protocols })
    }

    /// A record gave a name to a number.
    pub(super) fn learn_name(&self, name: &str) {
        let shown: String = name.chars().map(|c| if is_control(c) { ' ' } else { c }).collect();
        if self.texts.iter().any(|text| text.may_be_in(InfoText::Value(&shown))) {
            self.learned.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the line of a message with these bytes, its own and those that were made of them,
    /// has none of the texts.
    pub(super) fn lacks(
        &self,
        protocol: usize,
        tables: &Tables,
        read: OutlineOf<'_>,
        searched: [&[u8]; 2],
    ) -> bool {
        let Some(known) = self.protocols.get(protocol) else { return false };
        let wanted = known.get_or_init(|| WantedBytes::new(&self.texts, tables));
        let written = |layout| {
            tables.info_may_have(layout, &|part| self.texts.iter().any(|text| text.may_be_in(part)))
        };
        !self.learned.load(Ordering::Relaxed)
            && !wanted.written.any(tables, read, &written)
            && !any_is_in(&wanted.needles, searched)
    }
}

impl WantedText {
    /// `None` for a text of which values that have it may have other bytes.
    fn new(value: SoughtValue) -> Option<WantedText> {
        let whole = value.into_text();
        let word = whole.text.split(' ').max_by_key(|word| word.len()).unwrap_or("").to_string();
        // Invalid bytes, and what was cut off, come out as these.
        let unclear = |c: char| matches!(c, '\u{fffd}' | '…') || is_control(c);
        let clear = !word.is_empty() && !whole.text.contains(unclear);
        clear.then_some(WantedText {
            word: PartOfText { text: word, any_case: whole.any_case },
            whole,
        })
    }

    /// Whether a part of a line may have the text, or begin or end in it.
    fn may_be_in(&self, part: InfoText<'_>) -> bool {
        let PartOfText { text: wanted, any_case } = &self.whole;
        let case = |text| {
            if *any_case { Cow::Owned(str::to_ascii_lowercase(text)) } else { Cow::Borrowed(text) }
        };
        let wanted = case(wanted);
        match part {
            InfoText::Value(value) => case(value).contains(&*wanted),
            InfoText::Characters(all) => wanted.chars().all(|c| all.contains(c)),
            InfoText::Between(text) => {
                let text = case(text);
                let mut borders = text.char_indices().map(|(at, _)| text.split_at(at)).skip(1);
                let overlaps = borders
                    .any(|(first, last)| wanted.ends_with(first) || wanted.starts_with(last));
                overlaps || text.contains(&*wanted) || wanted.contains(&*text)
            }
        }
    }
}

impl WantedBytes {
    fn new(texts: &[WantedText], tables: &Tables) -> WantedBytes {
        let mut needles: Vec<Needle> = Vec::new();
        for kind in tables.text_kinds() {
            for needle in texts.iter().filter_map(|text| needle_of(&text.word, kind)) {
                if needles.iter().all(|known| !known.is(&needle)) {
                    needles.push(needle);
                }
            }
        }
        WantedBytes { written: LayoutAnswers::new(tables), needles }
    }
}
