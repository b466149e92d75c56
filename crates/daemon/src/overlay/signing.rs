//! Signatures of announcements by Ed25519 (RFC 8032, by `ring`). A node's key for signatures is derived from its private key, so that one key
//! file is enough; other nodes are given its public half beside the node's public key.

use crate::transfer::{Keys, PublicKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use weir_overlay::site::Signature;
use zeroize::Zeroizing;

/// Length of a key in bytes.
const KEY: usize = 32;
/// What keys and signatures are for: a signature for another purpose is none of an announcement.
const PURPOSE: &[u8] = b"weir overlay announcement";

/// The length of a key, as HKDF asks for it (RFC 5869).
struct Length;

impl KeyType for Length {
    fn len(&self) -> usize {
        KEY
    }
}

/// The key by which a node signs.
pub(super) struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// The key of the owner of these keys; `None` if the cryptography refuses them.
    pub(super) fn of(keys: &Keys) -> Option<SigningKey> {
        let secret = Salt::new(HKDF_SHA256, PURPOSE).extract(keys.pair.private());
        let purpose = [PURPOSE];
        let mut seed = Zeroizing::new([0; KEY]);
        secret.expand(&purpose, Length).ok()?.fill(&mut seed[..]).ok()?;
        Ed25519KeyPair::from_seed_unchecked(&seed[..]).ok().map(SigningKey)
    }

    /// The public half.
    pub(super) fn public(&self) -> PublicKey {
        let mut public = [0; KEY];
        public.copy_from_slice(self.0.public_key().as_ref());
        PublicKey(public)
    }

    /// The signature of an announcement.
    pub(super) fn sign(&self, announcement: &[u8]) -> Signature {
        let mut signature = [0; size_of::<Signature>()];
        signature.copy_from_slice(self.0.sign(&[PURPOSE, announcement].concat()).as_ref());
        signature
    }
}

/// Whether a signature of an announcement is that of the owner of this key.
pub(super) fn verify(key: &PublicKey, announcement: &[u8], signature: &Signature) -> bool {
    let key = UnparsedPublicKey::new(&ED25519, &key.0);
    key.verify(&[PURPOSE, announcement].concat(), signature).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_of_one_key_and_one_announcement() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| Keys::generate(&folder.path().join(name)).unwrap());
        let [own, other] = [&a, &b].map(|keys| SigningKey::of(keys).unwrap());
        let signature = own.sign(b"links");
        assert!(verify(&own.public(), b"links", &signature));
        assert!(
            !verify(&own.public(), b"knots", &signature) && !verify(&other.public(), b"links", &signature)
        );
        assert_eq!(SigningKey::of(&a).unwrap().public(), own.public(), "the key file decides");
    }
}
