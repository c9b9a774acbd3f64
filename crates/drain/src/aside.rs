//! Files for entries that the table of dead letters does not accept.

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use windrow_core::{Fault, FaultClass};
use windrow_spool::files::write_all;
use windrow_spool::{Files as _, RealFiles};

/// Stores the bytes of an entry in a file of a folder, which is created if needed. Returns the
/// file's path once both are durable. If the file exists already, leaves it.
///
/// After a dropped future the file exists or not, but never in part.
pub(crate) async fn put(
    folder: &Path,
    (partition, position): (u32, u64),
    entry: Bytes,
) -> Result<PathBuf, Fault> {
    let (folder, name) = (folder.to_owned(), format!("{partition}-{position}.entry"));
    let writing = tokio::task::spawn_blocking(move || {
        let written = write(&folder, &name, &entry);
        written.map_err(|e| fault(&folder.join(name), &e))
    });
    let ended = |e| Fault::internal(format!("writing a file has ended badly: {e}"));
    writing.await.map_err(ended)?
}

fn write(folder: &Path, name: &str, entry: &[u8]) -> io::Result<PathBuf> {
    let folder = std::path::absolute(folder)?;
    RealFiles.make_directory(&folder)?;
    if let Some(above) = folder.parent() {
        RealFiles.sync_directory(above)?;
    }
    let path = folder.join(name);
    match std::fs::read(&path) {
        Ok(there) if there == entry => {}
        Ok(_) => {
            return Err(io::Error::other(
                "it is there, with other bytes: move it away",
            ));
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            // Only a complete and durable file gets the name.
            let unfinished = folder.join(format!("{name}.new"));
            match RealFiles.remove(&unfinished) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
            let file = RealFiles.create(&unfinished)?;
            write_all(&*file, entry, 0)?;
            file.sync()?;
            RealFiles.rename(&unfinished, &path)?;
        }
        Err(e) => return Err(e),
    }
    RealFiles.sync_directory(&folder)?;
    Ok(path)
}

fn fault(path: &Path, e: &io::Error) -> Fault {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    let code = match e.kind() {
        StorageFull | QuotaExceeded => "53100",
        _ => "58030",
    };
    let message = format!("the file {} cannot be written: {e}", path.display());
    Fault::new(FaultClass::Unavailable, code, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_entry_is_kept_whole_however_often_it_is_put() {
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join("rejected");
        // A crash has left a part of another attempt.
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("3-12.entry.new"), "by").unwrap();
        let entry = Bytes::from_static(b"bytes");
        for _ in 0..2 {
            let path = put(&folder, (3, 12), entry.clone()).await.unwrap();
            assert_eq!(path, folder.join("3-12.entry"));
            assert_eq!(std::fs::read(path).unwrap(), entry);
        }
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        let other = put(&folder, (3, 12), Bytes::from_static(b"other")).await;
        assert!(other.unwrap_err().message.contains("other bytes"));
        assert_eq!(std::fs::read(folder.join("3-12.entry")).unwrap(), entry);
    }

    #[tokio::test]
    async fn where_it_cannot_be_written_the_file_is_named() {
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join("missing").join("rejected");
        let fault = put(&folder, (0, 1), Bytes::new()).await.unwrap_err();
        assert!(fault.message.contains("0-1.entry"), "{fault}");
        assert!(fault.may_retry());
    }
}
