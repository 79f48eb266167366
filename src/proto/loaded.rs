//! The tables of a run: those of all protocols, with the user's on top. It reads no file.

use super::{LazyTables, PROTOCOLS, Protocol, protocol_named};
use crate::table::{ListedDeclaration, TableError, TableSource, Tables};

/// The protocols' own tables as `build.rs` compiled and packed them, each with its protocol's name.
static PACKED: &[(&str, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/packed_tables.rs"));

/// A protocol's tables, with further sources on top. Without further sources nothing has to be
/// compiled.
///
/// # Errors
/// The first mistake in a text.
pub fn load_tables(protocol: &dyn Protocol, further: &[TableSource]) -> Result<Tables, TableError> {
    let name = protocol.name();
    let natives = protocol.natives();
    let meanings = protocol.meanings();
    let packed = PACKED.iter().find(|(of, _)| *of == name && further.is_empty());
    let unpacked = packed.and_then(|packed| {
        Tables::of_packed(name, protocol.sources(), natives, meanings, packed.1)
    });
    if let Some(tables) = unpacked {
        return Ok(tables);
    }
    let sources = protocol.sources().into_iter().chain(further.iter().cloned());
    let tables = Tables::load_with(name, sources.collect(), natives, meanings)?;
    check_services(protocol, &tables)?;
    Ok(tables)
}

/// Makes sure that the protocol's code can find the services that later files add.
fn check_services(protocol: &dyn Protocol, tables: &Tables) -> Result<(), TableError> {
    let own = protocol.sources().len();
    for added in
        tables.declarations().iter().rev().filter(|d| d.kind == "service" && d.file as usize >= own)
    {
        let known = |d: &ListedDeclaration| {
            d.kind == "service" && d.name == added.name && (d.file as usize) < own
        };
        let known = tables.declarations().iter().any(known);
        let by_port = tables
            .service_named(&added.name)
            .and_then(|id| tables.service(id))
            .map(|s| !s.ports.is_empty());
        let name = &added.name;
        let message = match (by_port == Some(true), protocol.services_by_port()) {
            (true, false) => format!(
                "which service a connection of {} has does not depend on a port",
                protocol.name()
            ),
            (true, true) if known => {
                format!(
                    "`{name}` is the protocol's own service: the service of servers at a port has \
                     another name"
                )
            }
            (false, true) if !known => {
                format!(
                    "nothing has the service `{name}`: `service {name} when port N` says which \
                     servers have it"
                )
            }
            _ => continue,
        };
        let source = tables.sources().get(added.file as usize);
        let (name, text) = source.map_or(("", ""), |source| (source.name.as_str(), &*source.text));
        return Err(TableError::at(name, text, added.range.0, message));
    }
    Ok(())
}

/// The tables of all protocols with further sources on top, followed by the protocols that these
/// sources declare. A source may also be in a protocol's own table syntax.
///
/// # Errors
/// The first mistake in a text.
pub fn all_tables(texts: Vec<TableSource>) -> Result<Vec<LazyTables>, TableError> {
    let mut further: Vec<(String, TableSource)> = Vec::new();
    for text in texts {
        let foreign = PROTOCOLS.iter().find_map(|p| p.foreign_tables(&text.name, &text.text));
        let source = foreign.unwrap_or(Ok(text))?;
        further.push((Tables::protocol_of(&source)?, source));
    }
    let mut declared: Vec<&str> = Vec::new();
    for (protocol, source) in further.iter().filter(|(_, source)| Tables::declares_protocol(source))
    {
        if protocol_named(protocol).is_some() {
            let message = format!(
                "`{protocol}` is built in: a file of it begins with `protocol {protocol}` alone"
            );
            return Err(at_protocol(source, protocol, message));
        }
        if !declared.contains(&protocol.as_str()) {
            declared.push(protocol);
        }
    }
    let of = |name: &str| {
        further.iter().filter(|f| f.0 == name).map(|f| f.1.clone()).collect::<Vec<_>>()
    };
    let mut all = Vec::new();
    for protocol in PROTOCOLS {
        all.push(LazyTables::new(*protocol, of(protocol.name()))?);
    }
    for name in &declared {
        all.push(LazyTables::declared(name, of(name))?);
    }
    let known = |name: &str| LazyTables::of(&all, name).is_some();
    if let Some((protocol, source)) = further.iter().find(|(protocol, _)| !known(protocol)) {
        let names: Vec<&str> = all.iter().map(|lazy| lazy.protocol().name()).collect();
        let message = format!(
            "there is no protocol `{protocol}`; there are {}; `protocol {protocol} {{ … }}` \
             declares one",
            names.join(", ")
        );
        return Err(at_protocol(source, protocol, message));
    }
    Ok(all)
}

/// An error at the protocol's name in a file's first line.
fn at_protocol(source: &TableSource, protocol: &str, message: String) -> TableError {
    let at =
        source.text.find(&format!("protocol {protocol}")).map_or(0, |at| at + "protocol ".len());
    TableError::at(&source.name, &source.text, at, message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::table::ReadAs;
    use crate::tree::TypeRef;

    #[test]
    fn the_packed_tables_of_every_protocol_are_its_compiled_text() {
        for protocol in PROTOCOLS {
            let sources = protocol.sources();
            let (_, packed) = PACKED.iter().find(|(name, _)| *name == protocol.name()).unwrap();
            let made =
                Tables::pack(protocol.name(), &sources, protocol.natives(), protocol.meanings());
            assert!(made.unwrap() == *packed, "{}", protocol.name());
            let tables = Tables::of_packed(
                protocol.name(),
                sources,
                protocol.natives(),
                protocol.meanings(),
                packed,
            );
            assert!(tables.is_some(), "{}", protocol.name());
        }
    }

    #[test]
    fn what_is_unpacked_late_is_what_was_compiled() {
        for protocol in PROTOCOLS {
            let unpacked = load_tables(*protocol, &[]).unwrap();
            let name = protocol.name();
            let natives = protocol.natives();
            let compiled =
                Tables::load_with(name, protocol.sources(), natives, protocol.meanings()).unwrap();
            assert_eq!(unpacked.type_count(), compiled.type_count(), "{name}");
            assert!(types(&unpacked) == types(&compiled), "{name}");
            let lists = |tables: &Tables| {
                let enums: Vec<_> = tables.enums().collect();
                format!("{enums:?} {:?} {:?}", tables.examples(), tables.declarations())
            };
            assert!(lists(&unpacked) == lists(&compiled), "{name}");
        }
    }

    /// All types and their short forms as texts, but those with code, whose numbers differ.
    fn types(tables: &Tables) -> Vec<String> {
        let all = (0..tables.type_count())
            .map(|ty| (tables.type_def(TypeRef(ty)).unwrap(), tables.type_op(TypeRef(ty))));
        let plain = all.filter(|(def, _)| !matches!(def.read, ReadAs::Native { .. }));
        plain.map(|(def, op)| format!("{def:?} {op:?}")).collect()
    }
}
