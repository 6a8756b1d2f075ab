//! The job's secret.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};

/// Thirty-two random bytes that only the ranks of a job and their launcher know.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl Secret {
    /// A new secret from the system's random number generator.
    pub fn generate() -> io::Result<Secret> {
        let mut bytes = [0; 32];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Secret(bytes))
    }

    /// The bytes, with which a rank proves that it belongs to the job.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The secret as 64 hexadecimal digits, for the environment.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Parses the text of [`to_hex`](Secret::to_hex); `None` for any other text.
    pub fn from_hex(text: &str) -> Option<Secret> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let high = char::from(pair[0]).to_digit(16)?;
            let low = char::from(pair[1]).to_digit(16)?;
            *byte = (high << 4 | low) as u8;
        }
        Some(Secret(bytes))
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
