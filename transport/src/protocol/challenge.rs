//! How both ends of a connection prove to each other that they hold the job's secret, before anything else is listened to.
//!
//! ```text
//!    connecting rank                      accepting rank
//!    request {greeting, mac of ("requests", greeting)} ──►   before there is a connection
//!    greeting {version, from, to, a} ──►
//!                                    ◄──  answer {b, mac of ("accepts", greeting, b)}
//!    seal {mac of ("connects", greeting, b)} ──►
//!    frames ──►
//! ```
//!
//! a and b are random numbers, each used once, so that no proof serves twice; the words in front keep an end's proof from being
//! sent back to it as its own; the ranks are in what is proved. A request, which goes with libfabric's own, keeps those without the
//! secret from having a connection, whose bytes the provider reads by itself; whoever overheard one may say it again, and doesn't get
//! past the challenge behind it. The mac is HMAC-SHA-256 under the secret. Pure functions:
//! the random numbers come from outside. What is said isn't encrypted.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

const MAGIC: [u8; 8] = *b"LONGSHOR";
const VERSION: u32 = 3;
/// Bytes of a number that is used once.
pub const NONCE: usize = 32;
const MAC: usize = 32;

/// Bytes of a greeting.
pub const GREETING: usize = 8 + 4 + 4 + 4 + NONCE;
/// Bytes of a request.
pub const REQUEST: usize = GREETING + MAC;
/// Bytes of an answer.
pub const ANSWER: usize = NONCE + MAC;
/// Bytes of a seal.
pub const SEAL: usize = MAC;

/// The longest message of a connection's beginning.
pub const LONGEST: usize = if GREETING > ANSWER { GREETING } else { ANSWER };

/// A number that is used once.
pub type Nonce = [u8; NONCE];

/// The job's secret, as the key of its proofs.
#[derive(Clone)]
pub struct Key(Vec<u8>);

/// What a connecting rank says first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Greeting {
    /// Itself, or so it says.
    pub from: u32,
    /// Whom it takes the other end for.
    pub to: u32,
    nonce: Nonce,
}

impl Greeting {
    /// Rank `from` to rank `to`.
    pub fn new(from: u32, to: u32, nonce: Nonce) -> Greeting {
        Greeting { from, to, nonce }
    }

    /// As it is said.
    pub fn encode(&self) -> [u8; GREETING] {
        let mut bytes = [0; GREETING];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.from.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.to.to_le_bytes());
        bytes[20..].copy_from_slice(&self.nonce);
        bytes
    }

    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Greeting, String> {
        let bytes: &[u8; GREETING] = bytes
            .try_into()
            .map_err(|_| format!("a greeting of {} bytes, not {GREETING}", bytes.len()))?;
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[at + i]));
        if bytes[..8] != MAGIC {
            return Err("a greeting that isn't Longshore's".to_owned());
        }
        if word(8) != VERSION {
            return Err(format!("version {} of the challenge, not {VERSION}", word(8)));
        }
        let mut nonce = [0; NONCE];
        nonce.copy_from_slice(&bytes[20..]);
        Ok(Greeting { from: word(12), to: word(16), nonce })
    }
}

impl Key {
    /// The key that a secret of any length is.
    pub fn new(secret: &[u8]) -> Key {
        Key(secret.to_vec())
    }

