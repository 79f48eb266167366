//! The places of a stream's client: which it entered and left, as the tables' marks say.

use super::seen_message::SeenMessage;
use super::stream_facts::StreamFacts;
use super::values::Place;
use crate::capture::Moment;
use crate::table::{FieldFacts, PlaceRole};
use crate::tree::Node;

/// Places that are kept of one stream.
const MAX_PLACES: usize = 256;

impl StreamFacts {
    /// The server answered a client that asked to enter a place.
    pub(super) fn settle(&mut self, at: usize, now: Moment, entered: bool) {
        if !entered {
            self.places.remove(at);
            return;
        }
        if let Some(before) = at.checked_sub(1).and_then(|before| self.places.get_mut(before)) {
            before.to.get_or_insert(now);
        }
        if let Some(place) = self.places.get_mut(at) {
            place.pending = false;
            place.from = now;
        }
    }

    /// A message by which the client enters a place, or asks to, or leaves one.
    pub(super) fn place(&mut self, source: &SeenMessage<'_>, pending: bool) {
        let mut entered: Option<Place> = None;
        for (index, node, _, facts) in source.marked(|facts| facts.place.is_some()) {
            let (id, name) = source.id_and_name(index, node);
            if facts.place == Some(PlaceRole::Named) {
                self.name_place(name);
                continue;
            }
            let beside = facts.place == Some(PlaceRole::Beside);
            let (record, from) = (source.record.number, source.record.at);
            let place = entered.get_or_insert(Place {
                name: None,
                id: None,
                from,
                to: None,
                record,
                pending,
                beside,
            });
            place.id = place.id.take().or(id);
            place.name = place.name.take().or(name);
        }
        let Some(mut place) = entered.filter(|place| place.id.is_some() || place.name.is_some())
        else {
            return;
        };
        place.name = place.name.or_else(|| self.place_name.clone());
        let leaves = |(_, node, _, facts): (_, &Node, _, &FieldFacts)| {
            !facts.leaves_unless.contains(&node.value)
        };
        if source.marked(|facts| !facts.leaves_unless.is_empty()).any(leaves) {
            let open = self.places.iter_mut().filter(|open| open.to.is_none() && open.is(&place));
            open.for_each(|open| open.to = Some(place.from));
            return;
        }
        if place.beside && self.places.iter().any(|open| open.to.is_none() && open.is(&place)) {
            return;
        }
        let here = self.places.last_mut().filter(|last| !last.pending && last.to.is_none());
        if let Some(last) = here
            && !pending
            && !place.beside
        {
            last.to = Some(place.from);
        }
        if self.places.len() < self.most(MAX_PLACES) {
            self.places.push(place);
        } else {
            self.places_left_out += 1;
        }
    }

    /// Names the place that the stream is about.
    fn name_place(&mut self, name: Option<String>) {
        if let Some(place) =
            self.places.last_mut().filter(|place| place.to.is_none() && place.name.is_none())
        {
            place.name.clone_from(&name);
        }
        self.place_name = name;
    }
}
