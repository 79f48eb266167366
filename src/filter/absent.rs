//! Whether a message certainly has no field of a name, by its layout and the classes of the objects in it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::table::{LayoutId, Tables};
use crate::tree::{Outline, Sym};

/// Which layouts may have a field of a name, for each protocol. Each is looked up when a message first has it.
#[derive(Clone, Debug)]
pub(super) struct FieldPlaces {
    protocols: Arc<[OnceLock<LayoutPlaces>]>,
}

/// The same of one protocol.
#[derive(Debug)]
struct LayoutPlaces {
    /// By the layout of a message.
    messages: Box<[OnceLock<bool>]>,
    /// By the layouts of classes, 64 in each element.
    classes: [ClassPlaces; Outline::CLASS_WORDS],
}

/// Which of 64 layouts were looked up, and which of these may have the field.
#[derive(Debug, Default)]
struct ClassPlaces {
    known: AtomicU64,
    may_have: AtomicU64,
}

impl ClassPlaces {
    /// Whether any of these layouts may have the field. `first` is the first one's place, and `look` looks one up.
    fn may_have(&self, wanted: u64, first: u32, look: impl Fn(LayoutId) -> bool) -> bool {
        let mut new = wanted & !self.known.load(Ordering::Acquire);
        while new != 0 {
            let bit = new & new.wrapping_neg();
            if look(LayoutId(first + bit.trailing_zeros())) {
                self.may_have.fetch_or(bit, Ordering::Relaxed);
            }
            self.known.fetch_or(bit, Ordering::Release);
            new &= !bit;
        }
        wanted & self.may_have.load(Ordering::Relaxed) != 0
    }
}

impl FieldPlaces {
    /// Nothing is known yet, of as many protocols.
    pub(super) fn new(protocols: usize) -> FieldPlaces {
        FieldPlaces { protocols: std::iter::repeat_with(OnceLock::new).take(protocols).collect() }
    }

    /// Whether a message of which only the outline was read certainly has no field of the name.
    pub(super) fn lacks(&self, name: Sym, tables: &Tables, protocol: usize, read: OutlineOf<'_>) -> bool {
        let (Some(places), Some(classes)) = (self.protocols.get(protocol), read.outline.classes()) else {
            return false;
        };
        let LayoutPlaces { messages, classes: known } = places.get_or_init(|| LayoutPlaces {
            messages: vec![OnceLock::new(); tables.layouts().len()].into(),
            classes: Default::default(),
        });
        let look = |layout: LayoutId| tables.may_have(layout, name);
        let in_message =
            |layout: LayoutId| messages.get(layout.0 as usize).is_none_or(|place| *place.get_or_init(|| look(layout)));
        let mut words = (0..).step_by(64).zip(classes).zip(known).filter(|((_, wanted), _)| **wanted != 0);
        read.layout.is_some_and(|layout| !in_message(layout))
            && !words.any(|((first, wanted), known)| known.may_have(*wanted, first, look))
    }
}

/// The outline of a message, and the message's layout.
#[derive(Clone, Copy)]
pub(super) struct OutlineOf<'a> {
    pub(super) layout: Option<LayoutId>,
    pub(super) outline: &'a Outline,
}
