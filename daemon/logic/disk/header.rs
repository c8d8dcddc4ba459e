//! Entries as blocks of a tar archive (ustar with pax extended headers), and back.
//!
//! Only what [`encode`] makes is understood, so that nothing in an archive can mean two things: an extended header comes
//! directly before its entry, global headers and the extensions of GNU's older formats are refused. Holes are in "PAX
//! format, version 1.0" of GNU tar, attributes in `SCHILY.xattr.NAME`; GNU tar and bsdtar read both.

use tar::{EntryType, Header};

use super::entry::{Attribute, Body, Entry, Segment, Time};
use super::{paths, pax};

/// Size of a block.
pub const BLOCK: usize = 512;

/// More segments than this are stored as one: the map has to fit into memory, also that of who reads a hostile archive.
pub const MAX_SEGMENTS: usize = 1 << 16;

/// The end of an archive.
pub const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

/// Largest time that the ustar field holds.
const MAX_FIELD_TIME: i64 = 0o77_777_777_777;
const NAME_FIELD: usize = 100;
const ATTRIBUTE: &[u8] = b"SCHILY.xattr.";

/// Zeros after `length` bytes up to the next block.
pub fn padding(length: u64) -> usize {
    let over = usize::try_from(length % BLOCK as u64).unwrap_or(0);
    if over == 0 { 0 } else { BLOCK - over }
}

/// The map of a file with holes, padded to whole blocks.
pub fn map_text(segments: &[Segment]) -> Vec<u8> {
    let mut text = format!("{}\n", segments.len()).into_bytes();
    for Segment { offset, length } in segments {
        text.extend_from_slice(format!("{offset}\n{length}\n").as_bytes());
    }
    text.resize(text.len() + padding(text.len() as u64), 0);
    text
}

/// Reads a map: the segments and the bytes that it takes. Nothing when `text` does not hold all of it yet.
pub fn parse_map(text: &[u8], size: u64) -> Result<Option<(Vec<Segment>, usize)>, String> {
    let mut at = 0;
    let mut next = || -> Result<Option<u64>, String> {
        let rest = &text[at..];
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
            return if rest.len() > 20 {
                Err("a map of holes with a wrong number".to_owned())
            } else {
                Ok(None)
            };
        };
        at += end + 1;
        pax::number(&rest[..end]).map(Some).ok_or_else(|| "a map of holes with a wrong number".to_owned())
    };
    let Some(count) = next()? else { return Ok(None) };
    let count = usize::try_from(count).ok().filter(|count| *count <= MAX_SEGMENTS);
    let count = count.ok_or("a map of holes that is too long")?;
    let mut segments = Vec::with_capacity(count);
    let mut end = 0;
    for _ in 0..count {
        let (Some(offset), Some(length)) = (next()?, next()?) else { return Ok(None) };
        let after = offset.checked_add(length).filter(|after| *after <= size && offset >= end);
        end = after.ok_or("a map of holes that is not in order")?;
        segments.push(Segment { offset, length });
    }
    let taken = at + padding(at as u64);
    Ok(if taken <= text.len() { Some((segments, taken)) } else { None })
}

