//! Chooses the records of a batch that are written. Most messages that are not are only read into
//! outlines.
//!
//! It knows what may be asked about a record. It knows no filter.

use super::head::{BatchedBody, FieldsAt, Head, Selection, Unread, record};
use super::{
    AHEAD, Batch, BatchReading, Counting, MessageToCount, OutlineReader, TablesByName,
    message_bytes, padded_bytes,
};
use crate::captured::Captured;
use crate::out::tree::{AnnotationRange, Annotations, Annotator};
use crate::record::{Body, Outlined, Record};
use crate::session::Message;

/// Which records are wanted. Any thread may ask, in any order.
pub trait RecordChoice {
    /// Whether a message of which only the outline was read is certainly not wanted.
    fn drops(&self, record: &Record<'_, Outlined<'_>>) -> bool;

    /// Whether such a message is wanted; `None` if its fields decide.
    fn decides(&self, record: &Record<'_, Outlined<'_>>) -> Option<bool>;

    /// Whether it pays at present to ask whether messages are dropped; with `or_keeps`, whether it
    /// pays to ask what is decided about them.
    fn asks_outlines(&self, or_keeps: bool) -> bool;

    /// Whether [`keeps`](RecordChoice::keeps) depends on the annotations.
    fn wants_names(&self) -> bool;

    /// Whether a record is wanted.
    fn keeps(&self, record: &Record<'_>, annotations: Annotations<'_>) -> bool;
}

impl Batch {
    /// Chooses among the records, as far as no names of earlier ones are needed for that, and
    /// counts what is in them. Without a choice, all are chosen.
    pub fn choose(&mut self, reading: &mut BatchReading<'_>, counting: Option<Counting<'_>>) {
        let mut tables = TablesByName::new(reading.tables);
        let mut ahead = 0;
        self.each_head(|batch, head| {
            if head.selection == Selection::Undecided {
                batch.choose_one(head, &mut tables, reading, counting);
                batch.keep_read(head, &mut ahead);
            }
        });
    }

    fn choose_one(
        &mut self,
        head: &mut Head,
        tables: &mut TablesByName<'_>,
        reading: &mut BatchReading<'_>,
        counting: Option<Counting<'_>>,
    ) {
        if let BatchedBody::Message { bytes, fields: FieldsAt::Outline(..), once, .. } = head.what {
            head.selection = Selection::Kept;
            let message = MessageToCount {
                stream: head.stream,
                from: head.from,
                length: bytes.1 - bytes.0,
                once,
            };
            counting.map(|counting| self.sums.outlined(&message, &mut self.no_outline, counting));
            return;
        }
        if let Some(selection) = self.select_by_outline(head, tables, reading, counting) {
            head.selection = selection;
            if reading.outlines
                && let BatchedBody::Message { fields: fields @ FieldsAt::Unread(_), .. } =
                    &mut head.what
                && let FieldsAt::Unread(Unread { id, .. }) = *fields
            {
                *fields = FieldsAt::Outline(self.keep_outline(reading.reader), id);
            }
            return;
        }
        self.prepare(head, tables, reading.reader, counting);
        match reading.choice {
            None => head.selection = Selection::Kept,
            Some(choice) if choice.wants_names() => {}
            Some(choice) => {
                let mut selection = Selection::Undecided;
                self.show(head, tables, |record| {
                    selection = selection_of(record, choice, reading.learns)
                });
                head.selection = selection;
            }
        }
    }

    /// Moves the outline that a message was read into to the others, if it has problems. Returns
    /// its place.
    fn keep_outline(&mut self, reader: &mut OutlineReader) -> Option<usize> {
        if reader.outline.problems().is_empty() {
            return None;
        }
        let another = self.spare_outlines.pop().unwrap_or_default();
        self.outlines.push(std::mem::replace(&mut reader.outline, another));
        Some(self.outlines.len() - 1)
    }

