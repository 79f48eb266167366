//! Connections to the AuthServer, which speak a protocol of their own.
//!
//! Every message but the server's first one is encrypted with numbers that follow from that first
//! one's seed, so that nothing is needed to read them. SEGS' source is what is known of it; a
//! connection that begins in another way is left alone. This file knows the encryption and the
//! order of a connection. `auth.table` says what messages hold.

use crate::digits::counted;
use crate::proto::{Moment, Seal};
use crate::session::{
    Context, Declaration, Event, EventKind, Framing, Resync, Session, Settings, Share, Side,
    StreamBuffer, TableSession,
};
use crate::table::Tables;

/// The service of these connections, in tables and in records.
pub(super) const SERVICE: &str = "auth_server";
/// The size, which does not count the opcode behind it.
const SIZE: usize = 2;
/// The whole first message: size, opcode, seed, version.
const FIRST_MESSAGE: usize = 11;
/// Its size field and its opcode.
const FIRST: [u8; 3] = [8, 0, 0];
/// A client's bytes wait for the server's first message, this many at most.
const MAX_WAITING: usize = 64 << 10;
/// The upper half of the key of every connection. The seed is the lower half.
const KEY: u64 = 0x8754_6ca1_0000_0000;
/// The opcode of a login, and how many of the bytes behind it are in whole blocks of DES.
const LOGIN: u8 = 0;
const LOGIN_BLOCKS: usize = 24;

/// A connection to an AuthServer.
pub struct AuthSession {
    messages: TableSession,
    directions: [AuthStream; 2],
    /// The key of the first encrypted message, and the version, once the server has said them.
    opened: Option<Opened>,
    /// The connection begins in another way.
    left_alone: bool,
    /// The remark that it is left alone was made.
    remarked: bool,
}

#[derive(Clone, Copy)]
struct Opened {
    key: u64,
    version: u32,
}

impl Opened {
    /// What the server's first message says.
    fn by(first: &[u8]) -> Opened {
        let number = |at: usize| {
            let four = first.get(at..).and_then(|rest| rest.first_chunk());
            u32::from_le_bytes(*four.unwrap_or(&[0; 4]))
        };
        let seed = number(FIRST.len());
        // As SEGS does it, a seed from 2^31 on is extended like a negative number.
        let key = KEY | i64::from(seed as i32) as u64;
        Opened { key, version: number(FIRST.len() + 4) }
    }
}

/// One direction of it.
#[derive(Default)]
struct AuthStream {
    stream: StreamBuffer,
    /// How many bytes were encrypted before the next message.
    used: u64,
    /// Bytes are missing, and with them the count of what was encrypted.
    lost: bool,
}

impl AuthSession {
    /// A connection before its first byte.
    pub fn new(tables: &Tables) -> AuthSession {
        let declared = Declaration {
            name: SERVICE.into(),
            service: tables.service_named(SERVICE),
            framing: Framing::Layout,
            resync: Resync::NextPiece,
            remark: None,
        };
        AuthSession {
            messages: TableSession::new(declared, tables),
            directions: Default::default(),
            opened: None,
            left_alone: false,
            remarked: false,
        }
    }

    /// Reads the server's first message, which is in clear.
    fn open(&mut self, at: Moment, context: &mut Context<'_>) {
        let [client, server] = &mut self.directions;
        let bytes = server.stream.waiting();
        if !bytes.iter().zip(FIRST).all(|(byte, first)| *byte == first)
            || client.stream.waiting().len() > MAX_WAITING
        {
            self.left_alone = true;
            return;
        }
        let Some((first, _)) = bytes.split_at_checked(FIRST_MESSAGE) else { return };
        self.opened = Some(Opened::by(first));
        let offset = server.stream.offset();
        let first = first.to_vec();
        server.stream.advance(FIRST_MESSAGE);
        self.read(Side::Server, offset, &first, at, context);
    }

    /// Reads all whole messages that wait in a direction.
    fn drain(&mut self, from: Side, at: Moment, context: &mut Context<'_>) {
        if self.opened.is_none() && !self.left_alone {
            self.open(at, context);
        }
        if self.left_alone {
            for from in [Side::Client, Side::Server] {
                self.leave_alone(from, at, context);
            }
            return;
        }
        let Some(opened) = self.opened else { return };
        if from == Side::Server {
            // What the client sent waited for the key.
            self.decrypt_waiting(Side::Client, opened, at, context);
        }
        self.decrypt_waiting(from, opened, at, context);
    }

