//! Verifies a server's certificate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// The extent of verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateCheck {
    /// Nothing (`allow`, `prefer`, `require`): encryption protects only against passive listeners.
    Nothing,
    /// A trusted authority must have signed the certificate (`verify-ca`).
    Authority,
    /// In addition, the certificate must be for the host's name (`verify-full`).
    Name,
}

/// The verifier of a server's certificate in rustls, which follows [`CertificateCheck`].
#[derive(Debug)]
pub(crate) struct CertificateVerifier {
    check: CertificateCheck,
    roots: RootCertStore,
    /// Certificates that are themselves trusted. webpki does not accept an authority's certificate
    /// as a server's certificate, but a self-signed one is both, and `sslrootcert` is the usual way
    /// to trust it.
    pinned: Vec<CertificateDer<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
    /// True if the server has not proven that the certificate is its own.
    unproven: Arc<AtomicBool>,
}

impl CertificateVerifier {
    /// Returns the verifier. `unproven` is set if the server did not prove that the certificate is
    /// its own.
    pub(crate) fn new(
        check: CertificateCheck,
        roots: RootCertStore,
        pinned: Vec<CertificateDer<'static>>,
        provider: &CryptoProvider,
        unproven: Arc<AtomicBool>,
    ) -> Self {
        Self {
            check,
            roots,
            pinned,
            algorithms: provider.signature_verification_algorithms,
            unproven,
        }
    }

    /// Accepts a certificate that webpki cannot parse (X.509 version 1, from `openssl x509 -req`)
    /// if nothing is verified. Authentication must not be bound to it.
    fn excuse(
        &self,
        certificate: &CertificateDer<'_>,
        verified: Result<HandshakeSignatureValid, Error>,
    ) -> Result<HandshakeSignatureValid, Error> {
        if self.check == CertificateCheck::Nothing
            && ParsedCertificate::try_from(certificate).is_err()
        {
            self.unproven.store(true, Ordering::Relaxed);
            return Ok(HandshakeSignatureValid::assertion());
        }
        verified
    }
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.check == CertificateCheck::Nothing {
            return Ok(ServerCertVerified::assertion());
        }
        let certificate = ParsedCertificate::try_from(end_entity)?;
        if !self.pinned.contains(end_entity) {
            verify_server_cert_signed_by_trust_anchor(
                &certificate,
                &self.roots,
                intermediates,
                now,
                self.algorithms.all,
            )?;
        }
        if self.check == CertificateCheck::Name {
            verify_server_name(&certificate, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let verified = verify_tls12_signature(message, certificate, signed, &self.algorithms);
        self.excuse(certificate, verified)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let verified = verify_tls13_signature(message, certificate, signed, &self.algorithms);
        self.excuse(certificate, verified)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rustls::crypto::ring;

    use super::*;

    #[test]
    fn a_certificate_that_cannot_be_read_is_good_only_where_nothing_is_verified() {
        let provider = ring::default_provider();
        let unreadable = CertificateDer::from(vec![0x30, 0]);
        for (check, excused) in [
            (CertificateCheck::Nothing, true),
            (CertificateCheck::Authority, false),
            (CertificateCheck::Name, false),
        ] {
            let unproven = Arc::new(AtomicBool::new(false));
            let roots = RootCertStore::empty();
            let verifier =
                CertificateVerifier::new(check, roots, vec![], &provider, unproven.clone());
            let bad = Err(Error::General("unreadable".to_owned()));
            let verdict = verifier.excuse(&unreadable, bad);
            assert_eq!(verdict.is_ok(), excused, "{check:?}");
            // Nothing may be bound to what was not proven.
            assert_eq!(unproven.load(Ordering::Relaxed), excused);
            let name = ServerName::try_from("localhost").unwrap();
            let verdict =
                verifier.verify_server_cert(&unreadable, &[], &name, &[], UnixTime::now());
            assert_eq!(verdict.is_ok(), excused, "{check:?}");
        }
    }
}
