//! Which URL has which capability. All connections of a capture share it: a viewer opens several,
//! and the region that it comes from tells it the capabilities of the next one.

use std::collections::HashMap;
use std::sync::Arc;

/// The most URLs that are remembered.
const MAX_URLS: usize = 16_384;
/// A longer URL or name is not remembered.
const MAX_LENGTH: usize = 512;

/// Capabilities by URL, without the scheme and the query.
#[derive(Debug, Default)]
pub(super) struct Capabilities(HashMap<Box<str>, Granted>);

/// What is known of a capability.
#[derive(Clone, Debug)]
pub(super) struct Granted {
    pub(super) name: Arc<str>,
    /// The ID of the session that it was granted to, if that was captured.
    pub(super) session: Option<Arc<str>>,
}

impl Capabilities {
    /// A capability was granted under a URL.
    pub(super) fn learn(&mut self, url: &str, name: &str, session: Option<&Arc<str>>) {
        let Some((_, rest)) = url.split_once("://") else { return };
        let place = without_query(rest);
        if place.len() > MAX_LENGTH || name.len() > MAX_LENGTH || !place.contains('/') {
            return;
        }
        if self.0.len() < MAX_URLS || self.0.contains_key(place) {
            let granted = Granted { name: name.into(), session: session.cloned() };
            self.0.insert(place.into(), granted);
        }
    }

    /// The capability that a request to `host` for `target` uses. Some have further parts of a path
    /// behind their URL.
    pub(super) fn find(&self, host: &str, target: &str) -> Option<&Granted> {
        let place = match target.split_once("://") {
            Some((_, absolute)) => without_query(absolute).to_string(),
            None => format!("{host}{}", without_query(target)),
        };
        let mut place = place.get(..MAX_LENGTH).unwrap_or(&place);
        loop {
            if let Some(granted) = self.0.get(place) {
                return Some(granted);
            }
            place = match place.strip_suffix('/') {
                Some(shorter) => shorter,
                None => place.get(..=place.rfind('/')?)?,
            };
            if !place.contains('/') {
                return None;
            }
        }
    }
}

fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capability_is_known_by_its_url_and_what_is_behind_it() {
        let mut known = Capabilities::default();
        known.learn("http://sim:9000/CAPS/EQG/1/", "EventQueueGet", None);
        known.learn("http://sim:9000/CAPS/t", "GetTexture", Some(&"session".into()));
        known.learn("no url", "Nothing", None);
        for (host, target, name) in [
            ("sim:9000", "/CAPS/EQG/1/", Some("EventQueueGet")),
            ("sim:9000", "/CAPS/t?texture_id=5", Some("GetTexture")),
            ("sim:9000", "/CAPS/t/category/5", Some("GetTexture")),
            ("sim:9000", "/CAPS/u", None),
            ("sim:9001", "/CAPS/t", None),
            ("proxy", "http://sim:9000/CAPS/t", Some("GetTexture")),
        ] {
            let found = known.find(host, target);
            assert_eq!(found.map(|found| &*found.name), name, "{host} {target}");
            let session = found.and_then(|found| found.session.as_deref());
            assert_eq!(session.is_some(), name == Some("GetTexture"));
        }
    }
}