    fn decrypt_waiting(
        &mut self,
        from: Side,
        opened: Opened,
        at: Moment,
        context: &mut Context<'_>,
    ) {
        let direction = from.of(&mut self.directions);
        if direction.lost {
            let waiting = direction.stream.waiting().len();
            direction.stream.advance(waiting);
            return context.emit.account(from, Share::Closed, waiting as u64);
        }
        loop {
            let direction = from.of(&mut self.directions);
            let bytes = direction.stream.waiting();
            let Some(size) = bytes.first_chunk() else { return };
            let length = SIZE + 1 + usize::from(u16::from_le_bytes(*size));
            let Some(whole) = bytes.get(..length) else { return };
            let mut message = whole.to_vec();
            let body = message.get_mut(SIZE..).unwrap_or_default();
            decrypt(body, opened.key.wrapping_add(direction.used));
            let offset = direction.stream.offset();
            direction.used = direction.used.wrapping_add(body.len() as u64);
            direction.stream.advance(length);
            if from == Side::Client && body.first() == Some(&LOGIN) {
                let blocks = body.get_mut(1..).and_then(|rest| rest.get_mut(..LOGIN_BLOCKS));
                if let Some(blocks) = blocks
                    && !login_blocks(blocks, opened.version, Way::Decrypt)
                {
                    let text = "a login, which is encrypted with DES: this build cannot read it \
                                (the feature `des` is off)";
                    context.emit.event(at, Event::new(EventKind::Remark, SERVICE, from, text));
                    context.emit.account(from, Share::Closed, length as u64);
                    continue;
                }
            }
            self.read(from, offset, &message, at, context);
        }
    }

    /// Reads a message in clear.
    fn read(
        &mut self,
        from: Side,
        offset: u64,
        message: &[u8],
        at: Moment,
        context: &mut Context<'_>,
    ) {
        context.emit.plaintext(from, offset, message);
        self.messages.data(from, offset, message, at, context);
    }

    fn leave_alone(&mut self, from: Side, at: Moment, context: &mut Context<'_>) {
        let stream = &mut from.of(&mut self.directions).stream;
        let waiting = stream.waiting().len();
        if waiting == 0 {
            return;
        }
        if !std::mem::replace(&mut self.remarked, true) {
            let text = "the AuthServer's own protocol by its port, which is not the one of links, \
                        in a form that is not known; left alone";
            context.emit.event(at, Event::new(EventKind::Remark, SERVICE, from, text));
        }
        context.emit.plaintext(from, stream.offset(), stream.waiting());
        stream.advance(waiting);
        context.emit.account(from, Share::Opaque, waiting as u64);
    }

    /// Reports the bytes of a direction that are no whole message.
    fn give_up(&mut self, from: Side, why: &str, at: Moment, context: &mut Context<'_>) {
        let stream = &mut from.of(&mut self.directions).stream;
        let waiting = counted(stream.waiting().len(), "byte");
        stream.pass(usize::MAX, context.options.max_undecoded);
        let passed = stream.take_passed();
        if passed.length > 0 {
            let text = format!("{waiting} of a message: {why}");
            let event = Event::new(EventKind::Undecoded, SERVICE, from, text);
            context.emit.event(at, event.about(passed.offset, passed.length).with_passed(passed));
        }
    }
}

/// Decrypts a message, opcode included: each byte is encrypted with the one before it and with one
/// of the key's eight, which the key's count of bytes changes from message to message.
fn decrypt(body: &mut [u8], key: u64) {
    let mut before = 0;
    for (byte, key) in body.iter_mut().zip(key.to_le_bytes().into_iter().cycle()) {
        before = std::mem::replace(byte, *byte ^ before ^ key);
    }
}

/// Encrypts a message, opcode included: the inverse of [`decrypt`].
fn encrypt(body: &mut [u8], key: u64) {
    let mut before = 0;
    for (byte, key) in body.iter_mut().zip(key.to_le_bytes().into_iter().cycle()) {
        *byte ^= before ^ key;
        before = *byte;
    }
}

/// What to do with the blocks of a login.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "des"), allow(dead_code))]
enum Way {
    Encrypt,
    Decrypt,
}

/// The version whose logins have a DES key of their own.
#[cfg(feature = "des")]
const TEST_VERSION: u32 = 30_206;

/// Encrypts or decrypts the blocks of a login. Returns whether this build can.
#[cfg(feature = "des")]
fn login_blocks(blocks: &mut [u8], version: u32, way: Way) -> bool {
    use des::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
    let key = match version {
        TEST_VERSION => *b"TEST\0\0\0\0",
        _ => [0x30, 0x79, 0x0a, 0x25, 0x73, 0x12, 0x62, 0x64],
    };
    let cipher = des::Des::new(&key.into());
    for block in blocks.as_chunks_mut::<8>().0 {
        match way {
            Way::Encrypt => cipher.encrypt_block(block.into()),
            Way::Decrypt => cipher.decrypt_block(block.into()),
        }
    }
    true
}