/// Adds the blocks before the contents of `entry` to `out`.
pub fn encode(entry: &Entry, out: &mut Vec<u8>) {
    let mut path = match entry.path.as_slice() {
        b"" => b".".to_vec(),
        path => path.to_vec(),
    };
    if entry.body == Body::Directory {
        path.push(b'/');
    }
    let mut records = Vec::new();
    let mut header = Header::new_ustar();
    header.set_entry_type(match entry.body {
        Body::Directory => EntryType::Directory,
        Body::File(_) | Body::Sparse { .. } => EntryType::Regular,
        Body::HardLink(_) => EntryType::Link,
        Body::Symlink(_) => EntryType::Symlink,
        Body::Fifo => EntryType::Fifo,
        Body::Character(..) => EntryType::Char,
        Body::Block(..) => EntryType::Block,
    });
    if let Body::Sparse { size, .. } = entry.body {
        pax::push(&mut records, b"GNU.sparse.major", b"1");
        pax::push(&mut records, b"GNU.sparse.minor", b"0");
        pax::push(&mut records, b"GNU.sparse.name", &path);
        pax::push(&mut records, b"GNU.sparse.realsize", size.to_string().as_bytes());
        // What a program that does not know holes extracts: the map and the data, under a name of its own.
        path = [b"GNUSparseFile/".as_slice(), &path].concat();
    }
    if path.len() > NAME_FIELD {
        pax::push(&mut records, b"path", &path);
    }
    if let Body::HardLink(target) | Body::Symlink(target) = &entry.body {
        if target.len() > NAME_FIELD {
            pax::push(&mut records, b"linkpath", target);
        }
        put(&mut header.as_old_mut().linkname, target);
    }
    if let Body::Character(major, minor) | Body::Block(major, minor) = entry.body
        && let Some(ustar) = header.as_ustar_mut()
    {
        ustar.set_device_major(major);
        ustar.set_device_minor(minor);
    }
    let Time { seconds, nanoseconds } = entry.mtime;
    if nanoseconds != 0 || !(0..=MAX_FIELD_TIME).contains(&seconds) {
        pax::push(&mut records, b"mtime", pax::time_text(entry.mtime).as_bytes());
    }
    for (name, value) in &entry.attributes {
        let key = [ATTRIBUTE, &pax::escape_name(name)].concat();
        pax::push(&mut records, &key, value);
    }
    put(&mut header.as_old_mut().name, &path);
    header.set_mode(entry.mode);
    header.set_uid(u64::from(entry.uid));
    header.set_gid(u64::from(entry.gid));
    header.set_mtime(seconds.clamp(0, MAX_FIELD_TIME).cast_unsigned());
    header.set_size(entry.stored());
    header.set_cksum();
    if !records.is_empty() {
        let mut extended = Header::new_ustar();
        extended.set_entry_type(EntryType::XHeader);
        put(&mut extended.as_old_mut().name, b"PaxHeaders/entry");
        extended.set_mode(0o644);
        extended.set_uid(0);
        extended.set_gid(0);
        extended.set_mtime(0);
        extended.set_size(records.len() as u64);
        extended.set_cksum();
        out.extend_from_slice(extended.as_bytes());
        out.extend_from_slice(&records);
        out.resize(out.len() + padding(records.len() as u64), 0);
    }
    out.extend_from_slice(header.as_bytes());
}

fn put(field: &mut [u8], text: &[u8]) {
    let length = text.len().min(field.len());
    field[..length].copy_from_slice(&text[..length]);
}

/// What a header block announces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// Zeros: the archive ends.
    End,
    /// Records of this many bytes follow, which [`decode`] wants with the next header.
    Extended(u64),
    /// An entry.
    Entry,
}

/// Looks at a header block.
pub fn look(block: &[u8; BLOCK]) -> Result<Head, String> {
    if block.iter().all(|byte| *byte == 0) {
        return Ok(Head::End);
    }
    let header = Header::from_byte_slice(block);
    let sum: u32 = block
        .iter()
        .enumerate()
        .map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u32::from(*byte) })
        .sum();
    if header.cksum().ok() != Some(sum) {
        return Err("a header with a wrong checksum".to_owned());
    }
    if header.as_ustar().is_none() {
        return Err("a header of another kind of archive".to_owned());
    }
    if header.entry_type() != EntryType::XHeader {
        return Ok(Head::Entry);
    }
    let length = header.entry_size().ok().filter(|length| *length <= pax::LIMIT_BYTES);
    length.map(Head::Extended).ok_or_else(|| "an extended header that is too long".to_owned())
}

