//! Parses sizes in memory.

use anyhow::{Context, ensure};

/// Returns a size in bytes, or its default if none is written. `name` is the setting's name.
pub(super) fn bytes(
    name: &str,
    size: Option<bytesize::ByteSize>,
    default: usize,
) -> anyhow::Result<usize> {
    let Some(size) = size else { return Ok(default) };
    ensure!(size.as_u64() > 0, "{name} must be more than 0 bytes");
    usize::try_from(size.as_u64())
        .with_context(|| format!("{name}: {size} is more than this machine can address"))
}