#[cfg(not(feature = "des"))]
fn login_blocks(_blocks: &mut [u8], _version: u32, _way: Way) -> bool {
    false
}

/// Encrypts the messages of a connection that is written into a capture.
#[derive(Default)]
pub(super) struct AuthSeal {
    opened: Option<Opened>,
    /// How many bytes the client and the server have encrypted so far.
    used: [u64; 2],
}

impl Seal for AuthSeal {
    fn seal(
        &mut self,
        _settings: &Settings,
        side: Side,
        _name: &str,
        mut bytes: Vec<u8>,
    ) -> Result<Vec<u8>, String> {
        let Some(opened) = self.opened else {
            if side == Side::Client || bytes.len() != FIRST_MESSAGE || !bytes.starts_with(&FIRST) {
                return Err("a connection to an AuthServer begins with the seed of its \
                            encryption: AuthProtocolVersion"
                    .into());
            }
            self.opened = Some(Opened::by(&bytes));
            return Ok(bytes);
        };
        let body = bytes.get_mut(SIZE..).unwrap_or_default();
        if side == Side::Client
            && let Some((&mut LOGIN, rest)) = body.split_first_mut()
            && let Some(blocks) = rest.get_mut(..LOGIN_BLOCKS)
            && !login_blocks(blocks, opened.version, Way::Encrypt)
        {
            return Err("a login is encrypted with DES: this build cannot write it (the feature \
                        `des` is off)"
                .into());
        }
        let used = side.of(&mut self.used);
        encrypt(body, opened.key.wrapping_add(*used));
        *used = used.wrapping_add(body.len() as u64);
        Ok(bytes)
    }
}

impl Session for AuthSession {
    fn data(
        &mut self,
        from: Side,
        _offset: u64,
        bytes: &[u8],
        at: Moment,
        context: &mut Context<'_>,
    ) {
        from.of(&mut self.directions).stream.push(bytes, at);
        self.drain(from, at, context);
    }

    fn gap(&mut self, from: Side, offset: u64, length: u64, at: Moment, context: &mut Context<'_>) {
        self.give_up(from, "what follows was never captured", at, context);
        self.messages.gap(from, offset, length, at, context);
        let direction = from.of(&mut self.directions);
        direction.stream.jump(offset.saturating_add(length));
        if self.opened.is_none() {
            self.left_alone = true;
        } else if !std::mem::replace(&mut direction.lost, true) {
            let text = "how many messages the gap holds is not known, so that what follows cannot \
                        be decrypted";
            context.emit.event(at, Event::new(EventKind::Remark, SERVICE, from, text));
        }
    }

    fn held(&self) -> usize {
        let waiting: usize = self.directions.iter().map(|direction| direction.stream.held()).sum();
        waiting + self.messages.held()
    }

    fn relieve(&mut self, at: Moment, context: &mut Context<'_>) {
        self.messages.relieve(at, context);
        for from in [Side::Client, Side::Server] {
            let direction = from.of(&mut self.directions);
            let waiting = direction.stream.waiting().len();
            if waiting > 0 {
                direction.lost = true;
                let limit = EventKind::Limit { limit: "max-total" };
                let text = Event::given_up_text(waiting);
                context.emit.event(at, Event::new(limit, SERVICE, from, text));
                self.give_up(from, "given up to make room", at, context);
                from.of(&mut self.directions).stream.shrink();
            }
        }
    }

    fn end(&mut self, from: Side, at: Moment, context: &mut Context<'_>) {
        if self.opened.is_none() {
            self.left_alone = true;
            self.leave_alone(from, at, context);
        }
        self.give_up(from, "the stream ends here", at, context);
        self.messages.end(from, at, context);
    }

    fn is_clear(&self) -> bool {
        false
    }

    fn service(&self) -> &str {
        SERVICE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encrypted_is_decrypted_with_the_same_key() {
        let clear: Vec<u8> = (0..100).collect();
        let mut bytes = clear.clone();
        encrypt(&mut bytes, KEY | 1);
        assert_ne!(bytes, clear);
        decrypt(&mut bytes, KEY | 1);
        assert_eq!(bytes, clear);
    }

    #[cfg(feature = "des")]
    #[test]
    fn a_login_is_opened_with_the_key_of_its_version() {
        // `openssl enc -des-ecb -K 5445535400000000` of eight letters a.
        let mut block = [0x47, 0xd9, 0xca, 0xa7, 0xec, 0x3d, 0xae, 0xbb];
        assert!(login_blocks(&mut block, TEST_VERSION, Way::Decrypt));
        assert_eq!(&block, b"aaaaaaaa");
    }
}
