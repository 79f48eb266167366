//! Every key file format that shards have, against handshakes of real sessions.
//!
//! The files in `keys/` are throw-away keys of a lab, and so are the session keys in this test.

use moulsniff::proto::moul::keys::{
    Format, KeyFile, KeyRing, KeyService, PrivateKey, Report, SessionHint, derive_session_key,
    write_session_line, write_shard_keys,
};
use std::path::Path;

/// Which file opens the session, its server, y and seed as on the wire, and the RC4 key both
/// programs used. MOULArs's are worked out with another language's big numbers; two of them have a
/// y of 63 bytes.
#[rustfmt::skip]
const SESSIONS: [(&str, KeyService, &str, &str, &str); 48] = [
    ("dirtsand.ini", KeyService::GateKeeper, "0c4b6cf1879509a38a96c99187929a980b65a1745b0941b7ba468010b0e7cb17f55705c2ac14063fee790a7568476775536a3974766e2b1b7b412d7692d55449", "50aca9ecadeb7d", "ddf1cbc1ebcae2"),
    ("dirtsand.ini", KeyService::Auth, "5802859f7bcbb5c1e1fa1a3e5772e120085914d4cef6eda10a324f94c1c013a82bd4cd5b8af2216135add30536fb6ad2eaff6316b6841c8c581f2f1645750f74", "09501eda65d21b", "37bed599c308be"),
    ("dirtsand.ini", KeyService::Game, "2e415f5b788bc1cacc044b6a4c4b5aed05406b6980b71e1613e87abbf852ac59c0d023e6f57f3b006e63f509f2bd9ca55affca16d04fa73823a9fc2912fe1281", "37306f6afe81d9", "e05196c1781a80"),
    ("dirtsand.ini", KeyService::GateKeeper, "6365355d835f8196c3f74312b78be09802e91f9ef08226ba44bb063ddb2dfe5ec91314c4e699466969fd5528eac29b02b6a74efc0896aed3c615574753972b6a", "d25cce766cf1ed", "a7d5925052b283"),
    ("dirtsand.ini", KeyService::Auth, "9a2ab9a26ea885afdd771b5cfda175e4842c49b6ff48043a44dc26044b92fa1fc0afa4cf7fbb4774e08574e4c962c8dc58953002c0f7b56881c8be35386ecb62", "a66399163da75e", "050188524f6913"),
    ("dirtsand.ini", KeyService::Auth, "25546b669bd80ac2dd4c20ec33bc611bdd205a134012d491369ef0a99bba6cc91952d58804ca94c9b37af0076c82dd697ab6ddc1ed0e907e736a6ddd125d2f82", "b04a3ce53f0e60", "b0a6c4c6cd924e"),
    ("dirtsand.ini", KeyService::Game, "ebd0bffde494271a5f562faeed8c7004ce71ce9e22ed5b4f178b5d3428cbc037b6634085dc8c68e2e257c76aec34ab01af2e05306b8b4d74f3143b0ccd8b9948", "60a70604c16563", "27df15dc3b476c"),
    ("dirtsand.ini", KeyService::Game, "de1a07bdbcaceaa77d9554de471619361b1333ffed982e0ca332b5060e6fda3f769ae7e07093795abbae26aee7022e88010aa04f66c03698f0a5e1fd29b67883", "044315cc3ae101", "37c95444ad762f"),
    ("dirtsand.ini", KeyService::Auth, "1b3e1197099964e13d758e9c32a03c15ddf7105da4c8eff039359fbec23d11f458f08b9108d5f505759712da4ae7ff8d539a6d1f5b1811e4ae315666b9df116a", "c4d12fe7406349", "f8abcde05997e8"),
    ("dirtsand.ini", KeyService::Auth, "b2b54497982e4df96875f4b73b0e59bc441b8872010b917f025378eb3a2794142589357af44b4302103d77b15f1fa9036addd1d25a20cd0aa175a11eac65c15c", "8d237d42d03c41", "5b33bca63a6029"),
    ("dirtsand.ini", KeyService::Auth, "54a157c6b93e5f2d6dba2bad9f16586bac5765dfe0ca16e16db945cd779982cbcd0844785e88194177ff1d7310de69fa940683bf401bb3190d06f903acb03e2c", "01b88bc5012b41", "7a8f37f542ea44"),
    ("dirtsand.ini", KeyService::GateKeeper, "9ab1d62d76e6d34a6e198a03a77b16cad420b6343d621d8248088b1d01908d71383c94ebb84fff9d38095b756ea25a29082a20d767143ca9450af954d8058ea0", "9cd29bdabdbb89", "edf78c80ca2ae3"),
    ("dirtsand.ini", KeyService::Auth, "ed07b52cac210d89743373f77825826021c3c3229474bf16ce88554a9cd7c13d8d1b612cc2589f7246c6fcbab0c1bc12fe3333d0732b9e3ea464032bbe873b86", "311920cc78c485", "f564b47986ffda"),
    ("dirtsand.ini", KeyService::Auth, "51ee278e841d02ebe4a01ba90b4ed08e221640502fd5eb29ed81c7dd8c95f79020af10d8d671b6f373e470674e8020081a54179bd18c093b40aec60fee253ac7", "3f33c79f851369", "2add2a17923212"),
    ("dirtsand.ini", KeyService::Game, "ec69d0cd49c232ee8f3b9931db86cb24ac4169c8d4256201f9768c382b39174325b8026fa3293fee30addc109898a549f5331481c27024d4ed4bad986e396487", "9eb6cb6dee1bb2", "26fc5318955379"),
    ("dirtsand.ini", KeyService::Game, "aa2059d2b89c0827be90fdb4cd59ce59d9b29738135192ee35a5604787949656412afb09c419c1c660b5878c8260c8a866ddbadf9d3596713d2754c6f2bda905", "977e620c89c1e4", "4af1fbdf51122b"),
    ("dirtsand.ini", KeyService::Auth, "26924b7e863f91d74688afa19894221e59ba4a16c34c31df015dd77954f48796551d4f69d602faf41b241a52118e1b943afce492022b044ede91562c6e7cb895", "5e5402f8ba1534", "3718cf628bc326"),
    ("dirtsand.ini", KeyService::Auth, "0562e03da2b6241009b94799f7e0b4a170f2ca5bc9080de5b5d645f916b58e2bbc98d2a06a48db899510c2da53ca11ffd214227aa785ced178fa66f333ee669a", "8d3e6176e0a179", "1ebfa172feee32"),
    ("dirtsand.ini", KeyService::Auth, "6177b385d814026da0e7ba3bc0741c47632bf7737d9f793b37ae8f0ca3989a55b2118e3d99fd1f5a23829e1948203a56034cd02ed306e5a198852438ef90cf25", "aa9b7df2000f28", "3c010277a637b8"),
    ("dirtsand.ini", KeyService::Auth, "ca34a6d0b41cf25c8d6296e26ee482895bce3835232a393beaabe8dbbbc7baa9522ac1b7a59fad11a9cfaeedcd49e52987e73a2083ad171eb1b88ddd2a713c24", "900f59e5acf062", "ea5ce499538224"),
    ("dirtsand.ini", KeyService::Auth, "366670555bae59bafb6459d287f36cd081f9203210a018a2a1e89bb59faf20290eac72ebafb9da3643d0901f93c7bd53ddfaab62a0118c2d9dcceb0281fdc04c", "52ad5b5e4a2eba", "5313928e61cbcb"),
    ("dirtsand.ini", KeyService::Game, "7702cbcd50b67e888458f7b1181d6f1d6529cc337a4a26ba85eca43df87b9633f8e3fbcdcd5dbd663ed509164bb3ebca3f3c046cff7dd44eb6d83cf3919eafca", "0138e5f4faae61", "c0f79a9b8d3efc"),
    ("dirtsand.ini", KeyService::GateKeeper, "83fabde229fdee12c6ad39f539c08cc019e8717fd81cf9c2f0d13a3e7c42c8d67ab8ef643044e657d9ede0879fb9f2bd9ca9ef8f6412699137809a0b8295fdc2", "13114852cdbd69", "5e4af9b3005467"),
    ("dirtsand.ini", KeyService::Game, "902dff3e782262d2cca2a06ac5857f8c3aa9aa7d42ba2b6007b030d1408fc9d0cfd4babec6e24f4e7a106992ca305c9221103ebdb8adec8bbd27a9ff2b4b8f43", "a7a2c2c3ece1e1", "30e442130d859a"),
    ("dirtsand.ini", KeyService::GateKeeper, "011dc9d31997dbc02d87f90f2b965fc812d40fe0b23d4a859c18d7bdee73e7faa5cdcadffdcb150cbc00d3b30f78c5624d579e5ee3f67eecc8897a0784bb3c42", "11223344556677", "42e5b6bd012181"),
    ("dirtsand.ini", KeyService::Auth, "699a1b0b48f4a15ffb093ef3519b96d31bc7f22a1e871532c4d06c1f3e6204f28ae8ba385053c6788d1ae5495b2c3f0fc537344c8bf189c10aef6a24da157188", "11223344556677", "c7eaa80a1e0132"),
    ("dirtsand.ini", KeyService::Game, "c43e2d8c96ee1639b60fd97ac81f8e4f26cbfa2619f628308be7fc73d41d320aa0264ae0b867251d893ca5993a50617194911c37087fa45fc583e286864fef3b", "11223344556677", "a80f433caccc03"),
    ("nagus.ini", KeyService::GateKeeper, "655413dfbcd2186ba56f06a23531b8365b9769bc9cb1e71999c0b02eed456fcc4584961b558d1a1cae005c62618aa3fbb408a399a1fa35ad7a2ec29b86d63a8f", "372e5d04a3b6f8", "cab64af365efc1"),
    ("nagus.ini", KeyService::Auth, "6aace4494913cbc9e08ed58a2ccc5dd0ff5ccf982a41e97b2002466904262775cf564993bda4f572c70beb39e3cf98f85718c50416b9816f0d6270a339f9a686", "28217b82e3b7de", "68c0803279760b"),
    ("nagus.ini", KeyService::Auth, "4f09c2a0cf75628ea96441aed5e29b60b5329bb6edeff6620fc932efce9b3d7391427fce15f3a95ea7951f631b4b060aef675202bbb52f61faeaefd54a86cb2d", "4379b687cbcda5", "cac52c9e88a677"),
    ("nagus.ini", KeyService::Auth, "c0f73054b6169ce66a367755c64d46e982bb70b9710587462db5408f28f32478d2ee728ccdd4fee7c3cfbb094afe6c60059e3ab53aaaf7a1a82e28ddf310d354", "5e9bf759554d17", "aea7943f07cac4"),
    ("nagus.ini", KeyService::Auth, "a137d9735916fa77a0dec0810923d647745a0c38eecccb0c27ada5b915f3f493f39cb4a7b1fe6d3866d1870bf7c40e2cf060cd8cd7ed028efa1824e4f67ef268", "b3679f436b0a78", "374e2054acf41d"),
    ("nagus.ini", KeyService::Game, "87ec7f1a55f3ab7c6623a6b34d1c31aef43de1c8c49a12add829916fa1c3cbeedd8c5026e73aabcf26933b2c4763594aa65fbe3b98ee84c10cc56bc4f6bdde05", "358d1f9c63d8da", "2cffab4bb082cf"),
    ("nagus.ini", KeyService::Game, "c5fba5e5b73fff230886921bae34efe5b653261aa409662d80a97d7f5828c0bd12f3ccb06f26961c2e152a6e23a111781cbf79010e63ae3d7bd3aa9617ae686c", "388c55163f0551", "c6841f0886426f"),
    ("nagus.ini", KeyService::Auth, "da5520d3257dd35384073b311d6eca82175dbfc2848a508bb8e8d6db23519691a98e6d4ae49c816aa4b01f73a0ae49eacdea9a6dc107722d2c74ab28a07fb33a", "4d8beda8c41434", "19424df1d8099e"),
    ("moss_full", KeyService::GateKeeper, "af29b0706f4ecc9a3badd2ba93a239bf8a1711bf1b49753882ece35a1ef442effd50ddae754ab391525d7198fc031d9948cdb0a11c81e917e70bc1905ea2fa64", "92fdd429a0a835", "301d5eaf818fa8"),
    ("moss_full", KeyService::Auth, "e81de8d30f66ed95653748519be2e80d8941c232e43c6804ff713f91ab68291f857ba4326c72681458aae35573a74181d61ae8d812892f3e0559f99c0ee5af0e", "5803277c86ffd5", "27fb351a2ffb72"),
    ("moss_full", KeyService::Auth, "34bc63d5a85e5c822a3f6399a38282c6551c0da25bae0f4bb279b201f2c76fe132a3d0d00d9c4e34ba45250e3994db468e062f5be3226ab22c24fd7a5736a05f", "80ba86bcaa8bc5", "9542736e043ca8"),
    ("moss_full", KeyService::Game, "68537dd021f792a541db39a92168221bbf24c3deaa5ba522790d7cde74a8c49014c6f1af95926c6cf960ca91f0040284d9e5abeb447c61440bf0616573fc384a", "8a34f696e972e6", "46d378f642b327"),
    ("moss_full", KeyService::Game, "a8e25425b5dd19fb4123bb921c1c39283879e9320d9a3403c3125470799e8047124b828e0e2bbe22a20b9b5316655109a26be7158cacaa6ff14ace5243c4ca55", "aa008af51c57c0", "ae99730bd4243b"),
    ("moss_full", KeyService::Game, "9e89d8a9617dc425931b32daeae3e9b4c373e8bdbe24f8dde464c6d896a6c83121da1f5a7539b2ca99564c6c53b6ee5377d4ce25bc3dbfa9aa0ac939812fd780", "ab07f8d46c81db", "f5663403c913be"),
    ("moss_full", KeyService::Game, "bd36fc698cad1f78f6dfb3030180ac019aaa610115132ef1023aa7a6356dc15fac1f4af0260fd6bbed82b52159b28216ab145eb7b8ec5cb14051b48865c08b89", "425601b2b3aa19", "71f98c02626902"),
    ("moulars.toml", KeyService::GateKeeper, "ea2c4abc07d417c4ddead67fc90892b7f8e34f2b18e228420777ea95d84bdb0c9d9bf766e3ba78cb21d3a9f7ed2fb63fb2939333dbed4e6a5bbf0db566e059be", "06548c40734068", "95a476e28fe878"),
    ("moulars.toml", KeyService::GateKeeper, "7bb5d9b72e23c3d259d8abbb8295b730f6f47015b5e6f6ea39487de279844bfde53755f0896952662c5af5ea5c286055f36a6c62cbe42c73809f0eb8153872", "5fdc7afbf697e0", "9602deced1e125"),
    ("moulars.toml", KeyService::Auth, "c04075d5dcc88e5e3a4d554902c7d898e68c1edcd4e62b5d951a87401dd3116f0b2349420ac951f7f88c7d96b99b6f7670dab6f16d3e3d5147346ae23b6c6c62", "78cfa228eafc2d", "03ad859aa4da6d"),
    ("moulars.toml", KeyService::Auth, "98bf3ab4ff6c79b80b246d59fd3240f726bab8ec4e198cd2de642500495543811774746e304103c9982cebc86ff026cda8bd4bcf310a4bf274da819e496e52", "1bac95f20b9613", "9f90fea9c8c8ca"),
    ("moulars.toml", KeyService::Game, "ea7d4477a9a3832e2863a09cb1372e198a68fa3ae27f276ecb289ac079e703e1148ae5a323c6b38ed87181fb53d193cd7aea5b5565d8b9aed3d8f9d09ee12961", "8566fc84571319", "b1b4d9b604869a"),
    ("moulars.toml", KeyService::Game, "f43f6c40738e663f2302bedbf250a42490318b8dfc0a1460998fab8760bfe8ac469340ee78f86eefc1b7905036718aa54d7c900f718e2d30ec94ed9c64a7b9", "5a5bc53f2842b3", "4c8ffe295c646d"),
];

