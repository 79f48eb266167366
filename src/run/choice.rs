//! Lets a filter choose among the records of batches.

use crate::filter::Filter;
use crate::out::tree::Annotations;
use crate::out::{BatchReading, OutlineReader, Outlined, Record, RecordChoice};
use crate::proto::LazyTables;

impl RecordChoice for Filter {
    fn drops(&self, record: &Record<'_, Outlined<'_>>) -> bool {
        Filter::drops(self, record)
    }

    fn decides(&self, record: &Record<'_, Outlined<'_>>) -> Option<bool> {
        Filter::decides(self, record, false)
    }

    fn asks_outlines(&self, or_keeps: bool) -> bool {
        !Filter::wants_names(self) && Filter::asks_outlines(self, or_keeps)
    }

    fn wants_names(&self) -> bool {
        Filter::wants_names(self)
    }

    fn keeps(&self, record: &Record<'_>, annotations: Annotations<'_>) -> bool {
        Filter::keeps(self, record, annotations)
    }
}

/// How batches are read whose records `filter` chooses.
pub(super) fn reading<'r>(
    tables: &'r [LazyTables],
    reader: &'r mut OutlineReader,
    filter: Option<&'r Filter>,
) -> BatchReading<'r> {
    let choice = filter.map(|filter| filter as &dyn RecordChoice);
    BatchReading { tables, reader, choice, learns: false, outlines: false }
}
