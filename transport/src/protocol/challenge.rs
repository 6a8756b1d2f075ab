//! The challenge by which both ends of a connection prove that they hold the job's secret.
//!
//! ```text
//!    connecting rank                      accepting rank
//!    request {greeting, mac of ("requests", greeting)} ──►   before there is a connection
//!    greeting {version, encrypts, from, to, a} ──►
//!                                    ◄──  answer {b, mac of ("accepts", greeting, b)}
//!    seal {mac of ("connects", greeting, b)} ──►
//!    frames ──►
//! ```
//!
//! Neither end processes other messages before the other end's proof. The MAC is HMAC-SHA-256 with
//! the job's secret as its key.
//!
//! - a and b are nonces, random numbers that are used once, so no proof is valid twice.
//! - The words ("requests", "accepts", "connects") prevent an end's proof from being reflected to
//!   it as the other end's proof.
//! - The MACs cover both ranks.
//! - The request travels with libfabric's connection request. It denies strangers a connection,
//!   whose bytes the provider would read by itself. An eavesdropper may replay a request, but can't
//!   pass the challenge that follows.
//!
//! These are pure functions: the caller provides the nonces. If the job's messages are
//! [encrypted](super::session), the greeting says so, and the nonces are public keys.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

const MAGIC: [u8; 8] = *b"LONGSHOR";
const VERSION: u16 = 3;
/// Bytes of a nonce.
pub const NONCE: usize = 32;
const MAC: usize = 32;

/// Bytes of a greeting.
pub const GREETING: usize = 8 + 2 + 2 + 4 + 4 + NONCE;
/// Bytes of a request.
pub const REQUEST: usize = GREETING + MAC;
/// Bytes of an answer.
pub const ANSWER: usize = NONCE + MAC;
/// Bytes of a seal.
pub const SEAL: usize = MAC;

/// The longest message of the challenge.
pub const LONGEST: usize = if GREETING > ANSWER { GREETING } else { ANSWER };

/// A random number that is used once.
pub type Nonce = [u8; NONCE];

/// The job's secret, as the key of the MACs. Its memory is overwritten when it is dropped.
#[derive(Clone)]
pub struct Key(Zeroizing<Vec<u8>>);

/// The first message of a connecting rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Greeting {
    /// The rank that the sender claims to be.
    pub from: u32,
    /// The rank that the sender expects at the other end.
    pub to: u32,
    /// Whether the sender encrypts all later messages, and expects encrypted ones.
    pub encrypts: bool,
    nonce: Nonce,
}

impl Greeting {
    /// A greeting from rank `from` to rank `to`, before messages that aren't encrypted.
    pub fn new(from: u32, to: u32, nonce: Nonce) -> Greeting {
        Greeting { from, to, encrypts: false, nonce }
    }

    /// A greeting before messages that are [encrypted](super::session). The nonce is a public key.
    pub fn encrypted(from: u32, to: u32, nonce: Nonce) -> Greeting {
        Greeting { from, to, encrypts: true, nonce }
    }

    /// The connecting rank's nonce.
    pub fn nonce(&self) -> &Nonce {
        &self.nonce
    }

    /// The greeting as it travels.
    pub fn encode(&self) -> [u8; GREETING] {
        let mut bytes = [0; GREETING];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[10..12].copy_from_slice(&u16::from(self.encrypts).to_le_bytes());
        bytes[12..16].copy_from_slice(&self.from.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.to.to_le_bytes());
        bytes[20..].copy_from_slice(&self.nonce);
        bytes
    }

    /// Parses a greeting.
    ///
    /// # Errors
    /// Describes the invalid field.
    pub fn parse(bytes: &[u8]) -> Result<Greeting, String> {
        let bytes: &[u8; GREETING] = bytes
            .try_into()
            .map_err(|_| format!("a greeting of {} bytes, not {GREETING}", bytes.len()))?;
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[at + i]));
        if bytes[..8] != MAGIC {
            return Err("a greeting that isn't Longshore's".to_owned());
        }
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        if version != VERSION {
            return Err(format!("version {version} of the challenge, not {VERSION}"));
        }
        let encrypts = match u16::from_le_bytes([bytes[10], bytes[11]]) {
            0 => false,
            1 => true,
            other => return Err(format!("an unknown protection of messages, {other}")),
        };
        let mut nonce = [0; NONCE];
        nonce.copy_from_slice(&bytes[20..]);
        Ok(Greeting { from: word(12), to: word(16), encrypts, nonce })
    }
}

