//! The bytes of a file or standard input, unpacked and in UTF-8.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::decode;
use super::fault::SourceFault;
use super::zip::Member;

/// Bytes that show the format of a file.
const HEAD: usize = 512;

/// Bytes that show that a file is the one that an earlier run began to load.
pub const IDENTIFYING_BYTES: usize = 64 << 10;

/// The damage of an archive, passed through `io::Error`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct ArchiveDamage(pub(super) String);

/// A stream of bytes, and the number of bytes read.
pub(super) struct RawInput {
    /// The file, or `standard input`.
    pub(super) name: String,
    pub(super) reader: Box<dyn Read + Send>,
    /// The first bytes, unpacked. The reader returns them too.
    pub(super) head: Vec<u8>,
    /// The file itself, if it is one and is not packed: for formats that are not read in order.
    pub(super) file: Option<File>,
    read: Arc<AtomicU64>,
}

/// A reader that counts bytes.
struct CountingReader<R> {
    inner: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.inner.read(buffer)?;
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}

/// The packing of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Gzip,
    Zstd,
    Zip,
}

impl Packing {
    /// Recognises the packing by the magic numbers of RFC 1952 and RFC 8878 (a zstd file may begin
    /// with a skippable frame).
    fn of(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Some(Self::Zip),
            [first, 0x2a, 0x4d, 0x18, ..] if first & 0xf0 == 0x50 => Some(Self::Zstd),
            _ => None,
        }
    }

    fn by_name(name: &str) -> Option<Self> {
        let extension = Path::new(name).extension()?.to_str()?;
        match extension.to_ascii_lowercase().as_str() {
            "gz" => Some(Self::Gzip),
            "zst" | "zstd" => Some(Self::Zstd),
            "zip" => Some(Self::Zip),
            _ => None,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Zip => "zip",
        }
    }

    /// Unpacks a stream, which is possible for all packings but zip.
    fn unpack(self, packed: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::Gzip => {
                let packed = BufReader::with_capacity(128 << 10, packed);
                self.reader(flate2::bufread::MultiGzDecoder::new(packed))
            }
            Self::Zstd => self.reader(zstd::Decoder::new(packed)?),
            Self::Zip => packed,
        })
    }

    fn reader(self, inner: impl Read + Send + 'static) -> Box<dyn Read + Send> {
        Box::new(UnpackingReader {
            inner,
            packing: self,
        })
    }
}

/// A reader of an archive whose errors name the problem and what to do.
struct UnpackingReader<R> {
    inner: R,
    packing: Packing,
}

impl<R: Read> Read for UnpackingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer).map_err(|error| {
            let packing = self.packing.as_str();
            match error.kind() {
                io::ErrorKind::Interrupted => error,
                io::ErrorKind::UnexpectedEof => io::Error::other(ArchiveDamage(format!(
                    "the {packing} archive is cut off: it ends before its end mark; fetch it again"
                ))),
                // An error of the underlying file keeps the system's number.
                _ if error.raw_os_error().is_some() => error,
                _ => io::Error::other(ArchiveDamage(format!(
                    "the {packing} archive is damaged ({error}); fetch it again"
                ))),
            }
        })
    }
}

impl RawInput {
    /// Opens a file, or standard input for `-`, and unpacks it. Keeps at least `head` of its first
    /// bytes. Waits until standard input has as many.
    ///
    /// # Errors
    /// It cannot be opened, is a folder, or its packing is not supported.
    pub(super) fn open(path: &str, head: usize) -> Result<Self, SourceFault> {
        let head = head.max(HEAD);
        if path == "-" {
            return Self::unpacked("standard input", io::stdin(), None, head);
        }
        let io = |error| SourceFault::Io {
            name: path.into(),
            error,
        };
        let file = File::open(path).map_err(io)?;
        let about = file.metadata().map_err(io)?;
        if about.is_dir() {
            return Err(io(io::Error::new(
                io::ErrorKind::IsADirectory,
                "is a folder; name the files in it",
            )));
        }
        let again = match about.is_file() {
            true => Some(file.try_clone().map_err(io)?),
            false => None,
        };
        Self::unpacked(path, file, again, head)
    }

