//! Whether a message certainly has no field of a name, by its layout and the classes of the objects in it.

use std::sync::{Arc, OnceLock};

use crate::table::{LayoutAnswers, LayoutId, Tables};
use crate::tree::{Outline, Sym};

/// Which layouts may have a field of a name, for each protocol.
#[derive(Clone, Debug)]
pub(super) struct FieldPlaces {
    protocols: Arc<[OnceLock<LayoutAnswers>]>,
}

impl FieldPlaces {
    /// Nothing is known yet, of as many protocols.
    pub(super) fn new(protocols: usize) -> FieldPlaces {
        FieldPlaces { protocols: std::iter::repeat_with(OnceLock::new).take(protocols).collect() }
    }

    /// Whether a message of which only the outline was read certainly has no field of the name.
    pub(super) fn lacks(&self, name: Sym, tables: &Tables, protocol: usize, read: OutlineOf<'_>) -> bool {
        let Some(places) = self.protocols.get(protocol) else { return false };
        let places = places.get_or_init(|| LayoutAnswers::new(tables));
        !places.any(read.layout, read.outline, |layout| tables.may_have(layout, name))
    }
}

/// The outline of a message, and the message's layout.
#[derive(Clone, Copy)]
pub(super) struct OutlineOf<'a> {
    pub(super) layout: Option<LayoutId>,
    pub(super) outline: &'a Outline,
}
