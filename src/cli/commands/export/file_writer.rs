//! Writes a file from its parts: puts them in order, decompresses and decrypts the content, and
//! compares it with its entry in a list.
//!
//! Parts wait in a [`Spool`]. This file knows no protocol: the file's protocol decrypts it.

use std::collections::HashMap;
use std::io::{self, Read, Write};

use flate2::read::GzDecoder;
use md5::Md5;
use sha2::{Digest, Sha256};

use super::file_index::Written;
use super::file_name::FileNames;
use crate::digits::{counted, hex};
use crate::facts::{FileTransfer, ListedFile, PartOrder};
use crate::output_file::{Access, Inputs, OutputFile, Spool};
use crate::proto::protocol_named;

/// Bytes that are read at once.
const BLOCK: usize = 64 << 10;
/// Bytes of an encrypted file that is opened; a longer one is written as it came.
const MAX_OPENED: u64 = 64 << 20;
/// Bytes that holes of all files together may have; beyond, a file ends at its first hole.
const MAX_HOLES: u64 = 1 << 30;
/// Parts that a hole may have where they are numbered.
const MAX_LOST_PARTS: u64 = 65_536;
/// Files that are known again when they come once more.
const MAX_KNOWN: usize = 100_000;

/// Writes files into a folder.
pub(super) struct FileWriter {
    pub(super) names: FileNames,
    pub(super) spool: Spool,
    inputs: Inputs,
    /// Bytes of one file at most.
    max_file: u64,
    holes_left: u64,
    /// By wanted name and SHA-256 where a file is.
    known: HashMap<(String, String), String>,
}

/// The bytes of a file in order, with zeros in its holes.
struct Content<'a> {
    spool: &'a mut Spool,
    /// From the end to the beginning.
    runs: Vec<Stretch>,
}

/// Bytes that follow each other.
#[derive(Clone, Copy)]
struct Stretch {
    /// Where they are in the spool; none for a hole.
    at: Option<u64>,
    length: u64,
}

/// What a file turned out to be.
enum Form {
    /// What was transferred.
    AsIs,
    /// gzip, to be opened.
    Packed(ListedFile),
    /// It was encrypted: its content.
    Opened(Vec<u8>),
}

impl FileWriter {
    pub(super) fn new(names: FileNames, spool: Spool, inputs: Inputs, max_file: u64) -> FileWriter {
        FileWriter { names, spool, inputs, max_file, holes_left: MAX_HOLES, known: HashMap::new() }
    }

    /// Writes a file, as far as any of it came.
    ///
    /// # Errors
    /// Where something cannot be written, or read back.
    pub(super) fn write(&mut self, file: &FileTransfer) -> io::Result<Written> {
        let mut written = Written::default();
        let nothing = file.pieces.is_empty() && !(file.complete && file.size == Some(0));
        if file.order == PartOrder::Unknown
            || file.refused.is_some() && file.pieces.is_empty()
            || nothing
        {
            return Ok(written);
        }
        let runs = self.runs(file, &mut written.remarks);
        let (form, name) = self.form(file, &runs, &mut written.remarks)?;
        self.put(file, form, &runs, &name, &mut written)?;
        Ok(written)
    }

    /// Decides what a file is, and under which name it is written.
    fn form(
        &mut self,
        file: &FileTransfer,
        runs: &[Stretch],
        remarks: &mut Vec<String>,
    ) -> io::Result<(Form, String)> {
        let asked = file.name.clone().unwrap_or_else(|| format!("unnamed-{}", file.first_record));
        let mut head = [0; 16];
        let had = self.content(runs).read_up_to(&mut head)?;
        let head = head.get(..had).unwrap_or_default();
        if !file.complete {
            let listed = file.listed.first().filter(|listed| !listed.is_packed());
            return Ok((Form::AsIs, listed.map_or(asked, |listed| listed.name.clone())));
        }
        let length = runs.iter().map(|run| run.length).sum();
        if let Some(plain) = self.opened(file, head, runs, length, remarks)? {
            let listed = file.listed.iter().find(|listed| !listed.is_packed());
            let own = plain.len() as u64;
            if let Some(size) =
                listed.and_then(|listed| listed.size).filter(|size| *size != own && *size != length)
            {
                remarks.push(format!("has {}, {size} in the list", counted(own, "byte")));
            }
            return Ok((Form::Opened(plain), listed.map_or(asked, |listed| listed.name.clone())));
        }
        if let Some(listed) = self.compare(file, runs, length, remarks)? {
            let gzip = head.starts_with(&[0x1f, 0x8b]);
            if listed.is_packed() && gzip {
                return Ok((Form::Packed(listed.clone()), listed.name));
            }
            if !listed.is_packed() {
                return Ok((Form::AsIs, listed.name));
            }
            remarks.push("a list says that it is compressed, and it is not".into());
            return Ok((Form::AsIs, asked));
        }
        Ok((Form::AsIs, with_extension(asked, file.kind.as_deref(), head)))
    }

