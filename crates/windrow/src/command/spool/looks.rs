//! Looking into files that a gateway works on.

use std::io::ErrorKind;

use windrow_spool::SpoolFault;

/// The exit status where the spool is damaged.
pub(super) const DAMAGED: u8 = 3;

/// The most attempts if a file is gone between being listed and being opened: a gateway that works
/// on
/// the spool removes what was applied.
pub(super) const LOOKS: usize = 20;

/// Returns true if a file is gone since it was listed.
pub(super) fn has_gone(fault: &SpoolFault) -> bool {
    matches!(fault, SpoolFault::System { source, .. } if source.kind() == ErrorKind::NotFound)
}
