//! The random mark of one claim.

use std::fmt;

/// 16 random bytes, new for each claim: they tell whose claim a row and a transaction are.
#[derive(Clone)]
pub(crate) struct ClaimToken {
    bytes: [u8; 16],
    hex: String,
}

impl ClaimToken {
    pub(crate) fn random() -> Self {
        let bytes: [u8; 16] = rand::random();
        Self {
            bytes,
            hex: hex::encode(bytes),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// 32 digits, safe inside an SQL literal or name.
    pub(crate) fn hex(&self) -> &str {
        &self.hex
    }
}

// A log that held the token would let apply forge the mark of its transaction.
impl fmt::Debug for ClaimToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClaimToken(..)")
    }
}
