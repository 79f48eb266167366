//! A grid's own message template (`message_template.msg`, version 2.0) as table text.
//!
//! It knows the template's syntax and the table language's. The result is compiled like any other
//! table and replaces the embedded messages of the same number. A message that has the blocks and
//! fields of the embedded one, perhaps without Variable blocks at its end, is left out, so the
//! embedded one stays with all that is known of it.
//! In another message, a field keeps its structure from the embedded tables if it is still read
//! from the same bytes.

use std::fmt::Write;

use super::embedded::{FieldTypes, MessageShape};
use crate::table::{TableError, TableSource};

/// Whether a text is a message template: its first words behind comments are `version 2.0`.
pub fn is_template(text: &str) -> bool {
    let mut words =
        text.lines().flat_map(|line| line.split("//").next().unwrap_or("").split_whitespace());
    words.next() == Some("version") && words.next() == Some("2.0")
}

/// Turns a template into tables that replace the embedded messages of the same numbers.
pub fn to_source(name: &str, text: &str) -> Result<TableSource, TableError> {
    let mut reader = TemplateReader {
        name,
        text,
        words: words(text),
        at: 0,
        known: FieldTypes::embedded(),
        shape: MessageShape::default(),
        out: String::from("protocol secondlife\n"),
    };
    reader.file()?;
    Ok(TableSource { name: name.to_string(), text: reader.out.into() })
}

/// The template's words with their places, without comments.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut out = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let code = line.split("//").next().unwrap_or("");
        let mut rest = code;
        while let Some(first) = rest.find(|c: char| !c.is_whitespace()) {
            let (_, word) = rest.split_at(first);
            let len = match word.find(|c: char| c.is_whitespace() || c == '{' || c == '}') {
                Some(0) => 1,
                Some(n) => n,
                None => word.len(),
            };
            let (word, after) = word.split_at(len);
            out.push((start + code.len() - word.len() - after.len(), word));
            rest = after;
        }
        start += line.len();
    }
    out
}

struct TemplateReader<'a> {
    name: &'a str,
    text: &'a str,
    words: Vec<(usize, &'a str)>,
    at: usize,
    known: FieldTypes,
    /// The current message's blocks and fields.
    shape: MessageShape,
    out: String,
}

impl<'a> TemplateReader<'a> {
    fn file(&mut self) -> Result<(), TableError> {
        self.need("version")?;
        self.need("2.0")?;
        while self.at < self.words.len() {
            self.message()?;
        }
        Ok(())
    }

    fn message(&mut self) -> Result<(), TableError> {
        self.need("{")?;
        let name = self.identifier("the message's name")?;
        let frequency = self.word("High, Medium, Low or Fixed")?;
        let number = self.integer("the message's number")?;
        let range = match frequency {
            "High" if number < 0xff => "high",
            "Medium" if number < 0xff => "medium",
            "Low" if number < 0xff00 => "low",
            "Fixed" if number >= 0xffff_ff00 && number <= u64::from(u32::MAX) => "fixed",
            "High" | "Medium" | "Low" | "Fixed" => {
                return self.wrong(1, "a number that fits the frequency");
            }
            _ => return self.wrong(2, "High, Medium, Low or Fixed"),
        };
        while !matches!(self.peek(), Some("{" | "}") | None) {
            self.at += 1; // Trusted, Zerocoded, Deprecated …: nothing that changes how it is read
        }
        let before = self.out.len();
        self.shape.begin_new(range, number);
        let marks = self.known.marks(name);
        let _ = writeln!(self.out, "\nmessage circuit both {range} {number} {name}{marks} {{");
        while self.peek() == Some("{") {
            self.block(name)?;
        }
        self.need("}")?;
        self.out.push_str("}\n");
        if self.known.has(name, &self.shape) {
            self.out.truncate(before);
        }
        Ok(())
    }

    fn block(&mut self, message: &str) -> Result<(), TableError> {
        self.need("{")?;
        let name = self.identifier("the block's name")?;
        let repeat = match self.word("Single, Multiple or Variable")? {
            "Single" => String::new(),
            "Variable" => "[u8]".to_string(),
            "Multiple" => format!("[{}]", self.integer("how often the block is repeated")?),
            _ => return self.wrong(1, "Single, Multiple or Variable"),
        };
        let _ = writeln!(self.out, "    {name}: {{");
        self.shape.block(name, &repeat);
        while self.peek() == Some("{") {
            self.field(message, name)?;
        }
        self.need("}")?;
        let _ = writeln!(self.out, "    }}{repeat}");
        Ok(())
    }

