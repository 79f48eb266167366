//! The state that both sides of a link have agreed on: version, numbering, link header, encryption,
//! cookies. If the packet that tells one of these was not captured, the reading that fits best
//! decides, and an event says so.
//!
//! It knows packets as values, but neither trees nor tables.

use super::packet::{CommandNumbers, HEADER, LinkHeader, Numbering, control, cursor};

/// The score of a datagram that cannot have a link header.
const IMPOSSIBLE: i32 = -8;

/// Whether the datagrams of a link have a link header.
#[derive(Clone, Copy, Debug, Default)]
struct Linked {
    /// The sum of the datagrams' scores: how much better they fit with a header than without.
    sum: i32,
    /// The decision, once made.
    settled: Option<bool>,
}

/// The sum that decides: as much as one control command that ends with its packet in one reading
/// and not in the other.
const SETTLED: i32 = 8;

impl Linked {
    fn settled(self) -> Option<bool> {
        self.settled
    }

    /// Adds a datagram's score: how much better it fits with a header than without. Returns whether
    /// it has one.
    fn judge(&mut self, margin: i32) -> bool {
        self.sum = self.sum.saturating_add(margin);
        if self.sum.abs() >= SETTLED {
            self.settled = Some(self.sum > 0);
        }
        self.sum > 0
    }
}

/// The state of a link.
#[derive(Clone, Debug, Default)]
pub struct Link {
    /// The version that CONNECT asked for.
    pub version: Option<u32>,
    /// The numbering that was guessed if no CONNECT was captured.
    pub guessed: Option<Numbering>,
    /// Whether datagrams have a link header.
    linked: Linked,
    /// Whether a side wants encryption, by side.
    wants: [Option<bool>; 2],
    /// Whether the server sent something since CONNECT.
    answered: bool,
    connected: bool,
    /// Whether user commands have cookies.
    pub cookies: Cookies,
}

impl Link {
    /// How commands are numbered, guessed if there was no CONNECT. `None` if the version's encoding
    /// is not published.
    pub fn numbering(&self) -> Option<Numbering> {
        match self.version {
            None => Some(self.guessed.unwrap_or(Numbering::Old)),
            Some(0..=2) => Some(Numbering::Old),
            Some(4 | 5) => Some(Numbering::New),
            Some(_) => None,
        }
    }

    /// Whether a packet whose checksum is wrong may be an encrypted one.
    pub fn may_be_encrypted(&self) -> bool {
        let [client, server] = self.wants;
        server == Some(true) && (client == Some(true) || client.is_none() && self.connected)
    }

