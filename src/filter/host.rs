//! Which ends of a connection a literal matches: an address, a network, a port, or an address with
//! a port.

use std::cmp::Ordering;
use std::net::{IpAddr, SocketAddr};

/// A set of ends, as `127.0.0.1`, `10.0.0.0/8`, `:14617`, `127.0.0.1:14617` or `[::1]:14617`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostPattern {
    network: Option<IpNetwork>,
    port: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct IpNetwork {
    address: IpAddr,
    /// How many leading bits of the address count.
    prefix: u32,
}

impl HostPattern {
    /// Reads a pattern; `None` if `raw` is none.
    pub fn parse(raw: &str) -> Option<HostPattern> {
        if let Some(port) =
            raw.strip_prefix(':').filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
        {
            return Some(HostPattern { network: None, port: Some(port.parse().ok()?) });
        }
        if let Ok(end) = raw.parse::<SocketAddr>() {
            return Some(HostPattern {
                network: Some(IpNetwork::single(end.ip())),
                port: Some(end.port()),
            });
        }
        let network = match raw.split_once('/') {
            Some((address, prefix)) => IpNetwork::with_prefix(bare_address(address)?, prefix)?,
            None => IpNetwork::single(bare_address(raw)?),
        };
        Some(HostPattern { network: Some(network), port: None })
    }

    /// Whether it is a single address or a single port: only these can be compared with `<` and
    /// `>`.
    pub(super) fn is_single(&self) -> bool {
        self.network.is_none_or(|network| network.prefix == bits(network.address))
    }

    /// How an end compares: equal if the pattern contains it. `port` is absent where only addresses
    /// are compared.
    pub(super) fn compare(&self, address: IpAddr, port: Option<u16>) -> Ordering {
        let by_network = self.network.map_or(Ordering::Equal, |network| network.compare(address));
        let by_port = self.port.map_or(Ordering::Equal, |wanted| port.cmp(&Some(wanted)));
        by_network.then(by_port)
    }

    /// Whether an address belongs to it, whatever the port.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.network.is_none_or(|network| network.compare(address) == Ordering::Equal)
    }

    /// Whether it names a port.
    pub fn has_port(&self) -> bool {
        self.port.is_some()
    }
}

impl IpNetwork {
    fn single(address: IpAddr) -> IpNetwork {
        IpNetwork { address, prefix: bits(address) }
    }

    fn with_prefix(address: IpAddr, prefix: &str) -> Option<IpNetwork> {
        let prefix = prefix.parse().ok().filter(|prefix| *prefix <= bits(address))?;
        Some(IpNetwork { address, prefix })
    }

    fn compare(&self, address: IpAddr) -> Ordering {
        let leading = |address: IpAddr| {
            let number = match address {
                IpAddr::V4(v4) => u128::from(u32::from(v4)),
                IpAddr::V6(v6) => u128::from(v6),
            };
            number.checked_shr(bits(address) - self.prefix.min(bits(address))).unwrap_or(0)
        };
        if address.is_ipv4() == self.address.is_ipv4() {
            leading(address).cmp(&leading(self.address))
        } else {
            address.cmp(&self.address)
        }
    }
}

fn bits(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// An address, an IPv6 one with or without brackets.
fn bare_address(raw: &str) -> Option<IpAddr> {
    let inner = raw.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.unwrap_or(raw).parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    fn contains(pattern: &str, end: &str) -> bool {
        let end: SocketAddr = end.parse().unwrap();
        HostPattern::parse(pattern).unwrap().compare(end.ip(), Some(end.port())).is_eq()
    }

    #[test]
    fn patterns_contain_the_ends_they_stand_for() {
        for (pattern, inside, outside) in [
            ("127.0.0.1", "127.0.0.1:14617", "127.0.0.2:14617"),
            ("10.0.0.0/8", "10.255.1.2:1", "11.0.0.0:1"),
            ("10.1.2.3/8", "10.255.1.2:1", "11.0.0.0:1"),
            (":14617", "[::1]:14617", "[::1]:14618"),
            ("127.0.0.1:14617", "127.0.0.1:14617", "127.0.0.1:14618"),
            ("[::1]:14617", "[::1]:14617", "[::2]:14617"),
            ("fe80::/10", "[febf::1]:1", "[fec0::1]:1"),
            ("[::1]", "[::1]:5", "127.0.0.1:5"),
        ] {
            assert!(contains(pattern, inside) && !contains(pattern, outside), "{pattern}");
        }
        assert!(contains("0.0.0.0/0", "1.2.3.4:5") && contains("::/0", "[::1]:5"));
        for wrong in [
            "",
            "127.0.0",
            "localhost",
            "10.0.0.0/33",
            "::/129",
            ":",
            ":70000",
            "[127.0.0.1",
            "1.2.3.4/",
        ] {
            assert_eq!(HostPattern::parse(wrong), None, "{wrong}");
        }
    }
}
