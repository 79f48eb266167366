//! Connections to the AuthServer: recognised, but not decoded, because they speak another protocol.

use crate::session::{Declaration, Framing, Resync, TableSession};
use crate::table::Tables;

/// A session that counts an AuthServer's bytes and reads none of them.
pub fn session(tables: &Tables) -> TableSession {
    let declared = Declaration {
        name: "auth_server".into(),
        service: None,
        framing: Framing::LeftAlone,
        resync: Resync::NextPiece,
        remark: Some(
            "the AuthServer's own protocol by its port, which is not the one of links; left alone",
        ),
    };
    TableSession::new(declared, tables)
}