    /// Finds the entry of a list that fits the file best, and says how well it does.
    fn compare(
        &mut self,
        file: &FileTransfer,
        runs: &[Stretch],
        length: u64,
        remarks: &mut Vec<String>,
    ) -> io::Result<Option<ListedFile>> {
        let Some(first) = file.listed.first() else { return Ok(None) };
        let hashed =
            file.listed.iter().any(|listed| listed.packed_md5.is_some() || listed.md5.is_some());
        let md5 = if hashed { hex(&self.content(runs).digest::<Md5>()?) } else { String::new() };
        let wanted = |listed: &ListedFile| {
            if listed.is_packed() {
                (listed.packed_size, listed.packed_md5.clone())
            } else {
                (listed.size, listed.md5.clone())
            }
        };
        let fits = |listed: &&ListedFile| wanted(listed).1.is_some_and(|wanted| wanted == md5);
        let best = file.listed.iter().find(fits).unwrap_or(first);
        let (size, hash) = wanted(best);
        compared("", length, &md5, size, hash.as_deref(), remarks);
        Ok(Some(best.clone()))
    }

    /// The content of an encrypted file, where it can be opened.
    fn opened(
        &mut self,
        file: &FileTransfer,
        head: &[u8],
        runs: &[Stretch],
        length: u64,
        remarks: &mut Vec<String>,
    ) -> io::Result<Option<Vec<u8>>> {
        let Some(protocol) = protocol_named(file.protocol) else { return Ok(None) };
        if protocol.open_file(head, &file.keys).is_none() {
            return Ok(None);
        }
        if length > MAX_OPENED {
            remarks.push(format!(
                "encrypted, and too long to be opened ({} MiB at most)",
                MAX_OPENED >> 20
            ));
            return Ok(None);
        }
        let mut bytes = Vec::new();
        self.content(runs).read_to_end(&mut bytes)?;
        Ok(match protocol.open_file(&bytes, &file.keys) {
            Some(Ok(plain)) => {
                remarks.push("decrypted".into());
                Some(plain)
            }
            Some(Err(why)) => {
                remarks.push(format!("encrypted: {why}"));
                None
            }
            None => None,
        })
    }

    /// Writes the file under a free name. One that was written before under the same name is not
    /// written again.
    fn put(
        &mut self,
        file: &FileTransfer,
        form: Form,
        runs: &[Stretch],
        name: &str,
        written: &mut Written,
    ) -> io::Result<()> {
        let end = if file.complete { "" } else { ".partial" };
        let mut path = self.names.take(name, end)?;
        let mut output =
            OutputFile::create(&self.names.on_disk(&path), Access::Owner, &self.inputs)?;
        let sums = match &form {
            Form::Opened(plain) => copy(&mut plain.as_slice(), &mut output, u64::MAX)?,
            Form::AsIs => copy(&mut self.content(runs), &mut output, u64::MAX)?,
            Form::Packed(listed) => {
                let most = self.max_file;
                match copy(&mut GzDecoder::new(self.content(runs)), &mut output, most) {
                    Ok(sums) => {
                        written.remarks.push("gzip opened".into());
                        compared(
                            "the file ",
                            sums.size,
                            &sums.md5,
                            listed.size,
                            listed.md5.as_deref(),
                            &mut written.remarks,
                        );
                        sums
                    }
                    Err(error) => {
                        written.remarks.push(format!(
                            "gzip that cannot be opened ({error}): written as it came"
                        ));
                        drop(output);
                        self.names.give_back(&path);
                        path = self.names.take(file.name.as_deref().unwrap_or(name), "")?;
                        output = OutputFile::create(
                            &self.names.on_disk(&path),
                            Access::Owner,
                            &self.inputs,
                        )?;
                        copy(&mut self.content(runs), &mut output, u64::MAX)?
                    }
                }
            }
        };
        written.size = sums.size;
        written.sha256 = sums.sha256;
        let key = (name.to_string(), written.sha256.clone());
        if let Some(known) = self.known.get(&key).filter(|_| file.complete) {
            self.names.give_back(&path);
            written.path = Some(known.clone());
            written.remarks.push("the same as before".into());
            return Ok(());
        }
        output.commit_unsynced()?;
        if file.complete && self.known.len() < MAX_KNOWN {
            self.known.insert(key, path.clone());
        }
        written.path = Some(path);
        Ok(())
    }