    fn field(&mut self, message: &str, block: &str) -> Result<(), TableError> {
        self.need("{")?;
        let name = self.identifier("the field's name")?;
        let wire = match self.word("the field's type")? {
            "Variable" => match self.integer("1 or 2 bytes of length")? {
                1 => "bytes[u8]".to_string(),
                2 => "bytes[u16]".to_string(),
                4 => "bytes[u32]".to_string(),
                _ => return self.wrong(1, "1, 2 or 4 bytes of length"),
            },
            "Fixed" => format!("bytes[{}]", self.integer("how many bytes the field has")?),
            word => match scalar(word) {
                Some(ty) => ty.to_string(),
                None => return self.wrong(1, "a type of the template (U32, LLUUID, Variable 1 …)"),
            },
        };
        self.need("}")?;
        // With a session's ID, anyone can act as the agent.
        let secret = if name == "SessionID" { " secret" } else { "" };
        let known = self.known.field(message, block, name, &wire);
        self.shape.field(name, known.is_some());
        let _ = match known {
            Some(ty) => writeln!(self.out, "        {name}: {ty}"),
            None => writeln!(self.out, "        {name}: {wire}{secret}"),
        };
        Ok(())
    }

    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.at).map(|w| w.1)
    }

    fn word(&mut self, expected: &str) -> Result<&'a str, TableError> {
        match self.peek() {
            Some(word) if word != "{" && word != "}" => {
                self.at += 1;
                Ok(word)
            }
            _ => self.wrong(0, expected),
        }
    }

    fn identifier(&mut self, expected: &str) -> Result<&'a str, TableError> {
        let word = self.word(expected)?;
        let good = word.starts_with(|c: char| c.is_ascii_alphabetic())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if good { Ok(word) } else { self.wrong(1, expected) }
    }

    fn integer(&mut self, expected: &str) -> Result<u64, TableError> {
        let word = self.word(expected)?;
        let number = match word.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => word.parse(),
        };
        match number {
            Ok(n) => Ok(n),
            Err(_) => self.wrong(1, expected),
        }
    }

    fn need(&mut self, sign: &str) -> Result<(), TableError> {
        if self.peek() == Some(sign) {
            self.at += 1;
            return Ok(());
        }
        self.wrong(0, &format!("`{sign}`"))
    }

    /// An error about the word `back` words before the current one.
    fn wrong<T>(&self, back: usize, expected: &str) -> Result<T, TableError> {
        let place = self.words.get(self.at.saturating_sub(back));
        let (at, found) = match place {
            Some((at, word)) => (*at, format!("`{word}`")),
            None => (self.text.len(), "the end of the file".to_string()),
        };
        let message = format!("expected {expected}, found {found}");
        Err(TableError::at(self.name, self.text, at, message))
    }
}