/// The formats that open something, and which sessions each has keys for.
const FILES: [(&str, Format, &str, &[KeyService]); 13] = [
    ("dirtsand.ini", Format::Dirtsand, "dirtsand.ini", &THREE),
    ("dirtsand-generate-keys.txt", Format::DirtsandGenerator, "dirtsand.ini", &THREE),
    ("moulars.toml", Format::Moulars, "moulars.toml", &THREE),
    ("moulars-keygen.txt", Format::MoularsGenerator, "moulars.toml", &THREE),
    ("nagus.ini", Format::Nagus, "nagus.ini", &THREE),
    ("moss_auth_key.der", Format::MossDer, "moss_full", &[KeyService::Auth]),
    ("moss_game_key.der", Format::MossDer, "moss_full", &[KeyService::Game]),
    ("moss_gatekeeper_key.der", Format::MossDer, "moss_full", &[KeyService::GateKeeper]),
    ("moss_auth_key.wireshark", Format::MossWireshark, "moss_full", &[KeyService::Auth]),
    ("moss_game_key.wireshark", Format::MossWireshark, "moss_full", &[KeyService::Game]),
    (
        "moss_gatekeeper_key.wireshark",
        Format::MossWireshark,
        "moss_full",
        &[KeyService::GateKeeper],
    ),
    ("moss_auth_key.txt", Format::MossText, "moss_full", &[KeyService::Auth]),
    ("shard.keys", Format::ShardKeys, "dirtsand.ini", &[KeyService::Auth]),
];

