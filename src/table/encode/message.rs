//! Writes messages: the header, with the message's number and length, then the layout.

use super::super::Tables;
use super::super::program::*;
use super::super::text::HeaderRole;
use super::{
    AskedHabits, EncodeError, Encoder, Encoding, Field, Frame, Given, Json, JsonKind, Slot, Stop,
    Used,
};
use crate::tree::{Sym, TypeRef};

/// A message or a structure as JSON.
#[derive(Clone, Copy, Debug)]
pub struct Written<'j> {
    /// The JSON.
    pub json: &'j Json<'j>,
    /// Its fields.
    pub fields: u32,
    /// Its problems, as a decoder found them.
    pub problems: Option<u32>,
    /// What the tables declare of it.
    pub message: Option<MessageId>,
}

/// How often a message is written at most: each time, the lengths within lengths are known one level
/// further out.
const MAX_PASSES: u32 = 16;

impl Encoder {
    /// Writes a message.
    ///
    /// # Errors
    /// The JSON is not what the message's layout says.
    pub fn message(
        &mut self,
        tables: &Tables,
        id: MessageId,
        of: Written<'_>,
    ) -> Result<Vec<u8>, EncodeError> {
        self.write(tables, of, |encoding| match of.json.kind(of.fields) {
            JsonKind::List => encoding.spans(of.fields),
            _ => encoding.message(id, of.fields),
        })
    }

    /// Writes a value of a type, from an object of fields or a value of its own.
    ///
    /// # Errors
    /// The JSON is not what the type says.
    pub fn value(
        &mut self,
        tables: &Tables,
        ty: TypeRef,
        of: Written<'_>,
    ) -> Result<Vec<u8>, EncodeError> {
        let is_structure =
            matches!(tables.type_def(ty).map(|def| &def.read), Some(ReadAs::Layout { .. }));
        self.write(tables, of, |encoding| match of.json.kind(of.fields) {
            JsonKind::List if is_structure => encoding.spans(of.fields),
            _ => encoding.alone(ty, of.fields),
        })
    }

    /// Writes what a protocol's own code makes of the fields.
    ///
    /// # Errors
    /// The JSON is not what the code expects.
    pub fn write(
        &mut self,
        tables: &Tables,
        of: Written<'_>,
        write: impl Fn(&mut Encoding<'_>) -> Result<(), Stop>,
    ) -> Result<Vec<u8>, EncodeError> {
        let states = self.states.clone();
        let mut found = Vec::new();
        for _ in 0..MAX_PASSES {
            self.asked = AskedHabits::default();
            self.states.clone_from(&states);
            let mut encoding = Encoding::new(tables, of.json, self);
            encoding.found = found;
            if let Some(problems) = of.problems {
                encoding.read_notes(of.fields, problems);
            }
            match write(&mut encoding).and_then(|()| encoding.all_used(of.fields)) {
                Ok(()) | Err(Stop::Undecoded) => match encoding.found_others() {
                    Some(others) => found = others,
                    None => return Ok(encoding.out.into_bytes()),
                },
                Err(Stop::Failed(failure)) => return Err(encoding.error(&failure)),
            }
        }
        let text = "cannot be encoded: its lengths depend on each other".to_string();
        Err(EncodeError { path: of.json.path(Json::ROOT, of.fields), text })
    }
}

impl Encoding<'_> {
    /// The keys of an object belong to several layouts.
    pub fn share(&mut self, object: u32) {
        self.shared = Some(object);
    }

    /// From here on, bytes that no field claims are those of this object.
    pub fn open_region(&mut self, object: u32) {
        self.regions.push(object);
    }

    /// Ends what [`open_region`](Self::open_region) began.
    pub fn close_region(&mut self) {
        self.regions.pop();
    }

    /// At the end of a message: computes what was not computed before.
    pub fn resolve_all(&mut self) -> Result<(), Stop> {
        let end = self.pos();
        self.state.asked.ends_empty = self.empty_end == Some(end);
        self.resolve(0, 0, Some(end))?;
        self.resolve_sums()
    }

    /// Writes a structure or another value that is all there is.
    fn alone(&mut self, ty: TypeRef, node: u32) -> Result<(), Stop> {
        let field = Field {
            name: Sym::ELEMENT,
            ty,
            span: false,
            object: node,
            frame: Frame::default(),
            given: Given::Json(node),
        };
        self.bounded(&field, &[ty], true, node)?;
        self.resolve_sums()
    }

    fn message(&mut self, id: MessageId, fields: u32) -> Result<(), Stop> {
        let tables = self.tables;
        let Some((def, service)) =
            tables.message(id).and_then(|def| Some((def, tables.service(def.service)?)))
        else {
            return self.fail(fields, "cannot be encoded: there is no such message");
        };
        if self.json.kind(fields) != JsonKind::Object {
            return self.fail(fields, "is no object of fields");
        }
        self.enter(fields);
        self.number = def.number;
        self.certain = (0, service.framing.resync.clone().unwrap_or_default());
        if let Some(((name, any_case), word)) = service.framing.word.zip(def.word.as_deref()) {
            (self.word, self.any_case) = (Some((name, word)), any_case);
        }
        let mut lengths = Vec::new();
        for (role, name, ty) in &service.header {
            let given = self.lookup_sym(fields, *name).map_or(Given::Nothing, Given::Json);
            let field = Field {
                name: *name,
                ty: *ty,
                span: true,
                object: fields,
                frame: Frame::default(),
                given,
            };
            match (role, given) {
                (HeaderRole::Number, Given::Nothing) => {
                    self.put_number(&field, i128::from(def.number.unwrap_or(0)))?;
                }
                (HeaderRole::LengthWhole | HeaderRole::LengthAfter, Given::Nothing) => {
                    let at = self.pos();
                    self.put_number(&field, 0)?;
                    lengths.push((*role, field, at, self.pos() / 8));
                }
                (_, Given::Nothing) => self.put_number(&field, 0)?,
                _ => {
                    let number = self.number(&field)?;
                    self.put_number(&field, number)?;
                }
            }
        }
        if let Some(layout) = def.layout.and_then(|layout| tables.layout(layout)) {
            self.regions.push(fields);
            match self.layout(layout, &[] as &[Slot], fields) {
                Ok(()) | Err(Stop::Undecoded) => {}
                Err(failed) => return Err(failed),
            }
        }
        self.undecoded(fields)?;
        self.open_end(true);
        self.out().align();
        let end = self.pos();
        self.require_length()?;
        self.resolve(0, 0, Some(end))?;
        for (role, field, at, behind) in lengths {
            let all = end / 8;
            let length = if role == HeaderRole::LengthWhole { all } else { all - behind };
            let bytes = self.integer_bytes(&field, length as i128)?;
            self.out().replace(at, &bytes);
        }
        self.resolve_sums()
    }

    /// Every value of the JSON must have been written.
    fn all_used(&mut self, fields: u32) -> Result<(), Stop> {
        let mut node = fields;
        while node < self.json.end(fields) {
            match self.used.get(node as usize) {
                Some(Used::Whole) => node = self.json.end(node),
                Some(Used::Entered) => node += 1,
                _ => {
                    let name = self.json.key(node).to_string();
                    return self.fail(node, format!("no field `{name}` is expected here"));
                }
            }
        }
        Ok(())
    }
}
