//! The place that each stream is about: its number and its name may come in different messages of
//! the stream, in any order.

use crate::facts::TransportStream;
use crate::maps::BoundedMap;
use crate::table::{PlaceRole, TypeDef};
use crate::tree::Sym;

/// Something that can have a name: the protocol's tables, the kind of thing, its number.
pub(super) type Nameable = (usize, Sym, u128);

/// How many streams are remembered; beyond that the oldest are forgotten.
const MAX_STREAMS: usize = 4096;

/// What is known of a stream's place.
#[derive(Default)]
struct StreamPlace {
    number: Option<Nameable>,
    /// With the record that gave it.
    name: Option<(String, u64)>,
}

/// The places of all streams.
pub(super) struct StreamPlaces(BoundedMap<TransportStream, StreamPlace>);

impl Default for StreamPlaces {
    fn default() -> Self {
        StreamPlaces(BoundedMap::new(MAX_STREAMS))
    }
}

impl StreamPlaces {
    /// The client enters a place on a stream. Returns the place's name and its record, if the
    /// stream gave one.
    pub(super) fn enter(
        &mut self,
        stream: TransportStream,
        number: Nameable,
    ) -> Option<(&str, u64)> {
        let place = self.place_of(stream)?;
        place.number = Some(number);
        place.name.as_ref().map(|(name, record)| (name.as_str(), *record))
    }

    /// A stream names its place. Returns the place's number, if the stream gave one.
    pub(super) fn name(
        &mut self,
        stream: TransportStream,
        name: &str,
        record: u64,
    ) -> Option<Nameable> {
        let place = self.place_of(stream)?;
        place.name = Some((name.to_string(), record));
        place.number
    }

    fn place_of(&mut self, stream: TransportStream) -> Option<&mut StreamPlace> {
        if self.0.get(&stream).is_none() {
            self.0.insert(stream, StreamPlace::default());
        }
        self.0.get_mut(&stream)
    }
}

/// The role of a type in naming places.
pub(super) fn role_of_place(def: &TypeDef) -> Option<PlaceRole> {
    def.facts.as_ref()?.place
}

/// Whether values of a type are numbers of places that a client enters.
pub(super) fn is_entered(def: &TypeDef) -> bool {
    role_of_place(def).is_some_and(|role| role != PlaceRole::Named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Transport;

    #[test]
    fn number_and_name_meet_in_either_order_and_old_streams_are_forgotten() {
        let mut places = StreamPlaces::default();
        let one = (Transport::Udp, 1);
        let other = (Transport::Udp, 2);
        let number = (0, Sym(3), 77);
        assert_eq!(places.enter(one, number), None);
        assert_eq!(places.name(one, "LabOne", 5), Some(number));
        assert_eq!(places.name(other, "LabTwo", 6), None);
        assert_eq!(places.enter(other, number), Some(("LabTwo", 6)));
        for stream in 0..2 * MAX_STREAMS as u32 {
            let _ = places.name((Transport::Tcp, stream), "x", 7);
        }
        assert_eq!(places.0.len(), MAX_STREAMS);
        assert_eq!(places.enter(one, number), None);
    }
}