    /// What becomes of a message, if its outline tells that and is all that is needed of it. If so,
    /// it is counted.
    fn select_by_outline(
        &mut self,
        head: &Head,
        tables: &mut TablesByName<'_>,
        reading: &mut BatchReading<'_>,
        counting: Option<Counting<'_>>,
    ) -> Option<Selection> {
        let BatchedBody::Message {
            name,
            number,
            offset,
            bytes,
            reply,
            no_reply,
            fields,
            once,
            counted: None,
        } = head.what
        else {
            return None;
        };
        let (FieldsAt::Unread(unread), Some(tables)) = (fields, tables.of(head.protocol)) else {
            return None;
        };
        let Unread { id, context, .. } = unread;
        let BatchReading { reader, choice, learns, outlines, .. } = reading;
        // A choice asks for the keys of a reply, which only a record with a tree has.
        if choice.is_some_and(|choice| {
            !choice.asks_outlines(*outlines)
                || tables.message(id).is_none_or(|def| !def.answers.is_empty())
        }) {
            return None;
        }
        let (bytes, padded) = (message_bytes(&self.bytes, bytes), padded_bytes(&self.bytes, bytes));
        reader.set_context(context.and_then(|context| self.contexts.get(context)));
        if !reader.read_outline(tables, unread, head.from, padded)
            || *learns && !reader.outline.is_nameless()
        {
            return None;
        }
        let direction = self.directions.get(head.direction)?;
        let outline = &mut reader.outline;
        let from = head.from;
        let length = bytes.len();
        let service = &direction.service;
        let kept = match choice {
            None => true,
            Some(choice) => {
                let name = Captured::new(self.text(name));
                let message =
                    &Message { name, number, service, from, offset, bytes, reply, no_reply, once };
                let record = record(head, direction, Outlined { message, id, tables, outline });
                if *outlines {
                    choice.decides(&record)?
                } else {
                    !choice.drops(&record).then_some(true)?
                }
            }
        };
        let message = MessageToCount { stream: head.stream, from, length, once };
        if !counting.is_none_or(|counting| self.sums.outlined(&message, outline, counting)) {
            return None;
        }
        Some(if kept { Selection::Kept } else { Selection::Dropped })
    }

    /// Keeps the tree that a message was read into, unless these take too much memory or the
    /// message is not needed any more.
    pub(super) fn keep_read(&mut self, head: &mut Head, ahead: &mut usize) {
        if let BatchedBody::Message { fields: fields @ FieldsAt::Unread(_), .. } = &mut head.what
            && head.selection != Selection::Dropped
            && *ahead < AHEAD
        {
            *ahead += self.trees.free().size();
            *fields = FieldsAt::Tree(self.trees.use_free());
        }
    }

    /// Annotates the records with what earlier ones say about them, and chooses among those of
    /// which that decides. Messages should be [read](Batch::read) or [chosen](Batch::choose)
    /// before.
    pub fn remember(&mut self, reading: &mut BatchReading<'_>, history: &mut Annotator) {
        let mut tables = TablesByName::new(reading.tables);
        let mut store = std::mem::take(&mut self.annotation_store);
        self.each_head(|batch, head| {
            if head.selection == Selection::Dropped {
                let direction = batch.directions.get(head.direction);
                return direction
                    .into_iter()
                    .for_each(|direction| history.pass(&record(head, direction, ())));
            }
            let mut annotations = AnnotationRange::default();
            let mut selection = head.selection;
            batch.prepare(head, &mut tables, reading.reader, None);
            batch.show(head, &mut tables, |record| {
                annotations = history.see(record, &mut store);
                if let (Selection::Undecided, Some(choice)) = (selection, reading.choice) {
                    selection = if choice.keeps(record, store.get(annotations)) {
                        Selection::Kept
                    } else {
                        Selection::ForNames
                    };
                }
                match selection {
                    Selection::Undecided | Selection::Kept => {
                        history.print(record, &mut annotations)
                    }
                    Selection::ForNames | Selection::Dropped => store.drop_last(annotations),
                }
            });
            (head.annotations, head.selection) = (annotations, selection);
        });
        self.annotation_store = store;
    }
}

/// What becomes of a record. With `learns`, later records may show the names in it.
fn selection_of(record: &Record<'_>, choice: &dyn RecordChoice, learns: bool) -> Selection {
    let names = match &record.body {
        Body::Message { message, tree, .. } => message.reply.is_some() || !tree.is_nameless(),
        _ => false,
    };
    match choice.keeps(record, Annotations::default()) {
        true => Selection::Kept,
        false if learns && names => Selection::ForNames,
        false => Selection::Dropped,
    }
}
