//! What sessions tell in values of their own: who a client is, where it was, and the lines of its story.

use super::session_stream::TransportStream;
use crate::capture::Moment;

/// What a client said of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// What kind of thing it is: `account`, `player`, `agent`, `mud`.
    pub kind: String,
    /// Its number or UUID.
    pub id: Option<IdentityValue>,
    /// Its name, where it was said or where earlier records call the number so.
    pub name: Option<String>,
    /// The record that said so.
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
    /// What other streams may say of the same client: its number, or where it has none its name.
    pub(super) fn values(&self) -> Vec<String> {
        let id = self.id.iter().map(|id| format!("id {id}"));
        id.chain(self.name.iter().filter(|_| self.id.is_none()).map(|name| format!("name {name}"))).collect()
    }
}

/// A place where the client was: an age, a region, a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its name, where one is known.
    pub name: Option<String>,
    /// Its number or UUID.
    pub id: Option<IdentityValue>,
    /// When the client entered it: the reply where entering is asked for.
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

/// One line of what a person would tell of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoryLine {
    /// The record.
    pub record: u64,
    /// Its frame.
    pub at: Moment,
    /// The stream.
    pub stream: TransportStream,
    /// The message's name.
    pub message: String,
    /// What the message is about.
    pub text: String,
    /// What became of the request, where it is one.
    pub outcome: StoryOutcome,
}

/// What became of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoryOutcome {
    /// It asks for nothing, or its reply is still to come.
    None,
    /// It was answered after this many nanoseconds.
    Answered(i64),
    /// It was refused, by this name or number, after this many nanoseconds.
    Refused(String, i64),
    /// It was never answered, within this many nanoseconds.
    Unanswered(i64),
}

/// Adds what a client said of itself to what is known; the same thing said twice is kept once.
pub(super) fn add_identity(known: &mut Vec<Identity>, identity: Identity) {
    let same = |have: &&mut Identity| {
        have.kind == identity.kind
            && (have.id == identity.id || have.id.is_none() || identity.id.is_none())
            && (have.name == identity.name
                || have.name.is_none()
                || identity.name.is_none()
                || have.id == identity.id && have.id.is_some())
    };
    match known.iter_mut().find(same) {
        Some(have) => {
            have.id = have.id.take().or(identity.id);
            have.name = identity.name.or(have.name.take());
        }
        None => known.push(identity),
    }
}