const THREE: [KeyService; 3] = [KeyService::GateKeeper, KeyService::Auth, KeyService::Game];

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("keys").join(name)).unwrap()
}

fn parse(name: &str) -> KeyFile {
    KeyFile::parse(name, &bytes(name)).unwrap()
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2)
        .map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
        .collect()
}

fn derive(key: &PrivateKey, y: &str, seed: &str) -> Vec<u8> {
    derive_session_key(key, &hex(y), &hex(seed).try_into().unwrap()).unwrap().as_bytes().to_vec()
}

#[test]
fn every_format_gives_the_keys_the_sessions_used() {
    for (name, format, shard, services) in FILES {
        let file = parse(name);
        assert_eq!(file.format(), format, "{name}");
        assert_eq!(
            file.notes().iter().filter(|note| !note.contains("no key in this file")).count(),
            0,
            "{name}"
        );
        assert_eq!(file.keys().len(), services.len(), "{name}");
        for service in services {
            let key = file.keys().iter().find(|key| key.service() == Some(*service)).unwrap();
            let mut proofs = 0;
            for (of, server, y, seed, rc4) in SESSIONS {
                if of == shard && server == *service {
                    assert_eq!(derive(key, y, seed), hex(rc4), "{name}, {service}");
                    proofs += 1;
                }
            }
            assert!(proofs > 0, "{name}: no session to prove {service}");
        }
    }
}

