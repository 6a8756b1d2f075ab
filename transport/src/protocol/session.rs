//! The encryption of a connection's messages, for jobs that ask for it.
//!
//! ```text
//!    connecting rank                                   accepting rank
//!    a: public key of a new X25519 key pair            b: public key of a new X25519 key pair
//!
//!    shared = X25519(own private key, the other's public key)
//!    salt   = mac of ("encrypts", greeting, b)
//!    keys   = HKDF-SHA-256(salt, shared), one for each direction
//!    message as it travels = AES-256-GCM(key of the direction, number of the message), tag
//! ```
//!
//! a and b are the nonces of the [challenge](super::challenge), whose MACs prove that both come
//! from holders of the job's secret. Key pairs are made for one connection and dropped when its
//! keys are known. So a recorded connection stays unreadable, even for a reader who learns the
//! secret later.
//!
//! Both ends count the messages of each direction. The count is the cipher's nonce and doesn't
//! travel. So a message that was altered, repeated, left out or moved doesn't open, nor does one of
//! another connection. After 65,536 messages both ends replace the key of the direction, as
//! Noise's Rekey does, and the count begins again. So no nonce is used twice with a key.
//!
//! The lengths and times of messages stay visible. So do the greetings, with the numbers of the two
//! ranks, and the farewell's presence.

use std::fmt;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce as Number, UnboundKey};
use ring::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::SystemRandom;
use zeroize::Zeroizing;

use super::challenge::{Greeting, Key, Nonce};

/// Bytes after an encrypted message, by which its receiver notices changes.
pub const TAG: usize = 16;

/// The messages of one key. If all are of the longest frames, they have 2^30 of the cipher's
/// blocks. TLS 1.3 replaces such keys after 2^34 blocks (RFC 8446, section 5.5).
const MESSAGES: u64 = 1 << 16;

/// The number with which the next key is made. No message has it.
const REKEY: u64 = u64::MAX;

/// One of the two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The end that has made the connection.
    Connecting,
    /// The end that has accepted it.
    Accepting,
}

impl End {
    fn other(self) -> End {
        match self {
            End::Connecting => End::Accepting,
            End::Accepting => End::Connecting,
        }
    }

    /// The words for which the key is made that this end sends with.
    fn words(self) -> &'static [u8] {
        match self {
            End::Connecting => b"from the connecting rank",
            End::Accepting => b"from the accepting rank",
        }
    }
}

/// What protects the messages of a connection, at one of its ends.
pub enum Protection {
    /// Nothing: messages travel as they are.
    Plain,
    /// The private key of this end, until the keys are known.
    Agreeing(Agreement),
    /// Encryption.
    Encrypted(Box<Session>),
    /// No keys were agreed on: no message is sent or opened.
    Failed,
}

impl fmt::Debug for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protection::Plain => "Plain",
            Protection::Agreeing(_) => "Agreeing(..)",
            Protection::Encrypted(_) => "Encrypted(..)",
            Protection::Failed => "Failed",
        })
    }
}

/// The private key of an end, which serves for one connection.
pub struct Agreement(EphemeralPrivateKey);

/// The keys of both directions.
pub struct Session {
    sent: Stream,
    received: Stream,
}

/// The messages of one direction.
struct Stream {
    key: LessSafeKey,
    /// The number of messages with this key.
    count: u64,
}

