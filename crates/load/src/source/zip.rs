//! Reads a zip archive that holds one file, as many downloads do.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use flate2::CrcReader;
use flate2::bufread::DeflateDecoder;
use zip::{CompressionMethod, ZipArchive};

/// The file in an archive, still packed.
pub(super) struct Member {
    pub(super) name: String,
    packed: io::Take<File>,
    method: CompressionMethod,
    size: u64,
    crc: u32,
}

impl Member {
    /// Finds the one file of an archive.
    ///
    /// # Errors
    /// There is none or more than one, or its packing is not supported.
    pub(super) fn of(mut file: File) -> Result<Self, String> {
        let damaged = |error| format!("the zip archive is damaged ({error}); fetch it again");
        let mut archive = ZipArchive::new(&mut file).map_err(damaged)?;
        // The files that macOS adds to an archive do not count.
        let is_meant = |name: &String| !name.ends_with('/') && !name.starts_with("__MACOSX/");
        let names: Result<Vec<_>, _> = archive.file_names().collect();
        let names = names.map_err(damaged)?.into_iter();
        let names: Vec<String> = names.map(Into::into).filter(is_meant).collect();
        let name = match names.as_slice() {
            [] => return Err("the zip archive holds no file".into()),
            [one] => one.clone(),
            [first, ..] => {
                return Err(format!(
                    "the zip archive holds {} files; name one: unzip -p FILE {first} | windrow load -",
                    names.len()
                ));
            }
        };
        let index = archive.index_for_name(&name).unwrap_or_default();
        let found = archive.by_index_raw(index).map_err(damaged)?;
        let (method, size, crc) = (found.compression(), found.size(), found.crc32());
        let (begins, length) = (
            found.data_start().unwrap_or_default(),
            found.compressed_size(),
        );
        let is_read = matches!(
            method,
            CompressionMethod::Stored | CompressionMethod::Deflated
        );
        if found.encrypted() || !is_read {
            let how = if found.encrypted() {
                "with a password".to_owned()
            } else {
                format!("by {method}")
            };
            return Err(format!(
                "the file in the zip archive is packed {how}, which is not read; unpack it before"
            ));
        }
        drop(found);
        drop(archive);
        file.seek(SeekFrom::Start(begins))
            .map_err(|error| error.to_string())?;
        Ok(Self {
            name,
            packed: file.take(length),
            method,
            size,
            crc,
        })
    }

    /// Unpacks the file. `wrap` wraps the reader of the archive.
    pub(super) fn unpack<R: Read + Send + 'static>(
        self,
        wrap: impl FnOnce(io::Take<File>) -> R,
    ) -> Box<dyn Read + Send> {
        let packed = BufReader::with_capacity(128 << 10, wrap(self.packed));
        let inner: Box<dyn Read + Send> = match self.method {
            CompressionMethod::Stored => Box::new(packed),
            _ => Box::new(DeflateDecoder::new(packed)),
        };
        Box::new(CheckedReader {
            inner: CrcReader::new(inner),
            size: self.size,
            crc: self.crc,
        })
    }
}

/// A reader that compares the unpacked bytes with the checksum of the archive.
struct CheckedReader {
    inner: CrcReader<Box<dyn Read + Send>>,
    size: u64,
    crc: u32,
}

impl Read for CheckedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.inner.read(buffer)?;
        let found = self.inner.crc();
        // The archive stores the size modulo 2^32.
        let is_whole =
            found.sum() == self.crc && u64::from(found.amount()) == self.size & 0xffff_ffff;
        match bytes {
            0 if !buffer.is_empty() && !is_whole => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "its checksum differs",
            )),
            _ => Ok(bytes),
        }
    }
}