    fn mac(&self, end: &[u8; 8], greeting: &Greeting, nonce: &[u8]) -> Hmac<Sha256> {
        // Keys of HMAC may have any length.
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.0)
            .unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
        mac.update(end);
        mac.update(&greeting.encode());
        mac.update(nonce);
        mac
    }

    /// What a connecting rank asks for a connection with.
    pub fn request(&self, greeting: &Greeting) -> [u8; REQUEST] {
        let mut bytes = [0; REQUEST];
        bytes[..GREETING].copy_from_slice(&greeting.encode());
        let mac = self.mac(b"requests", greeting, &[]).finalize().into_bytes();
        bytes[GREETING..].copy_from_slice(&mac);
        bytes
    }

    /// Checks a request; the greeting that is to follow it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn requested(&self, request: &[u8]) -> Result<Greeting, String> {
        let request: &[u8; REQUEST] = request
            .try_into()
            .map_err(|_| format!("a request of {} bytes, not {REQUEST}", request.len()))?;
        let (greeting, proof) = request.split_at(GREETING);
        let greeting = Greeting::parse(greeting)?;
        let mac = self.mac(b"requests", &greeting, &[]);
        mac.verify_slice(proof).map_err(|_| NO_PROOF.to_owned())?;
        Ok(greeting)
    }

    /// What the accepting rank says to a greeting.
    pub fn answer(&self, greeting: &Greeting, nonce: &Nonce) -> [u8; ANSWER] {
        let mut bytes = [0; ANSWER];
        bytes[..NONCE].copy_from_slice(nonce);
        let mac = self.mac(b"accepts ", greeting, nonce).finalize().into_bytes();
        bytes[NONCE..].copy_from_slice(&mac);
        bytes
    }

    /// Checks an answer, and gives the seal for it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn seal(&self, greeting: &Greeting, answer: &[u8]) -> Result<[u8; SEAL], String> {
        let answer: &[u8; ANSWER] = answer
            .try_into()
            .map_err(|_| format!("an answer of {} bytes, not {ANSWER}", answer.len()))?;
        let mut nonce = [0; NONCE];
        nonce.copy_from_slice(&answer[..NONCE]);
        let proof = self.mac(b"accepts ", greeting, &nonce);
        proof.verify_slice(&answer[NONCE..]).map_err(|_| NO_PROOF.to_owned())?;
        let mut seal = [0; SEAL];
        seal.copy_from_slice(&self.mac(b"connects", greeting, &nonce).finalize().into_bytes());
        Ok(seal)
    }

    /// Checks the seal for an answer of this rank with `nonce` in it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, greeting: &Greeting, nonce: &Nonce, seal: &[u8]) -> Result<(), String> {
        let proof = self.mac(b"connects", greeting, nonce);
        proof.verify_slice(seal).map_err(|_| NO_PROOF.to_owned())
    }
}

const NO_PROOF: &str = "no proof that it holds the job's secret";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_with_the_secret_agree() {
        let key = Key::new(&[7; 32]);
        let greeting = Greeting::parse(&Greeting::new(3, 5, [1; NONCE]).encode()).unwrap();
        assert_eq!((greeting.from, greeting.to), (3, 5));
        let answer = key.answer(&greeting, &[2; NONCE]);
        let seal = key.seal(&greeting, &answer).unwrap();
        assert_eq!(key.check(&greeting, &[2; NONCE], &seal), Ok(()));
        // A proof serves its own connection, in its own direction, only.
        assert!(key.check(&greeting, &[3; NONCE], &seal).is_err());
        assert!(key.check(&Greeting { from: 4, ..greeting }, &[2; NONCE], &seal).is_err());
        assert!(key.check(&greeting, &[2; NONCE], &answer[NONCE..]).is_err());
    }

    #[test]
    fn requests_are_of_those_with_the_secret() {
        let (key, other) = (Key::new(&[7; 32]), Key::new(&[8; 32]));
        let greeting = Greeting::new(3, 5, [1; NONCE]);
        let request = key.request(&greeting);
        assert_eq!(key.requested(&request), Ok(greeting));
        assert!(other.requested(&request).is_err());
        for len in 0..REQUEST {
            assert!(key.requested(&request[..len]).is_err());
        }
        assert!(key.requested(&[&request[..], &[0]].concat()).is_err());
        // Neither the ranks nor the number can be others'.
        for bit in 0..REQUEST * 8 {
            let mut request = request;
            request[bit / 8] ^= 1 << (bit % 8);
            assert!(key.requested(&request).is_err(), "bit {bit}");
        }
        // Nor does a proof of the challenge do.
        let seal = key.seal(&greeting, &key.answer(&greeting, &[2; NONCE])).unwrap();
        assert!(key.requested(&[&greeting.encode()[..], &seal].concat()).is_err());
    }

    #[test]
    fn others_are_refused() {
        let (key, other) = (Key::new(&[7; 32]), Key::new(&[8; 32]));
        let greeting = Greeting::new(0, 1, [1; NONCE]);
        let answer = other.answer(&greeting, &[2; NONCE]);
        assert!(key.seal(&greeting, &answer).is_err());
        let seal = other.seal(&greeting, &answer).unwrap();
        assert!(key.check(&greeting, &[2; NONCE], &seal).is_err());
        assert!(key.check(&greeting, &[2; NONCE], b"").is_err());
        for bit in 0..ANSWER * 8 {
            let mut answer = key.answer(&greeting, &[2; NONCE]);
            answer[bit / 8] ^= 1 << (bit % 8);
            assert!(key.seal(&greeting, &answer).is_err(), "bit {bit}");
        }
        for len in 0..GREETING {
            assert!(Greeting::parse(&greeting.encode()[..len]).is_err());
        }
        for bit in 0..96 {
            let mut bytes = greeting.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Greeting::parse(&bytes).is_err(), "bit {bit}");
        }
    }
}