impl Protection {
    /// A new key pair: the end's protection, and its nonce for the challenge.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn encrypted() -> Result<(Protection, Nonce), String> {
        let make = || {
            let private = EphemeralPrivateKey::generate(&X25519, &SystemRandom::new())?;
            let public = private.compute_public_key()?;
            Ok((private, public))
        };
        let made = make();
        let (private, public) =
            made.map_err(|_: ring::error::Unspecified| "no random numbers for keys".to_owned())?;
        let mut nonce = Nonce::default();
        nonce.copy_from_slice(public.as_ref());
        Ok((Protection::Agreeing(Agreement(private)), nonce))
    }

    /// Makes the keys, once the challenge has proved `greeting` and the accepting rank's nonce `b`.
    /// Without encryption, does nothing. After an error the connection has no keys, and must be
    /// closed.
    ///
    /// # Errors
    /// The other end's nonce is no public key, or the ends have agreed before.
    pub fn agree(
        &mut self,
        end: End,
        key: &Key,
        greeting: &Greeting,
        b: &Nonce,
    ) -> Result<(), String> {
        // Whatever fails, the connection never becomes a plain one.
        *self = match std::mem::replace(self, Protection::Failed) {
            Protection::Plain => Protection::Plain,
            Protection::Agreeing(own) => {
                let session = Session::new(end, own, key, greeting, b)?;
                Protection::Encrypted(Box::new(session))
            }
            Protection::Encrypted(_) | Protection::Failed => {
                return Err("the ends agree on keys once".to_owned());
            }
        };
        Ok(())
    }

    /// The bytes that a message is longer as it travels.
    pub fn overhead(&self) -> usize {
        if matches!(self, Protection::Plain) { 0 } else { TAG }
    }

    /// Encrypts the message in the first `len` bytes of `room`. Returns its length as it travels.
    ///
    /// The message must be sent, and before those that are encrypted later.
    ///
    /// # Panics
    /// If the room has no [`overhead`](Protection::overhead), or if the keys aren't known.
    pub fn seal(&mut self, room: &mut [u8], len: usize) -> usize {
        match self {
            Protection::Plain => len,
            Protection::Agreeing(_) => panic!("a message before the keys are known"),
            Protection::Failed => panic!("a message without keys"),
            Protection::Encrypted(session) => {
                session.sent.seal(&mut room[..len + TAG]);
                len + TAG
            }
        }
    }

    /// Decrypts a received message in place. Returns its length.
    ///
    /// # Errors
    /// The message isn't the next one that the other end has sent. The connection must be closed,
    /// and the content of `message` is unspecified.
    pub fn open(&mut self, message: &mut [u8]) -> Result<usize, String> {
        match self {
            Protection::Plain => Ok(message.len()),
            Protection::Agreeing(_) => Err("a message before the keys are known".to_owned()),
            Protection::Failed => Err("a message without keys".to_owned()),
            Protection::Encrypted(session) => session.received.open(message),
        }
    }
}

impl Session {
    fn new(
        end: End,
        own: Agreement,
        key: &Key,
        greeting: &Greeting,
        b: &Nonce,
    ) -> Result<Session, String> {
        let theirs = match end {
            End::Connecting => b,
            End::Accepting => greeting.nonce(),
        };
        let salt = Salt::new(HKDF_SHA256, &*key.salt(greeting, b));
        let secret = |shared: &[u8]| salt.extract(shared);
        let agreed = agree_ephemeral(own.0, &UnparsedPublicKey::new(&X25519, theirs), secret);
        let agreed = agreed.map_err(|_| "a nonce that is no public key of X25519".to_owned())?;
        let stream = |from: End| {
            let words = [from.words()];
            let key = agreed.expand(&words, &AES_256_GCM);
            // HKDF gives keys of this length.
            let key = key.unwrap_or_else(|_| unreachable!("a key of AES-256 has 32 bytes"));
            Stream { key: LessSafeKey::new(UnboundKey::from(key)), count: 0 }
        };
        Ok(Session { sent: stream(end), received: stream(end.other()) })
    }
}

impl Stream {
    /// The nonce of the next message.
    fn next_number(&mut self) -> Number {
        if self.count == MESSAGES {
            *self = Stream { key: self.next_key(), count: 0 };
        }
        let number = number(self.count);
        self.count += 1;
        number
    }

    /// The key after this one: 32 zeros, encrypted under a number that no message has.
    fn next_key(&self) -> LessSafeKey {
        let mut bytes = Zeroizing::new([0; 32]);
        let sealed =
            self.key.seal_in_place_separate_tag(number(REKEY), Aad::empty(), &mut bytes[..]);
        let key = sealed.and_then(|_| UnboundKey::new(&AES_256_GCM, &bytes[..]));
        LessSafeKey::new(key.unwrap_or_else(|_| unreachable!("32 bytes are a key of AES-256")))
    }

    /// Encrypts all but the last [`TAG`] bytes, which it writes.
    fn seal(&mut self, message: &mut [u8]) {
        let number = self.next_number();
        let (bytes, tag) = message.split_at_mut(message.len() - TAG);
        let sealed = self.key.seal_in_place_separate_tag(number, Aad::empty(), bytes);
        let made = sealed.unwrap_or_else(|_| unreachable!("a message is shorter than 64 GiB"));
        tag.copy_from_slice(made.as_ref());
    }

