//! What the types with code of SDL keep from one state to the next, to save work. Nothing that they
//! read depends on it.

use super::names::SdlNames;
use crate::table::{Evaluator, Run};

/// What is kept beside an evaluator.
#[derive(Default)]
pub(super) struct SdlScratch {
    /// The names of the tables that ran last, and the address of these tables.
    names: Option<(usize, SdlNames)>,
    /// A buffer for the descriptor name in a state.
    name: String,
}

impl SdlScratch {
    fn of(evaluator: &mut Evaluator) -> Option<&mut SdlScratch> {
        evaluator.scratch.get_or_insert_with(|| Box::new(SdlScratch::default())).downcast_mut()
    }

    /// The names in the tables of this run. `None` if the tables have no `sdl.table`. They are
    /// looked up once.
    pub(super) fn names(run: &mut Run<'_>) -> Option<SdlNames> {
        let tables = run.tables;
        let here = std::ptr::from_ref(tables).addr();
        let scratch = SdlScratch::of(run.state)?;
        match scratch.names {
            Some((of, names)) if of == here => Some(names),
            _ => {
                let names = SdlNames::look_up(tables)?;
                scratch.names = Some((here, names));
                Some(names)
            }
        }
    }

    /// Takes the buffer, which is empty.
    pub(super) fn take_buffer(evaluator: &mut Evaluator) -> String {
        let mut name = SdlScratch::of(evaluator)
            .map(|scratch| std::mem::take(&mut scratch.name))
            .unwrap_or_default();
        name.clear();
        name
    }

    /// Gives the buffer back.
    pub(super) fn put_buffer(evaluator: &mut Evaluator, name: String) {
        if let Some(scratch) = SdlScratch::of(evaluator) {
            scratch.name = name;
        }
    }
}
