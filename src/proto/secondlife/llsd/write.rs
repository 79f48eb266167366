//! Writes JSON as LLSD, in XML, in the binary encoding and as notation, and as a value of XML-RPC.
//! The inverse of the readers beside it.
//!
//! JSON does not tell all kinds of values apart: a text that is a UUID becomes one, and dates, URIs
//! and bytes become strings. It knows no messages.

use crate::digits::parse_uuid;
use crate::table::{EncodeStop, Encoding, Field, Given, JsonKind, Slot};
use crate::tree::TextKind;

/// The deepest nesting that is written.
const MAX_DEPTH: usize = 96;

/// How values are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::proto::secondlife) enum LlsdForm {
    Xml,
    Binary,
    Notation,
    XmlRpc,
}

/// A value without its parts.
enum Scalar<'a> {
    Undefined,
    Boolean(bool),
    Integer(i32),
    Real(f64),
    /// As it is written, and its bytes.
    Uuid(&'a str, [u8; 16]),
    String(&'a str),
}

/// Writes one form into bytes.
pub(in crate::proto::secondlife) struct LlsdWriter<'e, 'a> {
    pub(in crate::proto::secondlife) encoding: &'e mut Encoding<'a>,
    pub(in crate::proto::secondlife) form: LlsdForm,
    /// Whether a line at the beginning says the form.
    pub(in crate::proto::secondlife) named: bool,
    pub(in crate::proto::secondlife) out: Vec<u8>,
}

/// How a field may be encoded, and whether that is named. A message says nothing of it: other forms
/// than the first are tried if the message had another length.
const FORMS: [(LlsdForm, bool); 6] = [
    (LlsdForm::Xml, false),
    (LlsdForm::Notation, false),
    (LlsdForm::Binary, false),
    (LlsdForm::Binary, true),
    (LlsdForm::Xml, true),
    (LlsdForm::Notation, true),
];

/// Writes a field in LLSD, or the bytes or the text that stand in its place.
pub(super) fn write_llsd(encoding: &mut Encoding<'_>, field: &Field) -> Result<Slot, EncodeStop> {
    let Given::Json(node) = field.given else { return encoding.fail_at(field, "is missing") };
    let (json, habits) = (encoding.json, encoding.state.habits);
    (encoding.state.asked.encodings, encoding.state.asked.zeros) = (true, true);
    let is_text = json.kind(node) == JsonKind::Text;
    let text = json.text(node);
    if is_text && encoding.is_said(node, super::AS_BYTES) {
        let bytes = encoding.hex(node)?;
        encoding.take(node);
        encoding.out().put(&bytes);
        return Ok(Slot::Number(0));
    }
    let may_be_text = encoding.arg(field, 0) != 0 || text.is_empty();
    let is_plain = habits.encoding == 0 && may_be_text || encoding.is_said(node, super::AS_TEXT);
    if is_text && is_plain {
        let [empty, other] = habits.zeros;
        let zeros = if text.is_empty() { empty } else { other };
        let bytes = encoding.text_bytes(field, &[TextKind::Utf8])?;
        encoding.out().put(&bytes);
        encoding.out().put_zeros(zeros);
        return Ok(Slot::Number(0));
    }
    if json.get(node, "undecoded").is_some() {
        return encoding.fail(node, "cannot be encoded: damaged LLSD, other than from spans");
    }
    let (form, named) = FORMS.get(habits.encoding).copied().unwrap_or(FORMS[0]);
    let mut writer = LlsdWriter { encoding, form, named, out: Vec::new() };
    writer.document(node)?;
    let document = writer.out;
    encoding.out().put(&document);
    Ok(Slot::Number(0))
}

impl LlsdWriter<'_, '_> {
    /// Writes a value with all that it contains, as a whole document.
    pub(in crate::proto::secondlife) fn document(&mut self, node: u32) -> Result<(), EncodeStop> {
        let (name, before, behind) = match self.form {
            LlsdForm::Xml => ("<? LLSD/XML ?>\n", "<llsd>", "</llsd>"),
            LlsdForm::Binary => ("<? LLSD/Binary ?>\n", "", ""),
            LlsdForm::Notation => ("<? llsd/notation ?>\n", "", ""),
            LlsdForm::XmlRpc => ("", "<params><param>", "</param></params>"),
        };
        if self.named {
            self.text(name);
        }
        self.text(before);
        self.value(node, 0)?;
        self.text(behind);
        Ok(())
    }

    fn text(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn value(&mut self, node: u32, depth: usize) -> Result<(), EncodeStop> {
        let json = self.encoding.json;
        if depth > MAX_DEPTH {
            return self.encoding.fail(node, format!("nested more than {MAX_DEPTH} deep"));
        }
        if matches!(json.kind(node), JsonKind::Object | JsonKind::List) {
            self.encoding.enter(node);
            return self.container(node, depth);
        }
        self.encoding.take(node);
        let scalar = match json.kind(node) {
            JsonKind::True => Scalar::Boolean(true),
            JsonKind::False => Scalar::Boolean(false),
            JsonKind::Number => {
                let text = json.text(node);
                match (text.parse::<i32>(), text.parse::<u32>(), text.parse::<f64>()) {
                    (Ok(number), ..) => Scalar::Integer(number),
                    // An unsigned number of 32 bits is written as a signed one.
                    (_, Ok(number), _) => Scalar::Integer(number as i32),
                    (.., Ok(number)) => Scalar::Real(number),
                    _ => return self.encoding.fail(node, "is no number of LLSD"),
                }
            }
            JsonKind::Text => {
                let text = json.text(node);
                parse_uuid(text).map_or(Scalar::String(text), |bytes| Scalar::Uuid(text, bytes))
            }
            _ => Scalar::Undefined,
        };
        match self.form {
            LlsdForm::Xml => self.xml(&scalar),
            LlsdForm::Binary => self.binary(&scalar),
            LlsdForm::Notation => self.notation(&scalar),
            LlsdForm::XmlRpc => self.xml_rpc(&scalar),
        }
        Ok(())
    }

    fn container(&mut self, node: u32, depth: usize) -> Result<(), EncodeStop> {
        let json = self.encoding.json;
        let is_map = json.kind(node) == JsonKind::Object;
        let count = json.children(node).count() as u32;
        let (open, close) = match (self.form, is_map) {
            (LlsdForm::Xml, true) => ("<map>", "</map>"),
            (LlsdForm::Xml, false) => ("<array>", "</array>"),
            (LlsdForm::XmlRpc, true) => ("<value><struct>", "</struct></value>"),
            (LlsdForm::XmlRpc, false) => ("<value><array><data>", "</data></array></value>"),
            (LlsdForm::Binary | LlsdForm::Notation, true) => ("{", "}"),
            (LlsdForm::Binary | LlsdForm::Notation, false) => ("[", "]"),
        };
        self.text(open);
        if self.form == LlsdForm::Binary {
            self.out.extend(count.to_be_bytes());
        }
        for (place, child) in json.children(node).enumerate() {
            let key = json.key(child);
            if self.form == LlsdForm::Notation && place > 0 {
                self.out.push(b',');
            }
            if is_map {
                self.key(key);
            }
            self.value(child, depth + 1)?;
            if is_map && self.form == LlsdForm::XmlRpc {
                self.text("</member>");
            }
        }
        self.text(close);
        Ok(())
    }

    fn key(&mut self, key: &str) {
        match self.form {
            LlsdForm::Xml => self.element("key", key),
            LlsdForm::XmlRpc => {
                self.text("<member>");
                self.element("name", key);
            }
            LlsdForm::Binary => self.counted(b'k', key),
            LlsdForm::Notation => {
                self.quoted(key);
                self.out.push(b':');
            }
        }
    }

    fn xml(&mut self, scalar: &Scalar<'_>) {
        match scalar {
            Scalar::Undefined => self.text("<undef/>"),
            Scalar::Boolean(value) => self.element("boolean", if *value { "1" } else { "0" }),
            Scalar::Integer(number) => self.element("integer", &number.to_string()),
            Scalar::Real(number) => self.element("real", &number.to_string()),
            Scalar::Uuid(text, _) => self.element("uuid", text),
            Scalar::String(text) => self.element("string", text),
        }
    }

    fn xml_rpc(&mut self, scalar: &Scalar<'_>) {
        self.text("<value>");
        match scalar {
            Scalar::Undefined => self.text("<nil/>"),
            Scalar::Boolean(value) => self.element("boolean", if *value { "1" } else { "0" }),
            Scalar::Integer(number) => self.element("i4", &number.to_string()),
            Scalar::Real(number) => self.element("double", &number.to_string()),
            Scalar::Uuid(text, _) | Scalar::String(text) => self.element("string", text),
        }
        self.text("</value>");
    }

    fn binary(&mut self, scalar: &Scalar<'_>) {
        match scalar {
            Scalar::Undefined => self.out.push(b'!'),
            Scalar::Boolean(value) => self.out.push(if *value { b'1' } else { b'0' }),
            Scalar::Integer(number) => {
                self.out.push(b'i');
                self.out.extend(number.to_be_bytes());
            }
            Scalar::Real(number) => {
                self.out.push(b'r');
                self.out.extend(number.to_be_bytes());
            }
            Scalar::Uuid(_, bytes) => {
                self.out.push(b'u');
                self.out.extend(bytes);
            }
            Scalar::String(text) => self.counted(b's', text),
        }
    }

    fn notation(&mut self, scalar: &Scalar<'_>) {
        match scalar {
            Scalar::Undefined => self.out.push(b'!'),
            Scalar::Boolean(value) => self.text(if *value { "true" } else { "false" }),
            Scalar::Integer(number) => self.text(&format!("i{number}")),
            Scalar::Real(number) => self.text(&format!("r{number}")),
            Scalar::Uuid(text, _) => self.text(&format!("u{text}")),
            Scalar::String(text) => self.quoted(text),
        }
    }

    /// A text behind its letter and its length.
    fn counted(&mut self, letter: u8, text: &str) {
        self.out.push(letter);
        self.out.extend((text.len() as u32).to_be_bytes());
        self.text(text);
    }

    /// A text between quotes.
    fn quoted(&mut self, text: &str) {
        self.out.push(b'\'');
        for byte in text.bytes() {
            match byte {
                b'\'' | b'\\' => self.out.extend([b'\\', byte]),
                b'\n' => self.text("\\n"),
                _ => self.out.push(byte),
            }
        }
        self.out.push(b'\'');
    }

    fn element(&mut self, name: &str, text: &str) {
        self.text(&format!("<{name}>"));
        for byte in text.bytes() {
            match byte {
                b'&' => self.text("&amp;"),
                b'<' => self.text("&lt;"),
                b'>' => self.text("&gt;"),
                b'\r' => self.text("&#13;"),
                _ => self.out.push(byte),
            }
        }
        self.text(&format!("</{name}>"));
    }
}