    /// Takes any reader, for tests.
    #[cfg(test)]
    pub(super) fn of(name: &str, reader: impl Read + Send + 'static) -> Self {
        Self::try_of(name, reader).unwrap()
    }

    /// Takes any reader whose bytes may be damaged, for tests.
    #[cfg(any(test, fuzzing))]
    pub(super) fn try_of(
        name: &str,
        reader: impl Read + Send + 'static,
    ) -> Result<Self, SourceFault> {
        Self::unpacked(name, reader, None, HEAD)
    }

    fn unpacked(
        name: &str,
        reader: impl Read + Send + 'static,
        file: Option<File>,
        head: usize,
    ) -> Result<Self, SourceFault> {
        let read = Arc::new(AtomicU64::new(0));
        let counted = Box::new(CountingReader {
            inner: reader,
            read: Arc::clone(&read),
        });
        let mut input = Self {
            name: name.into(),
            reader: counted,
            head: Vec::new(),
            file,
            read,
        };
        input.peek(head)?;
        let packing = Packing::of(&input.head);
        let by_name = Packing::by_name(name);
        if let (None, Some(packing)) = (packing, by_name) {
            return Err(input.form(format!(
                "the file is named as a {} archive, and is none; give it its true name",
                packing.as_str()
            )));
        }
        let file = match packing {
            Some(_) => input.file.take(),
            None => None,
        };
        if packing == Some(Packing::Zip) {
            input.open_member(file)?;
            input.peek(head)?;
        } else if let Some(packing) = packing {
            let packed = std::mem::replace(&mut input.reader, Box::new(io::empty()));
            input.reader = packing.unpack(packed).map_err(|error| input.io(error))?;
            input.peek(head)?;
        }
        Ok(input)
    }

    /// Opens the one file of a zip archive. Messages then name both.
    fn open_member(&mut self, file: Option<File>) -> Result<(), SourceFault> {
        let Some(file) = file else {
            return Err(self.form("this is a zip archive, which begins to be read at its end: name it as a file, or: unzip -p FILE | windrow load -"));
        };
        let member = Member::of(file).map_err(|reason| self.form(reason))?;
        self.name = format!("{}/{}", self.name, member.name);
        self.read.store(0, Ordering::Relaxed);
        let read = Arc::clone(&self.read);
        self.reader = Packing::Zip.reader(member.unpack(|inner| CountingReader { inner, read }));
        Ok(())
    }

    /// Reads the first bytes, and puts them back into the stream.
    fn peek(&mut self, most: usize) -> Result<(), SourceFault> {
        self.head.clear();
        let head = Read::by_ref(&mut self.reader).take(most as u64);
        let mut head = head;
        if let Err(error) = head.read_to_end(&mut self.head) {
            let damaged = error.get_ref().and_then(|inner| inner.downcast_ref());
            return Err(match damaged {
                Some(ArchiveDamage(reason)) => self.form(reason.clone()),
                None => self.io(error),
            });
        }
        let rest = std::mem::replace(&mut self.reader, Box::new(io::empty()));
        self.reader = Box::new(Cursor::new(self.head.clone()).chain(rest));
        Ok(())
    }

    /// Decodes from an encoding to UTF-8. Without a name, the byte order mark decides; without one,
    /// the encoding is UTF-8.
    ///
    /// # Errors
    /// There is no encoding of that name.
    pub(super) fn decode(&mut self, label: Option<&str>) -> Result<(), SourceFault> {
        let encoding = match label {
            None => encoding_rs::Encoding::for_bom(&self.head).map(|(found, _)| found),
            Some(label) => Some(decode::encoding(label).map_err(|error| self.io(error))?),
        };
        let reader = std::mem::replace(&mut self.reader, Box::new(io::empty()));
        self.reader = decode::reader(reader, encoding.unwrap_or(encoding_rs::UTF_8));
        Ok(())
    }

    pub(super) fn read_bytes(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    pub(super) fn form(&self, reason: impl Into<String>) -> SourceFault {
        SourceFault::Form {
            name: self.name.clone(),
            line: 1,
            reason: reason.into(),
        }
    }

    pub(super) fn io(&self, error: io::Error) -> SourceFault {
        SourceFault::Io {
            name: self.name.clone(),
            error,
        }
    }
}
