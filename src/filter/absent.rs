//! Whether a message certainly has no field of a name, by its layout and the classes of the objects in it.

use std::sync::OnceLock;

use crate::table::{LayoutId, Tables};
use crate::tree::{Outline, Sym};

/// Which layouts may have a field of a name, for each protocol. Each is looked up when a message first has it.
#[derive(Clone, Debug)]
pub(super) struct FieldPlaces {
    protocols: Vec<OnceLock<Box<[OnceLock<bool>]>>>,
}

impl FieldPlaces {
    /// Nothing is known yet, of as many protocols.
    pub(super) fn new(protocols: usize) -> FieldPlaces {
        FieldPlaces { protocols: vec![OnceLock::new(); protocols] }
    }

    /// Whether a message of which only the outline was read certainly has no field of the name.
    pub(super) fn lacks(&self, name: Sym, tables: &Tables, protocol: usize, read: OutlineOf<'_>) -> bool {
        let (Some(places), Some(mut classes)) = (self.protocols.get(protocol), read.outline.classes()) else {
            return false;
        };
        let known = places.get_or_init(|| vec![OnceLock::new(); tables.layouts().len()].into());
        let may_have = |layout: LayoutId| {
            let place = known.get(layout.0 as usize);
            place.is_none_or(|place| *place.get_or_init(|| tables.may_have(layout, name)))
        };
        read.layout.is_some_and(|layout| !may_have(layout)) && !classes.any(|class| may_have(LayoutId(class)))
    }
}

/// The outline of a message, and the message's layout.
#[derive(Clone, Copy)]
pub(super) struct OutlineOf<'a> {
    pub(super) layout: Option<LayoutId>,
    pub(super) outline: &'a Outline,
}
