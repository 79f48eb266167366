//! Whether a message certainly has no field of a name, by its layout and the classes of the objects
//! in it.

use std::sync::{Arc, OnceLock};

use crate::table::{LayoutAnswers, OutlineOf, Tables};
use crate::tree::Sym;

/// Which layouts may have a field of a name, for each protocol; `None` where other nodes may have
/// the name.
#[derive(Clone, Debug)]
pub(super) struct FieldPlaces {
    protocols: Arc<[OnceLock<Option<LayoutAnswers>>]>,
}

impl FieldPlaces {
    /// Nothing is known yet, of as many protocols.
    pub(super) fn new(protocols: usize) -> FieldPlaces {
        FieldPlaces { protocols: std::iter::repeat_with(OnceLock::new).take(protocols).collect() }
    }

    /// Whether a message of which only the outline was read certainly has no field of the name.
    pub(super) fn lacks(
        &self,
        name: Sym,
        tables: &Tables,
        protocol: usize,
        read: OutlineOf<'_>,
    ) -> bool {
        let Some(places) = self.protocols.get(protocol) else { return false };
        let new = || (!tables.names_elsewhere(name)).then(|| LayoutAnswers::new(tables));
        let places = places.get_or_init(new).as_ref();
        places.is_some_and(|places| !places.reaches(tables, read, &|field, _| field == name))
    }
}