    fn open(&mut self, message: &mut [u8]) -> Result<usize, String> {
        let number = self.next_number();
        let opened = self.key.open_in_place(number, Aad::empty(), message);
        opened.map(|bytes| bytes.len()).map_err(|_| ALTERED.to_owned())
    }
}

fn number(count: u64) -> Number {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&count.to_be_bytes());
    Number::assume_unique_for_key(bytes)
}

const ALTERED: &str = "a message was altered, repeated or left out on the way";

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ends of a connection whose challenge has passed.
    fn ends(here: &Key, there: &Key) -> [Protection; 2] {
        let (mut connecting, a) = Protection::encrypted().unwrap();
        let (mut accepting, b) = Protection::encrypted().unwrap();
        let greeting = Greeting::encrypted(3, 5, a);
        connecting.agree(End::Connecting, here, &greeting, &b).unwrap();
        accepting.agree(End::Accepting, there, &greeting, &b).unwrap();
        [connecting, accepting]
    }

    fn pair() -> [Protection; 2] {
        let key = Key::new(&[7; 32]);
        ends(&key, &key)
    }

    /// A message as it travels.
    fn sealed(from: &mut Protection, message: &[u8]) -> Vec<u8> {
        let mut room = [message, &[0; TAG]].concat();
        let len = from.seal(&mut room, message.len());
        room.truncate(len);
        room
    }

    fn opened(by: &mut Protection, mut message: Vec<u8>) -> Result<Vec<u8>, String> {
        let len = by.open(&mut message)?;
        message.truncate(len);
        Ok(message)
    }

    #[test]
    fn each_end_opens_what_the_other_has_sealed() {
        let [mut left, mut right] = pair();
        for message in [&b"first"[..], b"", &[9; 300_000]] {
            let travels = sealed(&mut left, message);
            assert_eq!(travels.len(), message.len() + TAG);
            assert!(message.len() < 5 || !travels.windows(5).any(|part| part == &message[..5]));
            assert_eq!(opened(&mut right, travels).as_deref(), Ok(message));
            let travels = sealed(&mut right, message);
            assert_eq!(opened(&mut left, travels).as_deref(), Ok(message));
        }
    }

    #[test]
    fn plain_messages_stay_as_they_are() {
        let mut plain = Protection::Plain;
        plain
            .agree(End::Accepting, &Key::new(b""), &Greeting::new(0, 1, [1; 32]), &[2; 32])
            .unwrap();
        assert_eq!((plain.overhead(), sealed(&mut plain, b"abc")), (0, b"abc".to_vec()));
        assert_eq!(opened(&mut plain, b"abc".to_vec()).as_deref(), Ok(&b"abc"[..]));
    }

    #[test]
    fn altered_messages_are_refused() {
        for bit in 0..(6 + TAG) * 8 {
            let [mut left, mut right] = pair();
            let mut travels = sealed(&mut left, b"sealed");
            travels[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(opened(&mut right, travels), Err(ALTERED.to_owned()), "bit {bit}");
        }
        for len in 0..6 + TAG {
            let [mut left, mut right] = pair();
            let mut travels = sealed(&mut left, b"sealed");
            travels.truncate(len);
            assert!(opened(&mut right, travels).is_err(), "{len} bytes");
        }
    }

    #[test]
    fn repeated_lost_and_moved_messages_are_refused() {
        let [mut left, mut right] = pair();
        let [one, two, three] = [b"1", b"2", b"3"].map(|message| sealed(&mut left, message));
        assert!(opened(&mut right, one.clone()).is_ok());
        assert!(opened(&mut right, one).is_err(), "repeated");
        // The next number is two's, whatever became of the message before.
        assert!(opened(&mut right, two).is_err(), "after a message that was inserted");
        let own = sealed(&mut right, b"4");
        assert!(opened(&mut right, own).is_err(), "reflected");
        let [_, mut right] = pair();
        assert!(opened(&mut right, three).is_err(), "of another connection");
        let [mut left, mut right] = pair();
        sealed(&mut left, b"lost");
        assert!(opened(&mut right, sealed(&mut left, b"next")).is_err(), "after a lost one");
    }

    #[test]
    fn keys_are_replaced_and_no_number_is_used_twice() {
        let [mut left, mut right] = pair();
        let mut seen = Vec::new();
        let mut pass = |left: &mut Protection, right: &mut Protection| {
            let travels = sealed(left, &[0; 8]);
            assert!(!seen.contains(&travels), "a number was used twice with a key");
            seen.push(travels.clone());
            assert!(opened(right, travels).is_ok());
            let Protection::Encrypted(session) = left else { panic!("{left:?}") };
            session.sent.count
        };
        let counts: Vec<_> = (0..3).map(|_| pass(&mut left, &mut right)).collect();
        assert_eq!(counts, [1, 2, 3]);
        for _ in 0..3 {
            for end in [&mut left, &mut right] {
                let Protection::Encrypted(session) = end else { panic!("{end:?}") };
                (session.sent.count, session.received.count) = (MESSAGES - 2, MESSAGES - 2);
            }
            let counts: Vec<_> = (0..4).map(|_| pass(&mut left, &mut right)).collect();
            assert_eq!(counts, [MESSAGES - 1, MESSAGES, 1, 2]);
        }
    }

    /// The ranks of a connection may be on machines of different byte order.
    #[test]
    fn messages_are_sealed_alike_on_every_machine() {
        let key = UnboundKey::new(&AES_256_GCM, &[7; 32]).unwrap();
        let mut stream = Stream { key: LessSafeKey::new(key), count: MESSAGES - 1 };
        let mut sealed = || {
            let mut message = [&b"sealed"[..], &[0; TAG]].concat();
            stream.seal(&mut message);
            message.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        // The last message of a key, and the first of the next, as OpenSSL seals them.
        let last = "8c37f97f001cb130db2f295c021f2f09cc2c7c948c42";
        let first = "48dc1f6de705a74e70af8d0072cd4bab83fab6be776c";
        assert_eq!([sealed(), sealed()], [last, first]);
    }

    #[test]
    fn ends_with_other_secrets_or_greetings_have_other_keys() {
        let [mut left, mut right] = ends(&Key::new(&[7; 32]), &Key::new(&[8; 32]));
        assert!(opened(&mut right, sealed(&mut left, b"sealed")).is_err());
        let key = Key::new(&[7; 32]);
        let (mut connecting, a) = Protection::encrypted().unwrap();
        let (mut accepting, b) = Protection::encrypted().unwrap();
        connecting.agree(End::Connecting, &key, &Greeting::encrypted(3, 5, a), &b).unwrap();
        accepting.agree(End::Accepting, &key, &Greeting::encrypted(4, 5, a), &b).unwrap();
        assert!(opened(&mut accepting, sealed(&mut connecting, b"sealed")).is_err());
    }

    #[test]
    fn nonces_that_are_no_public_keys_are_refused() {
        let (mut connecting, a) = Protection::encrypted().unwrap();
        let greeting = Greeting::encrypted(3, 5, a);
        // A point of small order, with which every private key has the same shared secret.
        let agreed = connecting.agree(End::Connecting, &Key::new(b""), &greeting, &[0; 32]);
        assert!(agreed.unwrap_err().contains("no public key"));
    }

    #[test]
    fn no_message_passes_after_a_failed_agreement() {
        let key = Key::new(&[7; 32]);
        let (mut connecting, a) = Protection::encrypted().unwrap();
        let greeting = Greeting::encrypted(3, 5, a);
        connecting.agree(End::Connecting, &key, &greeting, &[0; 32]).unwrap_err();
        assert_eq!(connecting.overhead(), TAG);
        assert!(opened(&mut connecting, b"plain".to_vec()).is_err());
        // Another attempt doesn't make keys either.
        let (_, b) = Protection::encrypted().unwrap();
        connecting.agree(End::Connecting, &key, &greeting, &b).unwrap_err();
        assert!(opened(&mut connecting, b"plain".to_vec()).is_err());
        // Nor does a second one for a connection that has keys.
        let [mut left, _] = pair();
        left.agree(End::Connecting, &key, &greeting, &b).unwrap_err();
        assert!(opened(&mut left, b"plain".to_vec()).is_err());
    }

    #[test]
    #[should_panic(expected = "a message without keys")]
    fn no_message_is_sent_after_a_failed_agreement() {
        let (mut connecting, a) = Protection::encrypted().unwrap();
        let greeting = Greeting::encrypted(3, 5, a);
        let agreed = connecting.agree(End::Connecting, &Key::new(b""), &greeting, &[0; 32]);
        assert!(agreed.is_err());
        sealed(&mut connecting, b"plain");
    }
}
