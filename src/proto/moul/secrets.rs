//! MOUL's keys for the commands about key files, and in captures.

use super::keys::{
    CarriedBounds, KeyError, KeyFile, KeyService, PrivateKey, Report, write_shard_keys,
};
use super::seal;
use super::settings::{KEYS, MoulSettings};
use crate::proto::{
    EncodedMessage, Fact, FactValue, Secrets, SecretsBlock, SecretsEntry, SecretsRefusal,
    SecretsReport,
};
use crate::session::{Secret, Settings};

/// The type of the secrets blocks that carry keys: "MOUL". It is not registered anywhere.
const BLOCK_TYPE: u32 = 0x4d4f_554c;
/// A longer secrets block is not read, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// The name of a capture's own keys in events and errors.
const CARRIED: &str = "keys in the capture";

/// The keys of shards and of single sessions.
pub(super) struct ShardKeys;

impl Secrets for ShardKeys {
    fn option(&self) -> &'static str {
        KEYS
    }

    fn block_type(&self) -> u32 {
        BLOCK_TYPE
    }

    fn carry(&self, bytes: &[u8], settings: &mut Settings) -> Option<String> {
        if bytes.len() > MAX_BYTES {
            let length = bytes.len();
            return Some(format!(
                "{CARRIED}: a block of {length} bytes is passed over, at most {MAX_BYTES} are read"
            ));
        }
        let file = match KeyFile::parse(CARRIED, bytes) {
            Ok(file) => file,
            Err(error) => return Some(error.to_string()),
        };
        let CarriedBounds { private, sessions } = CarriedBounds::default();
        let all = settings.get_or_default::<MoulSettings>()?.keys.add_carried(file);
        let text = format!(
            "{CARRIED}: more than {private} private keys or {sessions} of sessions, the rest is \
             passed over"
        );
        (!all).then_some(text)
    }

    fn block(&self, connections: &[Secret], long_term: Option<&Settings>) -> SecretsBlock {
        let keys: Vec<_> =
            long_term.map_or(Vec::new(), |s| MoulSettings::of(s).keys.keys().cloned().collect());
        let lines: Vec<&str> = connections.iter().map(Secret::text).collect();
        SecretsBlock { bytes: write_shard_keys(&keys, &lines).into_bytes(), long_term: keys.len() }
    }

    fn is_wanted(&self, message: &EncodedMessage, settings: &Settings) -> bool {
        let keys = &MoulSettings::of(settings).keys;
        seal::begins_encryption(message) && keys.key_count() == 0
    }

    fn make(&self, random: &[u8; 128], settings: &mut Settings) -> Option<Vec<u8>> {
        let key = PrivateKey::make(random);
        let text = write_shard_keys(std::slice::from_ref(&key), &[] as &[&str]).into_bytes();
        let keys = &mut settings.get_or_default::<MoulSettings>()?.keys;
        keys.add(KeyFile::parse("the key made", &text).ok()?);
        Some(text)
    }

    fn report(&self, name: &str, bytes: &[u8]) -> Result<SecretsReport, SecretsRefusal> {
        let refused = |error: KeyError| SecretsRefusal {
            text: error.to_string(),
            another_kind: error.is_of_another_kind(),
        };
        let report = Report::new(name, bytes).map_err(refused)?;
        Ok(SecretsReport {
            format: report.format.to_string(),
            text: report.to_string(),
            entries: list_entries(&report),
            problem: report.problem.as_ref().map(|problem| problem.text().to_owned()),
            notes: report.notes,
        })
    }
}

/// The entries of a report, without the secrets.
fn list_entries(report: &Report) -> Vec<SecretsEntry> {
    let mut entries = Vec::new();
    for key in &report.keys {
        let mut facts = vec![
            server_fact(key.service),
            text_fact("n_begins", key.fingerprint.clone()),
            number_fact("modulus_bits", key.modulus_bits),
            number_fact("exponent_bits", key.exponent_bits),
            flag_fact("prime", key.prime),
            flag_fact("safe_prime", key.safe_prime),
        ];
        facts.extend(key.generator.map(|g| number_fact("generator", g)));
        entries.push(SecretsEntry { kind: "private", facts });
    }
    for key in &report.public {
        let facts = vec![
            server_fact(key.service),
            text_fact("n_begins", key.fingerprint.clone()),
            number_fact("modulus_bits", key.modulus_bits),
        ];
        entries.push(SecretsEntry { kind: "public", facts });
    }
    for session in &report.sessions {
        let mut facts =
            vec![server_fact(session.service), flag_fact("by_handshake", session.by_handshake)];
        facts.extend(session.client.map(|end| text_fact("client", end.to_string())));
        facts.extend(session.server.map(|end| text_fact("server", end.to_string())));
        entries.push(SecretsEntry { kind: "session", facts });
    }
    entries
}

fn server_fact(service: Option<KeyService>) -> Fact {
    text_fact("service", service.map_or("any", KeyService::name).to_owned())
}

fn text_fact(name: &'static str, value: String) -> Fact {
    Fact { name, value: FactValue::Text(value) }
}

fn number_fact(name: &'static str, value: u64) -> Fact {
    Fact { name, value: FactValue::Number(value) }
}

fn flag_fact(name: &'static str, value: bool) -> Fact {
    Fact { name, value: FactValue::Flag(value) }
}
