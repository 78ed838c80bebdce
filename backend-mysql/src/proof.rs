//! Random values that show whose reply, transaction or row it is.

use std::fmt;

/// Selected in a request and read back from its reply. A statement that `apply` abandoned leaves
/// its reply unread, and every later request is then given the reply of the one before; only the
/// nonce of the right request shows that it isn't so.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nonce([u8; 16]);

/// Which claim a row and a savepoint belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token([u8; 16]);

macro_rules! random_bytes {
    ($name:ident) => {
        impl $name {
            pub(crate) fn random() -> Self {
                Self(rand::random())
            }

            pub(crate) fn is(&self, bytes: &[u8]) -> bool {
                self.0 == bytes
            }
        }

        /// Lower-case hex.
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&hex::encode(self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

random_bytes!(Nonce);
random_bytes!(Token);
