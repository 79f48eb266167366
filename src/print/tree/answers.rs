//! The parts of a message's text that are not fields: that it expects a reply, that it refuses a
//! request, and its summary.

use super::super::paint::Paint;
use super::super::scratch::TextWriter;
use crate::captured::Captured;
use crate::facts::{InfoSource, refused, write_info};
use crate::record::Names;
use crate::session::Message;
use crate::table::MessageDef;

/// Appends ` [expects a reply]` and ` [REFUSED: kNetErrAgeNotFound]`, the end of the message's
/// first line, and below it what the message is about, where its table says so. `text` is used for
/// that.
pub(super) fn answers(
    message: &Message<'_>,
    def: Option<&MessageDef>,
    source: InfoSource<'_>,
    names: Names<'_>,
    paint: &Paint,
    text: &mut String,
    w: &mut TextWriter<'_>,
) {
    let Some(def) = def else { return w.byte(b'\n') };
    if message.expects_reply(def) {
        w.fixed(b"   [expects a reply]");
    }
    let mut line = &paint.meaning;
    if let Some(refused) = refused(def, &source.view) {
        line = &paint.bad;
        w.fixed(b"   ");
        w.raw(paint.bad.on.as_bytes());
        w.fixed(b"[REFUSED");
        if refused.is_by_field() {
            w.fixed(b": ");
            w.captured(Captured::new(&refused.reason(message.name.raw(), &source.view)));
        }
        w.fixed(b"]");
        w.raw(paint.bad.off.as_bytes());
    }
    w.byte(b'\n');
    let own_line = def
        .layout
        .and_then(|layout| source.view.tables.layout(layout))
        .is_some_and(|layout| layout.info.is_some());
    if !own_line {
        return;
    }
    text.clear();
    write_info(source, names, text);
    if !text.is_empty() {
        w.fixed(b"  ");
        w.raw(line.on.as_bytes());
        w.captured(Captured::new(text));
        w.raw(line.off.as_bytes());
        w.byte(b'\n');
    }
}
