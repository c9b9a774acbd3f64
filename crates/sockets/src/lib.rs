//! Sockets of frontends and servers, for all protocols.
//!
//! | module | content |
//! | --- | --- |
//! | `listeners` | the listening sockets of a frontend |
//! | `threads` | the threads that serve clients |
//! | `starting` | slots for connections that are being admitted |
//! | `certificate_verifier` | verifies a server's certificate |
//! | `trusting` | trusted certificates, and TLS to a server |

mod certificate_verifier;
mod listeners;
mod starting;
mod threads;
mod trusting;

pub use certificate_verifier::CertificateCheck;
pub use listeners::{ClientSocket, Listeners, listen, wait_after};
pub use starting::{StartSlot, Starting};
pub use threads::{DetachedSocket, Portable, Threads};
pub use trusting::{URL_SETTING, certificates_of, trusting, unusable_pem, verifying};
