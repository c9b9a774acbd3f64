//! `tls-server-end-point` (RFC 5929, section 4): the hash of the server's certificate, by which
//! SCRAM-SHA-256-PLUS binds an authentication to this very TLS connection.

use rustls::crypto::CryptoProvider;
use rustls::crypto::hash::{Hash, HashAlgorithm};

use crate::wire::cursor::Cursor;

/// Returns the channel binding data for a certificate (DER); `None` if the hash of its signature is
/// not defined or unknown.
pub fn server_end_point(certificate: &[u8], provider: &CryptoProvider) -> Option<Vec<u8>> {
    let algorithm = hash_of(signature_algorithm(certificate)?)?;
    Some(
        hasher(provider, algorithm)?
            .hash(certificate)
            .as_ref()
            .to_vec(),
    )
}

/// Returns the object identifier of the algorithm that signed a certificate (DER):
/// `SEQUENCE { SEQUENCE { .. }, SEQUENCE { OBJECT IDENTIFIER, .. }, .. }`.
fn signature_algorithm(certificate: &[u8]) -> Option<&[u8]> {
    let mut certificate = Cursor::new(element(&mut Cursor::new(certificate), SEQUENCE)?);
    element(&mut certificate, SEQUENCE)?;
    let mut algorithm = Cursor::new(element(&mut certificate, SEQUENCE)?);
    element(&mut algorithm, OBJECT_IDENTIFIER)
}

const SEQUENCE: u8 = 0x30;
const OBJECT_IDENTIFIER: u8 = 0x06;

/// Returns the content of the next element, which must have this tag.
fn element<'a>(from: &mut Cursor<'a>, tag: u8) -> Option<&'a [u8]> {
    if from.u8()? != tag {
        return None;
    }
    let len = match from.u8()? {
        short @ 0..0x80 => usize::from(short),
        long => {
            let digits = from
                .bytes(usize::from(long & 0x7f))
                .filter(|d| d.len() <= 4)?;
            digits
                .iter()
                .fold(0, |len, digit| len << 8 | usize::from(*digit))
        }
    };
    from.bytes(len)
}

/// Returns the hash for an algorithm by RFC 5929: the signature's own, but SHA-256 instead of MD5
/// and SHA-1.
fn hash_of(algorithm: &[u8]) -> Option<HashAlgorithm> {
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];
    match (algorithm.strip_prefix(RSA), algorithm.strip_prefix(ECDSA)) {
        (Some([0x04 | 0x05 | 0x0b]), _) | (_, Some([0x01] | [0x03, 0x02])) => {
            Some(HashAlgorithm::SHA256)
        }
        (Some([0x0c]), _) | (_, Some([0x03, 0x03])) => Some(HashAlgorithm::SHA384),
        _ => None,
    }
}

/// Returns the provider's implementation of a hash, which is found through its cipher suites.
fn hasher(provider: &CryptoProvider, algorithm: HashAlgorithm) -> Option<&'static dyn Hash> {
    provider
        .cipher_suites
        .iter()
        .filter_map(|suite| suite.tls13())
        .map(|suite| suite.common.hash_provider)
        .find(|hash| hash.algorithm() == algorithm)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};
    use rustls::crypto::ring;

    use super::*;

    fn binding(algorithm: &'static rcgen::SignatureAlgorithm) -> Option<Vec<u8>> {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        server_end_point(certificate.der(), &ring::default_provider())
    }

    #[test]
    fn the_hash_is_that_of_the_signature() {
        let len = |algorithm| binding(algorithm).map(|hash| hash.len());
        assert_eq!(len(&rcgen::PKCS_ECDSA_P256_SHA256), Some(32));
        assert_eq!(len(&rcgen::PKCS_ECDSA_P384_SHA384), Some(48));
        // RFC 5929 names no hash for it.
        assert_eq!(len(&rcgen::PKCS_ED25519), None);
    }

    #[test]
    fn what_is_no_certificate_has_no_binding() {
        let provider = ring::default_provider();
        for bytes in [
            &[][..],
            &[0x30],
            &[0x30, 0x84],
            &[0x30, 0x88, 255, 255],
            &[0x30, 2, 0x30, 9],
        ] {
            assert_eq!(server_end_point(bytes, &provider), None);
        }
    }
}