#[test]
fn files_for_clients_are_refused_with_the_reason() {
    let says = |name: &str| KeyFile::parse(name, &bytes(name)).unwrap_err().to_string();
    assert_eq!(
        says("server.ini"),
        "server.ini: a client's server.ini holds only N and X, the public halves; a shard's \
         private K is needed (Key.Auth.K of dirtsand.ini)"
    );
    assert_eq!(
        says("moss_auth_key_public.bin"),
        "moss_auth_key_public.bin: make_cyan_dh -c wrote this for clients: it holds only the \
         prime and the public key; the file of -s or -w is needed"
    );
}

#[test]
fn one_ring_of_all_files_opens_every_session() {
    let mut ring = KeyRing::default();
    for (name, ..) in FILES {
        ring.add(parse(name));
    }
    // Each shard's three keys stand in two or three of the files.
    assert_eq!(ring.key_count(), 12);
    for (_, service, y, seed, rc4) in SESSIONS {
        let tried: Vec<bool> = ring
            .candidates(Some(service))
            .map(|candidate| {
                let seed = hex(seed).try_into().unwrap();
                let found = derive_session_key(candidate.key, &hex(y), &seed).unwrap();
                found.as_bytes()[..] == hex(rc4)
            })
            .collect();
        let right = tried.iter().position(|right| *right).expect("some key of the ring opens it");
        assert!(right < 4, "the server's own four keys come first, this was number {right}");
        assert_eq!(tried.len(), 12);
    }
}