/// Makes an entry of a header block and of the records before it.
pub fn decode(block: &[u8; BLOCK], records: &[u8]) -> Result<Entry, String> {
    let header = Header::from_byte_slice(block);
    let wrong = |what: &str| format!("a header with a wrong {what}");
    let field = |bytes: &[u8]| bytes.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
    let mut path = field(&header.as_old().name);
    let mut target = field(&header.as_old().linkname);
    let seconds =
        header.mtime().ok().and_then(|seconds| i64::try_from(seconds).ok()).ok_or_else(|| wrong("time"))?;
    let mut mtime = Time { seconds, nanoseconds: 0 };
    let mut attributes: Vec<Attribute> = Vec::new();
    let (mut version, mut sparse_name, mut sparse_size) = ([None, None], None, None);
    for (key, value) in pax::parse(records)? {
        match key {
            b"path" => path = value.to_vec(),
            b"linkpath" => target = value.to_vec(),
            b"mtime" => mtime = pax::parse_time(value).ok_or_else(|| wrong("time"))?,
            b"GNU.sparse.major" => version[0] = pax::number(value),
            b"GNU.sparse.minor" => version[1] = pax::number(value),
            b"GNU.sparse.name" => sparse_name = Some(value.to_vec()),
            b"GNU.sparse.realsize" => sparse_size = pax::number(value),
            _ => match key.strip_prefix(ATTRIBUTE) {
                Some(name) => attributes.push((pax::unescape_name(name), value.to_vec())),
                None => return Err(format!("an extended header with `{}`", key.escape_ascii())),
            },
        }
    }
    let size = header.entry_size().ok().filter(|size| *size < 1 << 62).ok_or_else(|| wrong("size"))?;
    let device = || -> Result<(u32, u32), String> {
        match (header.device_major(), header.device_minor()) {
            // What a kernel can have (include/linux/kdev_t.h).
            (Ok(Some(major)), Ok(Some(minor))) if major < 1 << 12 && minor < 1 << 20 => Ok((major, minor)),
            _ => Err(wrong("device number")),
        }
    };
    let is_link = matches!(header.entry_type(), EntryType::Link | EntryType::Symlink);
    if is_link && (target.is_empty() || target.contains(&0)) {
        return Err(wrong("link"));
    }
    let body = match (header.entry_type(), sparse_name) {
        (EntryType::Regular, Some(name)) => {
            path = name;
            let real = sparse_size.filter(|size| *size < 1 << 62 && version == [Some(1), Some(0)]);
            Body::Sparse { size: real.ok_or_else(|| wrong("format of holes"))?, stored: size }
        }
        (EntryType::Regular, None) => Body::File(size),
        (_, Some(_)) => return Err("holes in what is no file".to_owned()),
        (EntryType::Directory, None) => Body::Directory,
        (EntryType::Link, None) => match paths::refuse_entry(&target) {
            Some(reason) => return Err(format!("{reason}: a link to {}", target.escape_ascii())),
            None => Body::HardLink(target),
        },
        (EntryType::Symlink, None) => Body::Symlink(target),
        (EntryType::Fifo, None) => Body::Fifo,
        (EntryType::Char, None) => device().map(|(major, minor)| Body::Character(major, minor))?,
        (EntryType::Block, None) => device().map(|(major, minor)| Body::Block(major, minor))?,
        (other, None) => return Err(format!("an entry of type {:?}", char::from(other.as_byte()))),
    };
    if !matches!(body, Body::File(_) | Body::Sparse { .. }) && size != 0 {
        return Err("contents where there can be none".to_owned());
    }
    if body == Body::Directory {
        path = match path.as_slice() {
            b"./" => Vec::new(),
            other => other.strip_suffix(b"/").unwrap_or(other).to_vec(),
        };
    }
    if let Some(reason) = paths::refuse_entry(&path) {
        return Err(format!("{reason}: {}", path.escape_ascii()));
    }
    if path.is_empty() && body != Body::Directory {
        return Err("an entry without a name".to_owned());
    }
    let id =
        |id: Option<u64>, what: &str| id.and_then(|id| u32::try_from(id).ok()).ok_or_else(|| wrong(what));
    Ok(Entry {
        mode: header.mode().map_err(|_| wrong("mode"))? & 0o7777,
        uid: id(header.uid().ok(), "owner")?,
        gid: id(header.gid().ok(), "group")?,
        path,
        mtime,
        attributes,
        body,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry() -> impl Strategy<Value = Entry> {
        let name = "[a-z%=. ü]{1,120}".prop_filter("a name", |name| !matches!(name.as_str(), "." | ".."));
        let path = proptest::collection::vec(name, 1..4).prop_map(|parts| parts.join("/").into_bytes());
        let bytes = || proptest::collection::vec(any::<u8>(), 0..300);
        let target = proptest::collection::vec(1_u8.., 1..300);
        let size = 0_u64..1 << 50;
        let body = prop_oneof![
            Just(Body::Directory),
            size.clone().prop_map(Body::File),
            (size.clone(), size).prop_map(|(size, stored)| Body::Sparse { size, stored }),
            target.prop_map(Body::Symlink),
            path.clone().prop_map(Body::HardLink),
            Just(Body::Fifo),
            (0_u32..1 << 12, 0_u32..1 << 20).prop_map(|(major, minor)| Body::Character(major, minor)),
            (0_u32..1 << 12, 0_u32..1 << 20).prop_map(|(major, minor)| Body::Block(major, minor)),
        ];
        let time = (any::<i64>(), 0_u32..1_000_000_000)
            .prop_map(|(seconds, nanoseconds)| Time { seconds, nanoseconds });
        let owner = (0_u32..0o10000, any::<u32>(), any::<u32>());
        let attributes = proptest::collection::vec((bytes(), bytes()), 0..3);
        (path, owner, time, attributes, body).prop_map(|(path, (mode, uid, gid), mtime, attributes, body)| {
            Entry { path, mode, uid, gid, mtime, attributes, body }
        })
    }

    /// Looks at blocks as a reader of archives does.
    fn read(mut blocks: &[u8]) -> Result<Entry, String> {
        let mut records = Vec::new();
        loop {
            let (block, rest) = blocks.split_first_chunk::<BLOCK>().ok_or("too short")?;
            match look(block)? {
                Head::Extended(length) => {
                    let length = usize::try_from(length).unwrap();
                    records = rest[..length].to_vec();
                    blocks = &rest[length + padding(length as u64)..];
                }
                Head::Entry => return decode(block, &records),
                Head::End => return Err("the end".to_owned()),
            }
        }
    }

    proptest! {
        #[test]
        fn every_entry_comes_back(entry in entry()) {
            let mut blocks = Vec::new();
            encode(&entry, &mut blocks);
            prop_assert_eq!(blocks.len() % BLOCK, 0);
            prop_assert_eq!(read(&blocks), Ok(entry));
        }

        #[test]
        fn every_map_comes_back(lengths in proptest::collection::vec((0_u64..1 << 40, 0_u64..1 << 40), 0..100)) {
            let mut end = 0;
            let segments: Vec<Segment> = lengths.iter().map(|(gap, length)| {
                let offset = end + gap;
                end = offset + length;
                Segment { offset, length: *length }
            }).collect();
            let text = map_text(&segments);
            prop_assert_eq!(parse_map(&text, end), Ok(Some((segments, text.len()))));
            // One block less is not all of it.
            prop_assert_eq!(parse_map(&text[..text.len() - BLOCK], end), Ok(None));
        }
    }

    #[test]
    fn the_disk_itself_is_an_entry() {
        let disk = Entry {
            path: Vec::new(),
            mode: 0o755,
            uid: 0,
            gid: 0,
            mtime: Time::default(),
            attributes: Vec::new(),
            body: Body::Directory,
        };
        let mut blocks = Vec::new();
        encode(&disk, &mut blocks);
        assert_eq!(read(&blocks), Ok(disk));
        assert!(look(&[0; BLOCK]) == Ok(Head::End) && look(&[1; BLOCK]).is_err());
    }
}