impl Key {
    /// The key of a secret, which may have any length.
    pub fn new(secret: &[u8]) -> Key {
        Key(Zeroizing::new(secret.to_vec()))
    }

    fn mac(&self, end: &[u8; 8], greeting: &Greeting, nonce: &[u8]) -> Hmac<Sha256> {
        // The keys of HMAC may have any length.
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.0)
            .unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
        mac.update(end);
        mac.update(&greeting.encode());
        mac.update(nonce);
        mac
    }

    /// What binds the keys of a connection to the secret and to the challenge.
    pub(super) fn salt(&self, greeting: &Greeting, nonce: &Nonce) -> Zeroizing<[u8; MAC]> {
        Zeroizing::new(self.mac(b"encrypts", greeting, nonce).finalize().into_bytes().into())
    }

    /// The request of a connecting rank for a connection.
    pub fn request(&self, greeting: &Greeting) -> [u8; REQUEST] {
        let mut bytes = [0; REQUEST];
        bytes[..GREETING].copy_from_slice(&greeting.encode());
        let mac = self.mac(b"requests", greeting, &[]).finalize().into_bytes();
        bytes[GREETING..].copy_from_slice(&mac);
        bytes
    }

    /// Checks a request. Returns the greeting that must follow it.
    ///
    /// # Errors
    /// Describes the violation.
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

    /// The accepting rank's answer to a greeting.
    pub fn answer(&self, greeting: &Greeting, nonce: &Nonce) -> [u8; ANSWER] {
        let mut bytes = [0; ANSWER];
        bytes[..NONCE].copy_from_slice(nonce);
        let mac = self.mac(b"accepts ", greeting, nonce).finalize().into_bytes();
        bytes[NONCE..].copy_from_slice(&mac);
        bytes
    }

    /// Checks an answer, and returns the seal for it.
    ///
    /// # Errors
    /// Describes the violation.
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

    /// Checks the seal for this rank's answer with `nonce`.
    ///
    /// # Errors
    /// Describes the violation.
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
    fn holders_of_the_secret_accept_each_other() {
        let key = Key::new(&[7; 32]);
        let greeting = Greeting::parse(&Greeting::new(3, 5, [1; NONCE]).encode()).unwrap();
        assert_eq!((greeting.from, greeting.to), (3, 5));
        let answer = key.answer(&greeting, &[2; NONCE]);
        let seal = key.seal(&greeting, &answer).unwrap();
        assert_eq!(key.check(&greeting, &[2; NONCE], &seal), Ok(()));
        // A proof is valid only for its own connection, and only in its own direction.
        assert!(key.check(&greeting, &[3; NONCE], &seal).is_err());
        assert!(key.check(&Greeting { from: 4, ..greeting }, &[2; NONCE], &seal).is_err());
        assert!(key.check(&greeting, &[2; NONCE], &answer[NONCE..]).is_err());
    }

    #[test]
    fn only_unchanged_requests_of_secret_holders_are_accepted() {
        let (key, other) = (Key::new(&[7; 32]), Key::new(&[8; 32]));
        let greeting = Greeting::new(3, 5, [1; NONCE]);
        let request = key.request(&greeting);
        assert_eq!(key.requested(&request), Ok(greeting));
        assert!(other.requested(&request).is_err());
        for len in 0..REQUEST {
            assert!(key.requested(&request[..len]).is_err());
        }
        assert!(key.requested(&[&request[..], &[0]].concat()).is_err());
        // A changed rank or nonce invalidates the request.
        for bit in 0..REQUEST * 8 {
            let mut request = request;
            request[bit / 8] ^= 1 << (bit % 8);
            assert!(key.requested(&request).is_err(), "bit {bit}");
        }
        // A proof of the challenge is no proof for a request.
        let seal = key.seal(&greeting, &key.answer(&greeting, &[2; NONCE])).unwrap();
        assert!(key.requested(&[&greeting.encode()[..], &seal].concat()).is_err());
    }

    #[test]
    fn proofs_and_greetings_without_the_secret_are_rejected() {
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
            // One bit says that messages are encrypted. No request has a proof for another one.
            let read = Greeting::parse(&bytes);
            assert_eq!(read.is_ok_and(|read| read.encrypts), bit == 80, "bit {bit}");
        }
    }
}
