//! `moulsniff tables vectors`: the examples of the tables as test vectors.

use crate::cli::error::CliError;
use crate::digits::append_hex;
use crate::examples::with_length;
use crate::print::json::{self, JsonOptions, JsonWriter, one_line};
use crate::proto::{
    AllSettings, LazyTables, MessageEncoder, NamedService, OptionValues, decode_named,
};
use crate::record::MessageView;
use crate::table::{Example, ExampleOf, Json, Sender, Tables, parse_hex};

/// The examples of all tables: those of messages with their service and direction, those of
/// structures with their name as a type.
pub(super) fn vectors(all: &[LazyTables], json: bool, out: &mut String) -> Result<(), CliError> {
    let settings = AllSettings::new(&OptionValues::default(), &mut |_| {})?;
    let encoder = MessageEncoder::new(all, &settings, false);
    let mut packets = Packets { all, settings, encoder };
    for lazy in all {
        let tables = lazy.get();
        for example in tables.examples() {
            let text = tables.example_bytes(example);
            let bytes =
                if example.text { text.into_bytes() } else { parse_hex(&text).unwrap_or_default() };
            vector(&mut packets, tables, example, bytes, json, out);
        }
    }
    Ok(())
}

fn vector(
    packets: &mut Packets<'_>,
    tables: &Tables,
    example: &Example,
    bytes: Vec<u8>,
    json: bool,
    out: &mut String,
) {
    let protocol = tables.protocol();
    let fields = serde_json::from_str(tables.example_json(example)).unwrap_or_default();
    let mut fields = one_line(&fields);
    let (of, name, bytes) = match example.of {
        ExampleOf::Message(id) => {
            let Some(def) = tables.message(id) else { return };
            let Some(service) = tables.service(def.service) else { return };
            let direction = if def.direction == Sender::Server { "server" } else { "client" };
            let of = [protocol, &*service.name, direction].map(str::to_string).to_vec();
            let name = tables.name(def.name);
            let bytes = if service.positional {
                with_length(service, bytes)
            } else if service.header.is_empty() && service.framing.begins.is_none() {
                // The example is what a packet carries.
                match packets.around(&of.join("."), name, &fields, &bytes) {
                    Some((packet, its_fields)) => {
                        fields = its_fields;
                        packet
                    }
                    None => bytes,
                }
            } else {
                bytes
            };
            (of, name, bytes)
        }
        ExampleOf::Layout(id) => {
            let Some(layout) = tables.layout(id) else { return };
            (vec![protocol.to_string()], tables.name(layout.name), bytes)
        }
    };
    let mut hex = Vec::new();
    append_hex(&mut hex, &bytes);
    let hex = String::from_utf8_lossy(&hex);
    if !json {
        out.push_str(&format!("{}\t{name}\t{hex}\t{fields}\n", of.join(".")));
        return;
    }
    let kind = if of.len() > 1 { "message" } else { "type" };
    let keys = ["protocol", "service", "direction"];
    out.push('{');
    for (key, value) in
        keys.iter().zip(&of).map(|(key, value)| (*key, value.as_str())).chain([(kind, name)])
    {
        out.push_str(&format!("\"{key}\":{},", quoted(value)));
    }
    let known = tables.declared().map_or(&[][..], |protocol| &protocol.states);
    let states = example.states.iter().filter_map(|(place, value)| {
        known.get(*place as usize).map(|(state, _)| format!("{}:{value}", quoted(state)))
    });
    let mut states = states.collect::<Vec<_>>().join(",");
    if !states.is_empty() {
        states = format!(",\"states\":{{{states}}}");
    }
    out.push_str(&format!("\"hex\":\"{hex}\",\"fields\":{fields}{states}}}\n"));
}

fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    json::string(&mut out, text);
    String::from_utf8_lossy(&out).into_owned()
}

/// Writes packets around messages, and reads them.
struct Packets<'a> {
    all: &'a [LazyTables],
    settings: AllSettings,
    encoder: MessageEncoder,
}

impl Packets<'_> {
    /// The packet that carries a message, and all its fields. `None` if the message is no part of
    /// a packet.
    fn around(
        &mut self,
        of: &str,
        name: &str,
        fields: &str,
        message: &[u8],
    ) -> Option<(Vec<u8>, String)> {
        let of = NamedService::find(self.all, of).ok()?;
        let text = format!("{{\"message\":{},\"fields\":{fields}}}", quoted(name));
        let written = self.encoder.encode(self.all, &Json::parse(&text).ok()?, Some(of)).ok()??;
        let mut found = None;
        if written.bytes != message {
            let read =
                decode_named(of, &written.bytes, &self.settings, &mut |read, tables, tree| {
                    let mut out = Vec::new();
                    let view = MessageView { tables, tree, bytes: read.bytes };
                    JsonWriter::new(JsonOptions::default()).fields(view, &mut out);
                    found = String::from_utf8(out).ok();
                });
            read.ok()?;
        }
        Some((written.bytes, found?))
    }
}
