//! The program's own lists, and what has a name in tables: which fields are packed, and in which
//! order.

use super::super::program::*;
use super::super::text::{Condition, Expectation, HeaderRole, RuleSide, Sender, ServiceFrame};
use super::{Packed, ProgramPacker, ProgramUnpacker, packed_enums, packed_numbers, packed_structs};

packed_numbers! { LayoutId EnumId FamilyId InfoId ExprId MessageId ServiceId }

impl Packed for Program {
    fn pack(&self, out: &mut ProgramPacker) {
        let Program {
            names,
            exprs,
            families,
            services,
            messages,
            ranges,
            replaced,
            dialects,
            delimiters,
            words,
            protocol,
            types_by_name,
            messages_by_name,
            messages_by_sym,
            builtins,
            // The others are packed as lists of their own.
            ..
        } = self;
        names.pack(out);
        exprs.pack(out);
        families.pack(out);
        services.pack(out);
        messages.pack(out);
        ranges.pack(out);
        replaced.pack(out);
        dialects.pack(out);
        delimiters.pack(out);
        words.pack(out);
        protocol.pack(out);
        types_by_name.pack(out);
        messages_by_name.pack(out);
        messages_by_sym.pack(out);
        builtins.pack(out);
    }

    fn unpack(from: &mut ProgramUnpacker) -> Option<Self> {
        Some(Program {
            names: Packed::unpack(from)?,
            exprs: Packed::unpack(from)?,
            families: Packed::unpack(from)?,
            services: Packed::unpack(from)?,
            messages: Packed::unpack(from)?,
            ranges: Packed::unpack(from)?,
            replaced: Packed::unpack(from)?,
            dialects: Packed::unpack(from)?,
            delimiters: Packed::unpack(from)?,
            words: Packed::unpack(from)?,
            protocol: Packed::unpack(from)?,
            types_by_name: Packed::unpack(from)?,
            messages_by_name: Packed::unpack(from)?,
            messages_by_sym: Packed::unpack(from)?,
            builtins: Packed::unpack(from)?,
            ..Program::default()
        })
    }
}

packed_structs! {
    Builtins { count, present, value, text, padding, end, transaction, bytes, undecoded, values }
    ValueTypes {
        any, int, float, text, array, mapping, pair, object, syntax, open_name, close_name, end_name, value_name,
    }
    EnumDef { name, flags, doc, values, numbers, base }
    EnumValue { value, name, text }
    Numbers { first, places, sorted }
    Family { name, field, of, null, members, numbers }
    Service { name, number, ports, positional, optional, header, messages, framing, others, words }
    ServiceFraming { begins, word, frame, max, resync }
    MessageDef {
        name, service, direction, number, word, layout, tied, echoes, shares, answers, expects, expects_reply, refusal, step, usually, doc,
    }
    NumberRange { name, base, max }
    ReplacedMessage { old, new, file, at }
    Example { of, text, bytes, states, json, file, at }
    ListedDeclaration { name, kind, doc, file, range }
    ProtocolDef { tcp, udp, ports, rules, offers, states }
    Rule { each, side, conditions, at }
    Offer { service, when }
}

packed_enums! {
    ExampleOf { Message(id), Layout(id) }
    Refusal { Never, Always, ByField }
    Sender { Client, Server, Both }
    Expectation { Nothing, Reply, Receipt }
    HeaderRole { Number, LengthWhole, LengthAfter, Other }
    ServiceFrame { Layout, Ends(bytes), Fixed(bytes), Whole }
    RuleSide { Client, Server, Both, Either }
    Condition { At { place, values, mask }, Least(bytes), Most(bytes), Fits, Port(ports) }
}