    /// Says in words what both sides said about encryption.
    pub fn encryption(&self) -> &'static str {
        match self.wants {
            [_, None] => "not said",
            [_, Some(false)] => "off: the server does not want it",
            [Some(false), Some(true)] => "off: the client does not want it",
            [Some(true), Some(true)] => "on",
            [None, Some(true)] => "wanted by the server",
        }
    }

    /// Whether a client's packet may be a CONNECT: there was none yet, or no answer to one, or the
    /// link was closed.
    fn may_connect(&self) -> bool {
        self.version.is_none() || !self.answered
    }

    /// The command at a bit of a packet, and how it is numbered. `opens`: it may be the first one
    /// of a client. `connects`: it is a CONNECT that is sent again.
    pub fn command(
        &mut self,
        bytes: &[u8],
        bits: usize,
        from: usize,
        opens: bool,
        connects: bool,
    ) -> Option<(CommandNumbers, Numbering)> {
        let at = cursor(bytes, bits, from);
        let old = CommandNumbers::parse(at, Numbering::Old);
        if opens
            && (connects || self.may_connect())
            && let Some(connect) = old.filter(|c| c.exact && c.control == Some(control::CONNECT))
        {
            return Some((connect, Numbering::Old));
        }
        if self.version.is_none() && self.guessed.is_none() {
            let fits = |c: &CommandNumbers| opens || c.control != Some(control::CONNECT);
            self.guessed = guess(old.filter(fits), CommandNumbers::parse(at, Numbering::New));
        }
        let numbering = self.numbering()?;
        CommandNumbers::parse(at, numbering).map(|c| (c, numbering))
    }

    /// The link header of a datagram, if it has one. Either all datagrams of a link have one or
    /// none has. Each of the first datagrams adds its score for both readings, until the sum
    /// decides for the rest of the link.
    pub fn header(&mut self, bytes: &[u8], bits: usize, client: bool) -> Option<LinkHeader> {
        let header = LinkHeader::parse(bytes, bits);
        if let Some(settled) = self.linked.settled() {
            // If all datagrams of the link have a header, an oddity in it is shown, but is no
            // reason to doubt the header.
            return header.filter(|_| settled);
        }
        // While it is not known whether there is a header, oddities count against it.
        let sane = header.filter(|header| header.sane);
        let plain = self.score(bytes, bits, HEADER * 8, client);
        let linked =
            sane.map_or(IMPOSSIBLE, |header| self.linked_score(bytes, bits, header, client));
        let has = self.linked.judge(linked - plain);
        sane.filter(|_| has)
    }

    /// The score of a datagram read with a link header.
    fn linked_score(&self, bytes: &[u8], bits: usize, header: LinkHeader, client: bool) -> i32 {
        let plausible_sequence = (1..0x1_0000).contains(&header.sequence);
        let content = if header.siblings > 0 || header.compressed {
            2
        } else {
            self.score(bytes, bits, header.end, client && header.is_early())
        };
        2 + i32::from(!header.debug) + if plausible_sequence { 3 } else { 0 } + content
    }

    /// The score of a command at a bit: a control command that ends with the packet is rarely there
    /// by chance. `opens`: it may be the first one of a client.
    fn score(&self, bytes: &[u8], bits: usize, from: usize, opens: bool) -> i32 {
        let at = cursor(bytes, bits, from);
        let fit = |numbering, connects: bool| match CommandNumbers::parse(at, numbering) {
            None => -8,
            Some(CommandNumbers { exact: true, control, .. })
                if control == Some(control::CONNECT) && !connects =>
            {
                1
            }
            Some(CommandNumbers { exact: true, .. }) => 8,
            Some(CommandNumbers { control: Some(_), .. }) => -4,
            Some(_) => 2,
        };
        let unknown = self.version.is_none() && self.guessed.is_none();
        let mut best = i32::MIN;
        if unknown || self.numbering() != Some(Numbering::New) || opens && self.may_connect() {
            best = best.max(fit(Numbering::Old, opens));
        }
        if unknown || self.numbering() != Some(Numbering::Old) {
            best = best.max(fit(Numbering::New, true));
        }
        best
    }

    /// Applies the changes of a control command.
    pub fn learn(&mut self, command: CommandNumbers, client: bool) {
        let side = usize::from(!client);
        let wants = |link: &mut Link, side: usize| {
            if let Some(place) = link.wants.get_mut(side) {
                *place = Some(command.value == 1);
            }
        };
        match command.control {
            Some(control::CONNECT) if command.exact => {
                let cookies = Cookies { setting: self.cookies.setting, ..Cookies::default() };
                *self = Link {
                    version: Some(command.value),
                    linked: self.linked,
                    cookies,
                    ..Link::default()
                };
            }
            Some(control::SERVER_ACK) if command.exact => wants(self, 1),
            Some(control::CLIENT_ACK) if command.exact => wants(self, 0),
            Some(control::SERVER_ACK_ACK) => self.connected = true,
            Some(control::DISCONNECT_ACK) => {
                self.answered = false;
                return;
            }
            _ => {}
        }
        self.answered |= side == 1;
    }

    /// A packet of a side arrived that was not a control command.
    pub fn heard(&mut self, client: bool) {
        self.answered |= !client;
    }
}

/// The numbering of a link whose CONNECT was not captured, if a packet tells it.
fn guess(old: Option<CommandNumbers>, new: Option<CommandNumbers>) -> Option<Numbering> {
    let fits = |c: Option<CommandNumbers>| c.is_some_and(|c| c.exact);
    match (old, fits(old), fits(new)) {
        (_, false, true) => Some(Numbering::New),
        (_, true, false) => Some(Numbering::Old),
        // A single bit of 0 is an IDLE in both numberings.
        (Some(CommandNumbers { cmd: 0, .. }), ..) => None,
        (_, true, true) => None,
        _ => Some(Numbering::New),
    }
}

/// Whether user commands begin with cookies, and how certain that is.
#[derive(Clone, Debug, Default)]
pub struct Cookies {
    /// What the user asked for. With `None`, the reading that fits best decides.
    pub setting: Option<bool>,
    decided: Option<bool>,
    certain: bool,
    /// Each side's last cookie, if there are cookies.
    last: [Option<u32>; 2],
    looked_at: u32,
    /// How many commands echo no cookie that the other side has sent.
    without_echo: u32,
}

/// How many more user commands may still change the decision.
const LOOKS: u32 = 16;
/// So many commands without an echo show that there are no cookies. The first ones of both sides
/// may cross each other.
const WITHOUT_ECHO: u32 = 3;

