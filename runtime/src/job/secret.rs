//! The job's secret.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};

use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

/// Thirty-two random bytes that only the ranks of a job and their launcher know. The memory is
/// overwritten when the value is dropped.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret([u8; 32]);

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl Secret {
    /// A new secret from the system's random number generator.
    pub fn generate() -> io::Result<Secret> {
        let mut secret = Secret([0; 32]);
        File::open("/dev/urandom")?.read_exact(&mut secret.0)?;
        Ok(secret)
    }

    /// The bytes, with which a rank proves that it belongs to the job.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The secret as 64 hexadecimal digits, for a launcher's messages.
    pub(crate) fn to_hex(&self) -> Zeroizing<String> {
        // All digits fit, so that no copy of the text is left behind by its growth.
        let mut text = Zeroizing::new(String::with_capacity(64));
        for digit in self.0.iter().flat_map(|byte| [byte >> 4, byte & 15]) {
            text.extend(char::from_digit(digit.into(), 16));
        }
        text
    }

    /// Parses the text of [`to_hex`](Secret::to_hex); `None` for any other text.
    pub(crate) fn from_hex(text: &str) -> Option<Secret> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut secret = Secret([0; 32]);
        for (byte, pair) in secret.0.iter_mut().zip(digits.chunks_exact(2)) {
            let high = char::from(pair[0]).to_digit(16)?;
            let low = char::from(pair[1]).to_digit(16)?;
            *byte = (high << 4 | low) as u8;
        }
        Some(secret)
    }
}

/// Doesn't show the bytes, so that no log can contain them.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_digits_round_trip_and_debug_hides_the_bytes() {
        let secret = Secret::generate().unwrap();
        assert_eq!(Secret::from_hex(&secret.to_hex()), Some(secret.clone()));
        assert_ne!(Secret::generate().unwrap(), secret);
        assert_eq!(Secret::from_hex(""), None);
        assert_eq!(Secret::from_hex(&"0g".repeat(32)), None);
        assert_eq!(Secret::from_hex(&"+1".repeat(32)), None);
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }
}