#[test]
fn a_written_file_reads_back_the_same() {
    let lines = |file: &KeyFile| file.sessions().iter().map(write_session_line).collect::<Vec<_>>();
    let dirtsand = parse("dirtsand.ini");
    let own = parse("shard.keys");
    let text = write_shard_keys(dirtsand.keys(), &lines(&own));
    let back = KeyFile::parse("written", text.as_bytes()).unwrap();
    assert_eq!(back.format(), Format::ShardKeys);
    assert_eq!(back.keys(), dirtsand.keys());
    assert_eq!(back.sessions(), own.sessions());
    assert!(back.notes().is_empty(), "{:?}", back.notes());
    assert_eq!(write_shard_keys(back.keys(), &lines(&back)), text);
}

#[test]
fn the_sample_of_our_own_format_finds_its_sessions() {
    let mut ring = KeyRing::default();
    ring.add(parse("shard.keys"));
    let mut found = 0;
    for (_, service, y, seed, rc4) in SESSIONS {
        let y = hex(y);
        let hint = SessionHint { service: Some(service), y: Some(&y), ..Default::default() };
        for candidate in ring.sessions(&hint) {
            assert_eq!(candidate.line.key.as_bytes()[..], hex(rc4));
            assert_eq!(candidate.line.seed.map(|seed| seed.to_vec()), Some(hex(seed)));
            assert_eq!(candidate.file, "shard.keys");
            found += 1;
        }
    }
    assert_eq!(found, 2);
    let late = SessionHint {
        client: Some("127.0.0.1:57904".parse().unwrap()),
        server: Some("127.0.0.1:14617".parse().unwrap()),
        ..Default::default()
    };
    assert_eq!(ring.sessions(&late).len(), 1);
}

