//! The keys of a message that say more than its fields: whether a reply is promised, whether it
//! refuses, what it is about, and what earlier records call its numbers.
//!
//! It knows what tables mark and what was inferred; it infers nothing.

use super::JsonFormatter;
use super::strings::{escaped, quoted};
use super::value::value;
use crate::facts::{InfoSource, Refused, refused, write_info};
use crate::print::scratch::TextWriter;
use crate::print::view::PrintView;
use crate::record::Names;
use crate::session::Message;
use crate::table::MessageDef;
use crate::tree::{Kind, Node, TextKind, mark};

impl JsonFormatter {
    /// Appends `expects_reply`, `refused` and `info`, where a message has them.
    pub(super) fn before_fields(
        &mut self,
        message: &Message<'_>,
        def: Option<&MessageDef>,
        source: &InfoSource<'_>,
        view: &PrintView<'_>,
        names: Names<'_>,
        w: &mut TextWriter<'_>,
    ) {
        if let Some(def) = def {
            if message.expects_reply(def) {
                w.fixed(b",\"expects_reply\":true");
            }
            if let Some(refused) = refused(def, &view.message) {
                w.fixed(b",\"refused\":");
                self.refused(&refused, view, w);
            }
        }
        let text = &mut self.text;
        text.clear();
        write_info(*source, names, text);
        if !text.is_empty() {
            w.fixed(b",\"info\":");
            quoted(w, TextKind::Utf8, text.as_bytes());
        }
    }

    /// Appends the object of `refused`.
    pub(super) fn refused(
        &mut self,
        refused: &Refused<'_>,
        view: &PrintView<'_>,
        w: &mut TextWriter<'_>,
    ) {
        w.byte(b'{');
        if let Some(node) = view.message.tree.get(refused.node).filter(|_| refused.is_by_field()) {
            w.fixed(b"\"field\":\"fields.");
            self.path(view, refused.node, w);
            w.fixed(b"\",\"value\":");
            match refused.value {
                Some(found) => number(node, found, w),
                None => value(view, &mut self.state, refused.node, w),
            }
        }
        if let Some(name) = refused.name {
            w.fixed(b",\"name\":\"");
            escaped(w, name.as_bytes());
            w.byte(b'"');
        }
        w.byte(b'}');
    }

    /// Appends what earlier records call the message's numbers as an object that begins with
    /// `lead`; nothing where they call none of them anything.
    pub(super) fn name_object(
        &mut self,
        names: Names<'_>,
        view: &PrintView<'_>,
        lead: &[u8],
        w: &mut TextWriter<'_>,
    ) {
        let mut first = true;
        for (node, name, record) in names.iter() {
            if view.redact && view.message.tree.get(node).is_some_and(|node| node.has(mark::SECRET))
            {
                continue;
            }
            w.raw(if std::mem::take(&mut first) { lead } else { b",\"" });
            w.fixed(b"fields.");
            self.path(view, node, w);
            w.fixed(b"\":");
            called(name, record, w.vec());
        }
        if !first {
            w.byte(b'}');
        }
    }
}

/// Appends a number as `fields` have it: one of 64 bits in quotes.
fn number(node: &Node, value: u64, w: &mut TextWriter<'_>) {
    let long = matches!(node.kind, Kind::Unsigned64 | Kind::Signed64);
    if long {
        w.byte(b'"');
    }
    match node.kind {
        Kind::Signed | Kind::Signed64 => w.signed(value as i64),
        Kind::Bool if value < 2 => w.word(if value == 1 { "true" } else { "false" }),
        _ => w.number(value),
    }
    if long {
        w.byte(b'"');
    }
}

/// Appends a name with the record that gave it.
pub fn called(name: &str, record: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"name\":");
    super::string(out, name);
    out.extend_from_slice(b",\"record\":");
    super::number(out, record);
    out.push(b'}');
}