    fn content(&mut self, runs: &[Stretch]) -> Content<'_> {
        Content { spool: &mut self.spool, runs: runs.iter().rev().copied().collect() }
    }

    /// The pieces of a file and its holes, in order.
    fn runs(&mut self, file: &FileTransfer, remarks: &mut Vec<String>) -> Vec<Stretch> {
        let by_number = file.order == PartOrder::Number;
        // How long a part is that did not come can only be guessed: as the longest one.
        let usual = file.pieces.values().map(|piece| piece.length).max().unwrap_or(0);
        let mut runs = Vec::new();
        let mut next = 0;
        for (at, piece) in &file.pieces {
            let hole = at.saturating_sub(next).saturating_mul(if by_number { usual } else { 1 });
            let numbers = by_number && at.saturating_sub(next) > MAX_LOST_PARTS;
            if hole > self.holes_left || numbers {
                remarks.push("written up to a hole that is too long".into());
                break;
            }
            if hole > 0 {
                self.holes_left -= hole;
                runs.push(Stretch { at: None, length: hole });
            }
            // Where parts overlap, the earlier one counts.
            let skip = if by_number { 0 } else { next.saturating_sub(*at) };
            if skip < piece.length {
                runs.push(Stretch { at: Some(piece.stored + skip), length: piece.length - skip });
            }
            next = next.max(at.saturating_add(if by_number { 1 } else { piece.length }));
        }
        runs
    }
}

/// Says whether a size and an MD5 are those that a list has.
fn compared(
    what: &str,
    size: u64,
    md5: &str,
    listed: Option<u64>,
    hash: Option<&str>,
    remarks: &mut Vec<String>,
) {
    if let Some(listed) = listed.filter(|listed| *listed != size) {
        remarks.push(format!("{what}has {}, {listed} in the list", counted(size, "byte")));
    }
    match hash {
        Some(hash) if hash == md5 => remarks.push(format!("{what}MD5 as listed")),
        Some(hash) => remarks.push(format!("{what}MD5 is {md5}, {hash} in the list")),
        None => {}
    }
}

/// What was copied.
struct Sums {
    size: u64,
    sha256: String,
    md5: String,
}

/// Copies all bytes, and sums them up.
fn copy(from: &mut dyn Read, to: &mut OutputFile, most: u64) -> io::Result<Sums> {
    let mut sha256 = Sha256::new();
    let mut md5 = Md5::new();
    let mut block = vec![0; BLOCK];
    let mut size = 0;
    loop {
        let had = from.read(&mut block)?;
        let bytes = block.get(..had).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(Sums { size, sha256: hex(&sha256.finalize()), md5: hex(&md5.finalize()) });
        }
        size += had as u64;
        if size > most {
            return Err(io::Error::other(format!("more than {most} bytes")));
        }
        sha256.update(bytes);
        md5.update(bytes);
        to.write_all(bytes)?;
    }
}

impl Content<'_> {
    /// Fills a buffer as far as there are bytes.
    fn read_up_to(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut had = 0;
        while let Some(rest) = out.get_mut(had..).filter(|rest| !rest.is_empty()) {
            match self.read(rest)? {
                0 => break,
                more => had += more,
            }
        }
        Ok(had)
    }

    fn digest<D: Digest>(mut self) -> io::Result<Vec<u8>> {
        let mut sum = D::new();
        let mut block = vec![0; BLOCK];
        loop {
            let had = self.read(&mut block)?;
            match block.get(..had) {
                Some(bytes) if had > 0 => sum.update(bytes),
                _ => return Ok(sum.finalize().to_vec()),
            }
        }
    }
}

impl Read for Content<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let Some(Stretch { at, length: left }) = self.runs.last_mut() else { return Ok(0) };
        let most = usize::try_from(*left).unwrap_or(usize::MAX).min(out.len());
        let Some(out) = out.get_mut(..most) else { return Ok(0) };
        let had = match at {
            None => {
                out.fill(0);
                most
            }
            Some(at) => {
                let had = self.spool.read_at(*at, out)?;
                if had == 0 && most > 0 {
                    return Err(io::Error::other("bytes that waited on disk are gone"));
                }
                *at += had as u64;
                had
            }
        };
        *left -= had as u64;
        if *left == 0 {
            self.runs.pop();
        }
        Ok(had)
    }
}

/// Adds an extension to the name of a file of which messages say the kind: that of its content, or
/// else the kind itself.
fn with_extension(name: String, kind: Option<&str>, head: &[u8]) -> String {
    const CONTENTS: [(&[u8], &[&str]); 7] = [
        (&[0xff, 0xd8, 0xff], &["jpg", "jpeg"]),
        (b"\x89PNG", &["png"]),
        (&[0xff, 0x4f, 0xff, 0x51], &["j2c", "j2k", "jp2"]),
        (b"\0\0\0\x0cjP  ", &["jp2"]),
        (b"OggS", &["ogg"]),
        (b"RIFF", &["wav"]),
        (&[0x1f, 0x8b], &["gz"]),
    ];
    let Some(kind) = kind else { return name };
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension).to_lowercase();
    match CONTENTS.iter().find(|(begin, _)| head.starts_with(begin)) {
        Some((_, known)) if known.contains(&extension.as_str()) => name,
        Some((_, known)) => format!("{name}.{}", known.first().copied().unwrap_or("")),
        None if extension.is_empty() => {
            format!("{name}.{}", kind.trim_start_matches('k').to_lowercase())
        }
        None => name,
    }
}
