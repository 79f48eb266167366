//! Values that sessions collect: the identities of a client, and the places where it was.

use crate::capture::Moment;

/// An identity that a client stated: an account, a player, an agent or a mud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// What kind of thing it is: `account`, `player`, `agent`, `mud`.
    pub kind: String,
    /// Its number or UUID.
    pub id: Option<IdentityValue>,
    /// Its name, from the message or from earlier records that give the number a name.
    pub name: Option<String>,
    /// The record that stated it.
    pub record: u64,
}

/// A number or a UUID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentityValue {
    /// A number.
    Number(u64),
    /// A UUID's text.
    Text(String),
}

impl std::fmt::Display for IdentityValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            IdentityValue::Number(number) => write!(f, "{number}"),
            IdentityValue::Text(text) => f.write_str(text),
        }
    }
}

impl Identity {
    /// Whether another identity may be the same: no value that both have differs.
    pub(super) fn is(&self, other: &Identity) -> bool {
        fn agree<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
            one.is_none() || other.is_none() || one == other
        }
        self.kind == other.kind && agree(&self.id, &other.id) && agree(&self.name, &other.name)
    }

    /// The key by which streams of the same client are found: its number, or else its name.
    pub(super) fn values(&self) -> Vec<String> {
        let id = self.id.iter().map(|id| format!("id {id}"));
        id.chain(self.name.iter().filter(|_| self.id.is_none()).map(|name| format!("name {name}")))
            .collect()
    }
}

/// A place where the client was: an age, a region, a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its name, where one is known.
    pub name: Option<String>,
    /// Its number or UUID.
    pub id: Option<IdentityValue>,
    /// When the client entered it. If the client asked to enter, the time of the reply.
    pub from: Moment,
    /// When the client left it, or its stream ended.
    pub to: Option<Moment>,
    /// The record that says so.
    pub record: u64,
    /// The client asked to enter, and was not answered yet.
    pub(super) pending: bool,
    /// The client may be in other places at the same time.
    pub(super) beside: bool,
}

impl Place {
    /// Whether this is the same place as another.
    pub(super) fn is(&self, other: &Place) -> bool {
        self.id == other.id && self.name == other.name
    }
}

/// Adds an identity that a client stated, as the latest one. A repeated identity is kept once. Two
/// names of one number are two identities.
pub(super) fn add_identity(known: &mut Vec<Identity>, identity: Identity) {
    let Some(place) = known.iter().position(|have| have.is(&identity)) else {
        return known.push(identity);
    };
    let have = known.remove(place);
    let id = have.id.or(identity.id);
    let name = identity.name.or(have.name);
    known.push(Identity { id, name, ..identity });
}