/// The table language's word for a type of the template.
fn scalar(word: &str) -> Option<&'static str> {
    Some(match word {
        "U8" => "u8",
        "U16" => "u16",
        "U32" => "u32",
        "U64" => "u64",
        "S8" => "i8",
        "S16" => "i16",
        "S32" => "i32",
        "S64" => "i64",
        "F32" => "f32",
        "F64" => "f64",
        "BOOL" => "bool",
        "LLUUID" => "uuidbe",
        "IPADDR" => "ipv4be",
        "IPPORT" => "u16be",
        "LLVector3" => "LLVector3",
        "LLVector3d" => "LLVector3d",
        "LLVector4" => "LLVector4",
        "LLQuaternion" => "LLQuaternion",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::SecondLife;
    use super::*;
    use crate::proto::load_tables;

    const TEMPLATE: &str = "// a grid's own\nversion 2.0\n\
        {\n\tChatFromViewer Low 80 NotTrusted Zerocoded\n\
        \t{\n\t\tAgentData\t\t\tSingle\n\t\t{\tAgentID\tLLUUID\t}\n\t}\n\
        \t{\n\t\tChatData Single\n\t\t{ Message Variable 2 }\n\t\t{ Type U8 }\n\
        \t\t{ Channel S32 }\n\t}\n\
        { Extra Variable { Mood Variable 1 } } }\n\
        { OurOwn High 77 NotTrusted Unencoded { Things Multiple 2 { Port IPPORT } } }";

    #[test]
    fn a_template_is_told_by_its_first_words() {
        assert!(is_template(TEMPLATE));
        assert!(is_template("version 2.0"));
        assert!(!is_template("protocol secondlife\n// version 2.0"));
        assert!(!is_template(""));
    }

    #[test]
    fn its_messages_replace_ours_and_keep_what_we_know_of_their_fields() {
        let source = to_source("grid.msg", TEMPLATE).unwrap();
        assert!(source.text.contains("Message: utf8[u16] trimmed person text"));
        assert!(source.text.contains("Type: ChatType"));
        assert!(source.text.contains("Mood: bytes[u8]\n    }[u8]\n"));
        let tables = load_tables(&SecondLife, &[source]).unwrap();
        let circuit = tables.service(tables.service_named("circuit").unwrap());
        let chat = tables.message_id(circuit.unwrap(), 0, 0xffff_0050).unwrap();
        let layout = tables.message(chat).unwrap().layout.unwrap();
        assert_eq!(tables.message_named("ChatFromViewer"), Some(chat));
        assert!(tables.layout(layout).is_some());
        assert!(tables.message_id(circuit.unwrap(), 1, 77).is_some());
        assert!(tables.message_id(circuit.unwrap(), 1, 0x09).is_some());
    }

    #[test]
    fn messages_that_are_as_ours_are_left_out() {
        let message = |count, last| {
            format!(
                "version 2.0 {{ MoneyTransferRequest2 Low 9 Trusted Unencoded {{ A Single {{ B U8 \
                 }} }} }}
                {{ ObjectExtraParams Low 99 NotTrusted Zerocoded
                {{ AgentData Single {{ AgentID LLUUID }} {{ SessionID LLUUID }} }}
                {{ ObjectData {count} {{ ObjectLocalID U32 }} {{ ParamType U16 }} {{ ParamInUse \
                 BOOL }} {{ ParamSize U32 }} {{ ParamData {last} }} }} }}"
            )
        };
        let kept = |count, last| {
            let text = to_source("grid.msg", &message(count, last)).unwrap().text;
            assert!(text.contains("MoneyTransferRequest2"), "another name");
            text.contains("ObjectExtraParams")
        };
        assert!(!kept("Variable", "Variable 1"));
        let text = "version 2.0 { EstateOwnerMessage Low 260 NotTrusted Unencoded
            { AgentData Single { AgentID LLUUID } { SessionID LLUUID } { TransactionID LLUUID } }
            { MethodData Single { Method Variable 1 } { Invoice LLUUID } } { ParamList Variable { \
                    Parameter Variable 1 } } }";
        assert!(
            !to_source("grid.msg", text).unwrap().text.contains("EstateOwnerMessage"),
            "a field in a choice"
        );
        assert!(kept("Single", "Variable 1"), "another number of blocks");
        assert!(kept("Variable", "Variable 2"), "other bytes");
        assert!(kept("Variable", "Variable 1 } { More U8"), "another field");
    }

    #[test]
    fn a_message_that_lacks_the_last_variable_blocks_of_ours_is_left_out() {
        let block = |name, fields| format!("{{ {name} Variable {fields} }}");
        let data = block(
            "Data",
            "{ X U16 } { Y U16 } { Name Variable 1 } { Access U8 } { RegionFlags U32 } { \
             WaterHeight U8 } { Agents U8 } { MapImageID LLUUID }",
        );
        let agent = "{ AgentData Single { AgentID LLUUID } { Flags U32 } }";
        let kept = |blocks: &str| {
            let text =
                format!("version 2.0 {{ MapBlockReply Low 409 Trusted Unencoded {blocks} }}");
            to_source("grid.msg", &text).unwrap().text.contains("MapBlockReply")
        };
        let size = block("Size", "{ SizeX U16 } { SizeY U16 }");
        assert!(!kept(&format!("{agent} {data} {size}")), "as ours");
        assert!(!kept(&format!("{agent} {data}")), "without sizes");
        assert!(
            kept(&format!("{agent} {data} {}", block("Size", "{ SizeX U16 }"))),
            "a field less"
        );
        assert!(
            kept(&format!("{agent} {data} {size} {}", block("More", "{ A U8 }"))),
            "a block more"
        );
        assert!(kept("{ AgentData Single { AgentID LLUUID } }"), "a part of a Single block");
    }

    #[test]
    fn fields_are_known_through_shared_structures() {
        let known = FieldTypes::embedded();
        let session = known.field("ChatFromViewer", "AgentData", "SessionID", "uuidbe").unwrap();
        assert!(session.contains("secret"), "extended");
        assert_eq!(
            known.field("RezScript", "InventoryBlock", "Type", "i8"),
            Some("AssetType(i8)"),
            "a block's type"
        );
        assert_eq!(
            known.field("FetchInventoryReply", "InventoryData", "CRC", "u32"),
            Some("u32 shown hex secret"),
            "of a list"
        );
        assert_eq!(known.field("RezScript", "InventoryBlock", "Type", "u32"), None, "other bytes");
        assert_eq!(known.marks("GroupAccountSummaryReply"), " answers GroupAccountSummaryRequest");
        assert_eq!(
            known.marks("LogoutRequest"),
            " usually client step",
            "the structure that it extends is left out"
        );
    }

    #[test]
    fn a_mistake_is_placed() {
        for (text, expected) in [
            ("version 2.0 { A Low 1 { B Single { C U33 } } }", "a type of the template"),
            ("version 2.0 { A Often 1 }", "High, Medium, Low or Fixed"),
            ("version 2.0 { A High 300 }", "fits the frequency"),
            ("version 2.0 { A Low 1", "`}`"),
        ] {
            let error = to_source("x.msg", text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