impl Cookies {
    /// Whether the user command whose body begins at bit `from` has cookies, and the text of an
    /// event if this was just decided.
    pub fn judge(
        &mut self,
        bytes: &[u8],
        bits: usize,
        from: usize,
        client: bool,
    ) -> (bool, Option<&'static str>) {
        let mut at = cursor(bytes, bits, from);
        let pair = (at.bits(32).ok(), at.bits(32).ok());
        let (Some(cookie), Some(echo)) = pair else {
            return (false, self.learn_from_short());
        };
        if let Some(set) = self.setting {
            return (set, None);
        }
        let cookie = cookie as u32;
        let echo = echo as u32;
        let [of_client, of_server] = self.last;
        let text = self.decide(cookie, echo, if client { of_server } else { of_client });
        if let Some(place) = self.last.get_mut(usize::from(!client)) {
            *place = Some(cookie);
        }
        (self.decided == Some(true), text)
    }

    /// Whether user commands have cookies, as far as it is decided.
    pub fn are_on(&self) -> bool {
        self.setting.or(self.decided) == Some(true)
    }

    /// Learns from a user command with less than 64 bits: every one of a link with cookies begins
    /// with two of them.
    fn learn_from_short(&mut self) -> Option<&'static str> {
        if self.certain || self.setting.is_some() {
            return None;
        }
        self.certain = true;
        match self.decided.replace(false) {
            None => Some("cookies are off: a user command is too short for them"),
            Some(true) => Some("cookies are off after all: a user command is too short for them"),
            Some(false) => None,
        }
    }

    /// Learns from a user command that would begin with `cookie` and `echo`. `other` would be the
    /// other side's last cookie. Returns a text if this decides.
    ///
    /// Only an echo makes cookies certain. A number that grows by one may be any counter of its
    /// side.
    fn decide(&mut self, cookie: u32, echo: u32, other: Option<u32>) -> Option<&'static str> {
        if self.certain {
            return None;
        }
        self.looked_at += 1;
        self.certain = self.looked_at >= LOOKS;
        let small = |n: u32| n < 1 << 24;
        let likely = cookie != 0 && small(cookie) && small(echo);
        if likely && echo != 0 && other == Some(echo) {
            self.certain = true;
            return Some(match self.decided.replace(true) {
                Some(true) => "cookies are on: they echo each other",
                _ => {
                    "cookies are on after all: they echo each other; user commands before this \
                     were shown without"
                }
            });
        }
        if other.is_some_and(|other| other != 0 && (echo == 0 || echo > other)) {
            self.without_echo += 1;
        }
        match self.decided {
            None if likely => {
                self.decided = Some(true);
                Some(
                    "cookies are taken to be on: the first user command begins with two small \
                     numbers of 32 bits",
                )
            }
            None => {
                self.decided = Some(false);
                Some(
                    "cookies are taken to be off: the first user command does not begin as with \
                     cookies",
                )
            }
            Some(true) if !likely => {
                self.decided = Some(false);
                Some("cookies are off after all: a user command does not begin with them")
            }
            Some(true) if self.without_echo >= WITHOUT_ECHO => {
                self.certain = true;
                self.decided = Some(false);
                Some("cookies are off after all: neither side echoes what the other one sends")
            }
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows a link user commands: whether the client sent it, and the two numbers of 32 bits that
    /// it begins with. Returns what is said.
    fn say(commands: &[(bool, u32, u32)]) -> Vec<&'static str> {
        let mut cookies = Cookies::default();
        let mut said = Vec::new();
        for (client, cookie, echo) in commands {
            let bytes = [cookie.to_le_bytes(), echo.to_le_bytes()].concat();
            said.extend(cookies.judge(&bytes, 64, 0, *client).1);
        }
        said
    }

    const TAKEN_ON: &str = "cookies are taken to be on: the first user command begins with two \
                            small numbers of 32 bits";

    #[test]
    fn cookies_are_certain_when_they_echo_each_other() {
        let expected = [TAKEN_ON, "cookies are on: they echo each other"];
        assert_eq!(say(&[(true, 1, 0), (false, 1, 1), (true, 2, 1)]), expected);
    }

    #[test]
    fn a_counter_of_one_side_is_no_cookie() {
        let counts: Vec<_> = (0..20).map(|n| (false, n, 0)).collect();
        let expected =
            ["cookies are taken to be off: the first user command does not begin as with cookies"];
        assert_eq!(say(&counts), expected);
    }

    #[test]
    fn counters_of_both_sides_without_an_echo_are_no_cookies() {
        let counts: Vec<_> = (2..12).map(|n| (n % 2 == 0, n / 2, 0)).collect();
        let off = "cookies are off after all: neither side echoes what the other one sends";
        assert_eq!(say(&counts), [TAKEN_ON, off]);
    }

    #[test]
    fn a_command_that_is_too_short_has_none() {
        let mut cookies = Cookies::default();
        let short = cookies.judge(&[0; 4], 32, 0, true);
        assert_eq!(short, (false, Some("cookies are off: a user command is too short for them")));
        assert_eq!(cookies.judge(&[1, 0, 0, 0, 0, 0, 0, 0], 64, 0, false), (false, None));
    }
}