#[test]
fn reports_and_debug_show_no_secret() {
    for (name, ..) in FILES {
        let file = parse(name);
        let report = Report::new(name, &bytes(name)).unwrap();
        assert!(report.opens(), "{name}");
        let mut ring = KeyRing::default();
        ring.add(file.clone());
        let mut program = crate::common::program();
        let path = format!("keys/{name}");
        let json = program
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .args(["keys", "check", "--json", &path])
            .output();
        let json = String::from_utf8(json.unwrap().stdout).unwrap();
        assert!(json.contains("\"kind\":\"private\""), "{json}");
        let shown = format!("{report}{report:?}{file:?}{ring:?}{json}").to_lowercase();
        for line in secrets(name) {
            assert!(!shown.contains(&line.to_lowercase()), "{name} shows a secret");
        }
    }
}

/// The first characters of every secret of a file, as a file might show it.
fn secrets(name: &str) -> Vec<String> {
    let bytes = bytes(name);
    let to_hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    match std::str::from_utf8(&bytes) {
        Ok(text) => {
            let marks = ["K = ", "k = \"", "key_a = ", " k=", "rc4=", "Private key:\n"];
            marks
                .iter()
                .flat_map(|mark| {
                    text.split(mark).skip(1).map(|rest| rest.chars().take(8).collect())
                })
                .collect()
        }
        Err(_) => vec![to_hex(&bytes[bytes.len() - 64..][..4])],
    }
}

#[test]
fn a_check_tells_sizes_and_servers() {
    let report = Report::new("dirtsand.ini", &bytes("dirtsand.ini")).unwrap();
    assert_eq!(
        report.to_string(),
        "dirtsand.ini: DIRTSAND configuration\n\
         \x20 auth        N d3cafaea…, 512 bits, safe prime; private exponent of 512 bits\n\
         \x20 game        N dc6f62df…, 512 bits, safe prime; private exponent of 512 bits\n\
         \x20 gatekeeper  N d3b2646a…, 512 bits, safe prime; private exponent of 512 bits\n"
    );
    let report = Report::new("server.ini", &bytes("server.ini")).unwrap();
    assert_eq!(report.public.len(), 3);
    assert!(!report.opens());
    assert!(report.to_string().ends_with("(Key.Auth.K of dirtsand.ini)\n"), "{report}");
}
