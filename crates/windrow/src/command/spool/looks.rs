//! Reads files that a gateway may be changing.

use std::io::ErrorKind;

use windrow_spool::SpoolFault;

/// The exit status if the spool is damaged.
pub(super) const DAMAGED: u8 = 3;

/// The most attempts if a file disappears between being listed and being opened: a running gateway
/// removes files that were applied.
pub(super) const LOOKS: usize = 20;

/// Returns true if a file has disappeared since it was listed.
pub(super) fn has_gone(fault: &SpoolFault) -> bool {
    matches!(fault, SpoolFault::System { source, .. } if source.kind() == ErrorKind::NotFound)
}
