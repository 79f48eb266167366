//! How long the network takes to the ends of a stream, as members of an object.

use super::JsonObject;
use crate::record::RoundTrips;

/// Adds `round_trip_ms` where the capture shows something of it: from the place of the capture to
/// the client and to the server, there and back, and what measured it.
pub fn json_round_trips(trips: &RoundTrips, o: &mut JsonObject<'_>) {
    let known = [("client", trips.client), ("server", trips.server)];
    if known.iter().all(|(_, trip)| trip.is_none()) {
        return;
    }
    o.object("round_trip_ms", |o| {
        for (end, trip) in known.into_iter().filter_map(|(end, trip)| Some((end, trip?))) {
            o.milliseconds(end, trip.nanos);
            if !trip.opening {
                o.text(&format!("{end}_measured_by"), "acks");
            }
        }
    });
}
