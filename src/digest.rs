//! SHA-256, and bytes as text, as both are written everywhere: in lower-case hexadecimal.

use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// How much of a file is in memory at once, in bytes.
const PIECE: usize = 1 << 20;

/// Bytes as text.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The hash of bytes, as text.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The length in bytes and the hash of a file, which may be larger than the memory.
///
/// # Errors
/// When it cannot be read to its end.
pub fn sha256_of_file(path: &Path) -> io::Result<(u64, [u8; 32])> {
    let mut file = File::open(path)?;
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    let mut piece = vec![0; PIECE];
    loop {
        let read = match file.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        let Some(read) = piece.get(..read).filter(|read| !read.is_empty()) else {
            return Ok((bytes, hash.finalize().into()));
        };
        hash.update(read);
        bytes += read.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-4's example, and the hash of nothing.
    #[test]
    fn a_hash_is_written_as_everybody_writes_it() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_hex(b"abc"), abc);
        let nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256_hex(b""), nothing);
    }

    #[test]
    fn a_file_has_the_hash_of_its_bytes_whatever_its_length() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 7] {
            let content: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            std::fs::write(&path, &content).unwrap();
            let (bytes, hash) = sha256_of_file(&path).unwrap();
            assert_eq!((bytes, hex(&hash)), (length as u64, sha256_hex(&content)));
        }
        assert!(sha256_of_file(&folder.path().join("none")).is_err());
        assert!(sha256_of_file(folder.path()).is_err());
    }
}
