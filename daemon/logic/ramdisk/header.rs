//! Entries as headers of a tar archive (ustar with pax extended headers).
//!
//! Only the output of [`encode`] is accepted, so that an archive cannot be ambiguous: an extended header directly
//! precedes its entry; global headers and the extensions of old GNU formats are refused. Sparse files are in "PAX
//! format, version 1.0" of GNU tar, attributes in `SCHILY.xattr.NAME`; GNU tar and bsdtar read both.

use std::ops::Range;

use super::entry::{Attribute, Body, Entry, Segment, Time};
use super::{limits, paths, pax};

/// Size of a block.
pub const BLOCK: usize = 512;

/// End marker of an archive.
pub const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

/// Maximum time in the ustar field.
const MAX_FIELD_TIME: i64 = 0o77_777_777_777;
const ATTRIBUTE: &[u8] = b"SCHILY.xattr.";

// The fields of a block (POSIX.1-2017, ustar).
const NAME: Range<usize> = 0..100;
const MODE: Range<usize> = 100..108;
const UID: Range<usize> = 108..116;
const GID: Range<usize> = 116..124;
const SIZE: Range<usize> = 124..136;
const MTIME: Range<usize> = 136..148;
const CHECKSUM: Range<usize> = 148..156;
const TYPE: usize = 156;
const LINK: Range<usize> = 157..257;
const MAGIC: Range<usize> = 257..265;
const MAJOR: Range<usize> = 329..337;
const MINOR: Range<usize> = 337..345;
const USTAR: &[u8] = b"ustar\x0000";

/// The fields of a header block. Longer paths and larger times are in records before it.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    /// The type in POSIX: `b'0'` is a file.
    pub kind: u8,
    /// The beginning of the path, as much as fits.
    pub path: &'a [u8],
    /// The beginning of the target, as much as fits.
    pub link: &'a [u8],
    /// Permission bits.
    pub mode: u32,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Seconds since 1970.
    pub mtime: u64,
    /// Bytes that follow.
    pub size: u64,
    /// Device number of a device node.
    pub device: Option<(u32, u32)>,
}

impl Fields<'_> {
    /// The header block.
    pub fn block(&self) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        let mut text = |field: Range<usize>, text: &[u8]| {
            let length = text.len().min(field.len());
            block[field.start..field.start + length].copy_from_slice(&text[..length]);
        };
        text(NAME, self.path);
        text(LINK, self.link);
        text(MAGIC, USTAR);
        block[TYPE] = self.kind;
        for (field, number) in [(MODE, self.mode), (UID, self.uid), (GID, self.gid)] {
            put(&mut block[field], number.into());
        }
        put(&mut block[SIZE], self.size);
        put(&mut block[MTIME], self.mtime);
        if let Some((major, minor)) = self.device {
            put(&mut block[MAJOR], major.into());
            put(&mut block[MINOR], minor.into());
        }
        seal(&mut block);
        block
    }
}

/// Writes a number into a field: in octal, or in binary if it is too large for that (as GNU tar does).
fn put(field: &mut [u8], number: u64) {
    let digits = field.len() - 1;
    let text = format!("{number:0digits$o}");
    if text.len() == digits {
        field[..digits].copy_from_slice(text.as_bytes());
    } else {
        // A field of 8 bytes never holds more than an ID.
        let (bytes, length) = (number.to_be_bytes(), field.len().min(8));
        let start = field.len() - length;
        field[start..].copy_from_slice(&bytes[8 - length..]);
        field[0] = 0x80;
    }
}

/// Reads a number as written by [`put`].
fn number(field: &[u8]) -> Option<u64> {
    if field[0] & 0x80 != 0 {
        let bytes = std::iter::once(field[0] & 0x7f).chain(field[1..].iter().copied());
        return bytes.into_iter().try_fold(0_u64, |sum, byte| sum.checked_mul(256)?.checked_add(byte.into()));
    }
    let digits = until_zero(field).trim_ascii();
    let plain = !digits.is_empty() && digits.iter().all(|digit| (b'0'..=b'7').contains(digit));
    u64::from_str_radix(str::from_utf8(digits).ok().filter(|_| plain)?, 8).ok()
}

fn until_zero(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// The checksum of a block, computed with blanks in the field of the checksum.
fn sum(block: &[u8; BLOCK]) -> u32 {
    let byte = |(at, byte): (usize, &u8)| if CHECKSUM.contains(&at) { 32 } else { u32::from(*byte) };
    block.iter().enumerate().map(byte).sum()
}

/// Sets the checksum of a block.
pub fn seal(block: &mut [u8; BLOCK]) {
    let sum = sum(block);
    put(&mut block[CHECKSUM], sum.into());
}

/// Number of zeros after `length` bytes, up to the next block.
pub fn padding(length: u64) -> usize {
    let over = usize::try_from(length % BLOCK as u64).unwrap_or(0);
    if over == 0 { 0 } else { BLOCK - over }
}

/// The map of a sparse file, padded to whole blocks.
pub fn map_text(segments: &[Segment]) -> Vec<u8> {
    let mut text = format!("{}\n", segments.len()).into_bytes();
    for Segment { offset, length } in segments {
        text.extend_from_slice(format!("{offset}\n{length}\n").as_bytes());
    }
    text.resize(text.len() + padding(text.len() as u64), 0);
    text
}

/// Parser for a map of segments, block by block.
#[derive(Debug)]
pub struct Map {
    /// Size of the file.
    size: u64,
    /// Incomplete number at the end of the last block.
    rest: Vec<u8>,
    count: Option<usize>,
    offset: Option<u64>,
    segments: Vec<Segment>,
}

impl Map {
    /// The parser for a file of this size.
    pub fn new(size: u64) -> Map {
        Map { size, rest: Vec::new(), count: None, offset: None, segments: Vec::new() }
    }

    /// Parses another block; returns whether it was the last.
    pub fn take(&mut self, block: &[u8; BLOCK]) -> Result<bool, &'static str> {
        for byte in block {
            if self.is_complete() {
                // Padding.
                break;
            }
            if *byte != b'\n' {
                self.rest.push(*byte);
                if self.rest.len() > 20 {
                    return Err("a map of holes with a wrong number");
                }
                continue;
            }
            let number = pax::number(&self.rest).ok_or("a map of holes with a wrong number")?;
            self.rest.clear();
            self.number(number)?;
        }
        Ok(self.is_complete())
    }

    fn is_complete(&self) -> bool {
        self.count == Some(self.segments.len())
    }

    fn number(&mut self, number: u64) -> Result<(), &'static str> {
        if self.count.is_none() {
            let count = usize::try_from(number).ok().filter(|count| *count <= limits::SEGMENTS);
            self.count = Some(count.ok_or("a map of holes that is too long")?);
            return Ok(());
        }
        let Some(offset) = self.offset.take() else {
            self.offset = Some(number);
            return Ok(());
        };
        let before = self.segments.last().map_or(0, |last| last.offset + last.length);
        let end = offset.checked_add(number).filter(|end| *end <= self.size && offset >= before);
        end.ok_or("a map of holes that is not in order")?;
        self.segments.push(Segment { offset, length: number });
        Ok(())
    }

    pub fn segments(self) -> Vec<Segment> {
        self.segments
    }
}

/// Appends the blocks before the contents of `entry` to `out`.
pub fn encode(entry: &Entry, out: &mut Vec<u8>) {
    let mut path = match entry.path.as_slice() {
        b"" => b".".to_vec(),
        path => path.to_vec(),
    };
    if entry.body == Body::Directory {
        path.push(b'/');
    }
    let mut records = Vec::new();
    if let Body::Sparse { size, .. } = entry.body {
        pax::push(&mut records, b"GNU.sparse.major", b"1");
        pax::push(&mut records, b"GNU.sparse.minor", b"0");
        pax::push(&mut records, b"GNU.sparse.name", &path);
        pax::push(&mut records, b"GNU.sparse.realsize", size.to_string().as_bytes());
        // The name under which programs without support for sparse files extract map and data.
        path = [b"GNUSparseFile/".as_slice(), &path].concat();
    }
    if path.len() > NAME.len() {
        pax::push(&mut records, b"path", &path);
    }
    let link: &[u8] = match &entry.body {
        Body::HardLink(target) | Body::Symlink(target) => target,
        _ => b"",
    };
    if link.len() > LINK.len() {
        pax::push(&mut records, b"linkpath", link);
    }
    let Time { seconds, nanoseconds } = entry.mtime;
    if nanoseconds != 0 || !(0..=MAX_FIELD_TIME).contains(&seconds) {
        pax::push(&mut records, b"mtime", pax::time_text(entry.mtime).as_bytes());
    }
    for (name, value) in &entry.attributes {
        let key = [ATTRIBUTE, &pax::escape_name(name)].concat();
        pax::push(&mut records, &key, value);
    }
    if !records.is_empty() {
        let extended = Fields {
            kind: b'x',
            path: b"PaxHeaders/entry",
            link: b"",
            mode: 0o644,
            uid: 0,
            gid: 0,
            mtime: 0,
            size: records.len() as u64,
            device: None,
        };
        out.extend_from_slice(&extended.block());
        out.extend_from_slice(&records);
        out.resize(out.len() + padding(records.len() as u64), 0);
    }
    let (kind, device) = match entry.body {
        Body::File(_) | Body::Sparse { .. } => (b'0', None),
        Body::HardLink(_) => (b'1', None),
        Body::Symlink(_) => (b'2', None),
        Body::Character(major, minor) => (b'3', Some((major, minor))),
        Body::Block(major, minor) => (b'4', Some((major, minor))),
        Body::Directory => (b'5', None),
        Body::Fifo => (b'6', None),
    };
    let fields = Fields {
        kind,
        path: &path,
        link,
        mode: entry.mode,
        uid: entry.uid,
        gid: entry.gid,
        mtime: seconds.clamp(0, MAX_FIELD_TIME).cast_unsigned(),
        size: entry.stored(),
        device,
    };
    out.extend_from_slice(&fields.block());
}

/// Contents of a header block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// Zeros: the end of the archive.
    End,
    /// An extended header; records of this many bytes follow, which [`decode`] takes with the next header.
    Extended(u64),
    /// An entry; this many bytes follow.
    Entry(u64),
}

/// Examines a header block. After an error, the rest of the archive cannot be read.
pub fn look(block: &[u8; BLOCK]) -> Result<Head, &'static str> {
    if block.iter().all(|byte| *byte == 0) {
        return Ok(Head::End);
    }
    if number(&block[CHECKSUM]) != Some(sum(block).into()) {
        return Err("a header with a wrong checksum");
    }
    if &block[MAGIC] != USTAR {
        return Err("a header of another kind of archive");
    }
    let size =
        number(&block[SIZE]).filter(|size| *size <= limits::SIZE).ok_or("a header with a wrong size")?;
    match block[TYPE] {
        b'x' if size > limits::RECORDS => Err("an extended header that is too long"),
        b'x' => Ok(Head::Extended(size)),
        _ => Ok(Head::Entry(size)),
    }
}

/// The part of the path in a header block.
pub fn name(block: &[u8; BLOCK]) -> &[u8] {
    until_zero(&block[NAME])
}

/// Decodes a header block and the records before it.
pub fn decode(block: &[u8; BLOCK], records: &[u8]) -> Result<Entry, String> {
    let wrong = |what: &str| format!("a header with a wrong {what}");
    let number = |field: Range<usize>, what: &str| number(&block[field]).ok_or_else(|| wrong(what));
    let mut path = until_zero(&block[NAME]).to_vec();
    let mut target = until_zero(&block[LINK]).to_vec();
    let seconds = i64::try_from(number(MTIME, "time")?).map_err(|_| wrong("time"))?;
    let mut mtime = Time { seconds, nanoseconds: 0 };
    let mut attributes: Vec<Attribute> = Vec::new();
    let (mut version, mut sparse_name, mut sparse_size) = ([None, None], None, None);
    for record in pax::parse(records) {
        let (key, value) = record?;
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
                None => return Err(format!("an extended header with `{}`", limits::shown(key))),
            },
        }
    }
    let size = number(SIZE, "size")?;
    let device = || -> Result<(u32, u32), String> {
        let (major, minor) = (number(MAJOR, "device number")?, number(MINOR, "device number")?);
        // Maximum device numbers of the kernel (include/linux/kdev_t.h).
        match (u32::try_from(major), u32::try_from(minor)) {
            (Ok(major), Ok(minor)) if major < 1 << 12 && minor < 1 << 20 => Ok((major, minor)),
            _ => Err(wrong("device number")),
        }
    };
    let kind = block[TYPE];
    if matches!(kind, b'1' | b'2') && (target.is_empty() || target.contains(&0)) {
        return Err(wrong("link"));
    }
    let body = match (kind, sparse_name) {
        (b'0' | 0, Some(name)) => {
            path = name;
            let real = sparse_size.filter(|size| *size <= limits::SIZE && version == [Some(1), Some(0)]);
            Body::Sparse { size: real.ok_or_else(|| wrong("format of holes"))?, stored: size }
        }
        (b'0' | 0, None) => Body::File(size),
        (_, Some(_)) => return Err("holes in what is no file".to_owned()),
        (b'1', None) => match paths::refuse_entry(&target) {
            Some(reason) => return Err(format!("{reason}: a link to {}", limits::shown(&target))),
            None => Body::HardLink(target),
        },
        (b'2', None) => Body::Symlink(target),
        (b'3', None) => device().map(|(major, minor)| Body::Character(major, minor))?,
        (b'4', None) => device().map(|(major, minor)| Body::Block(major, minor))?,
        (b'5', None) => Body::Directory,
        (b'6', None) => Body::Fifo,
        (other, None) => return Err(format!("an entry of type {:?}", char::from(other))),
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
        return Err(format!("{reason}: {}", limits::shown(&path)));
    }
    if path.is_empty() && body != Body::Directory {
        return Err("an entry without a name".to_owned());
    }
    let id = |field: Range<usize>, what: &str| u32::try_from(number(field, what)?).map_err(|_| wrong(what));
    Ok(Entry {
        mode: id(MODE, "mode")? & 0o7777,
        uid: id(UID, "owner")?,
        gid: id(GID, "group")?,
        path,
        mtime,
        attributes,
        body,
    })
}

/// As [`encode`], but fails unless the blocks decode to the same entry.
pub fn encode_checked(entry: &Entry) -> Result<Vec<u8>, String> {
    let mut blocks = Vec::new();
    encode(entry, &mut blocks);
    if decode_whole(&blocks)? == *entry {
        Ok(blocks)
    } else {
        Err("it would be another file when it is loaded".to_owned())
    }
}

/// Decodes all blocks before the contents of an entry.
fn decode_whole(blocks: &[u8]) -> Result<Entry, String> {
    let mut records: &[u8] = &[];
    let mut rest = blocks;
    loop {
        let (block, after) = rest.split_first_chunk::<BLOCK>().ok_or("a header that is cut off")?;
        match look(block)? {
            Head::End => return Err("a header that is empty".to_owned()),
            Head::Entry(_) => return decode(block, records),
            Head::Extended(length) => {
                let length = usize::try_from(length).map_err(|_| "an extended header that is too long")?;
                let whole = length + padding(length as u64);
                let (found, after) = after.split_at_checked(whole).ok_or("a header that is cut off")?;
                (records, rest) = (&found[..length], after);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::ramdisk::header::*;
    use proptest::prelude::*;

    /// `PROPTEST_CASES`, or a number for everyday use.
    fn config() -> ProptestConfig {
        let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
        ProptestConfig::with_cases(cases.unwrap_or(500))
    }

    /// Numbers on both sides of each boundary, and random ones.
    fn around(boundaries: &'static [u64]) -> impl Strategy<Value = u64> {
        let near = (proptest::sample::select(boundaries), 0_u64..3)
            .prop_map(|(boundary, more)| boundary.saturating_sub(1).saturating_add(more));
        prop_oneof![4 => near, 1 => any::<u64>()]
    }

    fn id() -> impl Strategy<Value = u32> {
        around(&[0, 0o7_777_777, 60_000, 0xffff_ffff]).prop_map(|id| u32::try_from(id).unwrap_or(u32::MAX))
    }

    fn time() -> impl Strategy<Value = Time> {
        const SECONDS: &[u64] = &[0, 1 << 31, 1 << 33, 1 << 34, i64::MAX.cast_unsigned(), u64::MAX];
        let seconds =
            prop_oneof![around(SECONDS).prop_map(u64::cast_signed), Just(i64::MIN), Just(-1), any::<i64>(),];
        let nanoseconds = prop_oneof![Just(0), Just(1), Just(999_999_999), 0_u32..1_000_000_000];
        (seconds, nanoseconds).prop_map(|(seconds, nanoseconds)| Time { seconds, nanoseconds })
    }

    /// Names of arbitrary bytes, up to the kernel's maximum length and beyond.
    fn name() -> impl Strategy<Value = Vec<u8>> {
        let byte =
            prop_oneof![4 => 1_u8.., 1 => Just(b'%'), 1 => Just(b'='), 1 => Just(b'.'), 1 => Just(b'\n')];
        let byte = byte.prop_map(|byte| if byte == b'/' { b'|' } else { byte });
        let length = prop_oneof![
            8 => 1_usize..4,
            4 => proptest::sample::select(vec![98_usize, 99, 100, 101, 154, 155, 156, 254, 255, 256]),
        ];
        length.prop_flat_map(move |length| proptest::collection::vec(byte.clone(), length))
    }

    fn path() -> impl Strategy<Value = Vec<u8>> {
        let some = proptest::collection::vec(name(), 1..4).prop_map(|parts| parts.join(&b"/"[..]));
        let deep =
            (proptest::sample::select(vec![limits::PATH - 1, limits::PATH, limits::PATH / 2]), 1_u8..=200)
                .prop_map(|(length, part)| {
                    let part = usize::from(part);
                    let byte = |at| if at % (part + 1) == part && at + 1 < length { b'/' } else { b'd' };
                    (0..length).map(byte).collect()
                });
        prop_oneof![40 => some, 1 => deep]
    }

    fn attributes() -> impl Strategy<Value = Vec<Attribute>> {
        let value = || proptest::collection::vec(any::<u8>(), 0..100);
        let few = proptest::collection::vec((name(), value()), 0..4);
        let many = (1_usize..400).prop_map(|count| {
            (0..count).map(|at| (format!("user.{at}").into_bytes(), vec![b'\n'; at])).collect()
        });
        let large = (0_usize..3).prop_map(|more| {
            let count = limits::ATTRIBUTES / (64 << 10) - 1 + more;
            (0..count).map(|at| (format!("user.{at:240}").into_bytes(), vec![b'='; 64 << 10])).collect()
        });
        prop_oneof![400 => few, 20 => many, 1 => large]
    }

    fn entry() -> impl Strategy<Value = Entry> {
        const SIZES: &[u64] = &[0, 512, 1 << 33, 1 << 62, limits::SIZE, u64::MAX];
        let device = || (around(&[0, 1 << 12, 1 << 32]), around(&[0, 1 << 20, 1 << 32]));
        let narrow = |number| u32::try_from(number).unwrap_or(u32::MAX);
        let device = move || device().prop_map(move |(major, minor)| (narrow(major), narrow(minor)));
        let long =
            proptest::sample::select(vec![99_usize, 100, 101, 4095]).prop_map(|length| vec![b't'; length]);
        let target = prop_oneof![proptest::collection::vec(1_u8.., 1..300), long];
        let body = prop_oneof![
            2 => Just(Body::Directory),
            2 => around(SIZES).prop_map(Body::File),
            2 => (around(SIZES), around(SIZES)).prop_map(|(size, stored)| Body::Sparse { size, stored }),
            1 => target.prop_map(Body::Symlink),
            1 => path().prop_map(Body::HardLink),
            1 => Just(Body::Fifo),
            1 => device().prop_map(|(major, minor)| Body::Character(major, minor)),
            1 => device().prop_map(|(major, minor)| Body::Block(major, minor)),
        ];
        let owner = (0_u32..0o10000, id(), id());
        (path(), owner, time(), attributes(), body).prop_map(
            |(path, (mode, uid, gid), mtime, attributes, body)| Entry {
                path,
                mode,
                uid,
                gid,
                mtime,
                attributes,
                body,
            },
        )
    }

    /// Whether an entry must survive encoding, written independently of the code.
    fn can_be_kept(entry: &Entry) -> bool {
        let is_path = |path: &[u8]| {
            path.split(|byte| *byte == b'/').all(|part| part != b"." && part != b".." && part.len() <= 255)
        };
        let fits = |size: u64| i64::try_from(size).is_ok();
        is_path(&entry.path)
            && match &entry.body {
                Body::File(size) => fits(*size),
                Body::Sparse { size, stored } => fits(*size) && fits(*stored),
                Body::HardLink(target) => is_path(target),
                Body::Character(major, minor) | Body::Block(major, minor) => {
                    *major < 4096 && *minor < 1 << 20
                }
                Body::Directory | Body::Symlink(_) | Body::Fifo => true,
            }
    }

    proptest! {
        #![proptest_config(config())]

        #[test]
        fn what_is_encoded_comes_back_and_the_rest_is_an_error(entry in entry()) {
            let encoded = encode_checked(&entry);
            prop_assert_eq!(encoded.is_ok(), can_be_kept(&entry), "{:?}", encoded);
            if let Ok(blocks) = encoded {
                prop_assert_eq!(blocks.len() % BLOCK, 0);
                prop_assert_eq!(decode_whole(&blocks), Ok(entry));
            }
        }

        #[test]
        fn every_map_comes_back(
            lengths in proptest::collection::vec((around(&[0, 4096, 1 << 40]), around(&[1, 4096, 1 << 40])), 0..100),
            more in around(&[0, 1 << 62]),
        ) {
            let mut end = 0_u64;
            let mut segments = Vec::new();
            for (gap, length) in lengths {
                let Some(offset) = end.checked_add(gap) else { break };
                let Some(after) = offset.checked_add(length).filter(|after| *after <= limits::SIZE) else { break };
                segments.push(Segment { offset, length });
                end = after;
            }
            let size = end.saturating_add(more).min(limits::SIZE);
            let text = map_text(&segments);
            let mut map = Map::new(size);
            let blocks = text.as_chunks::<BLOCK>().0;
            for (at, block) in blocks.iter().enumerate() {
                // Complete only after the last block.
                prop_assert_eq!(map.take(block), Ok(at + 1 == blocks.len()));
            }
            prop_assert_eq!(map.segments(), segments);
        }
    }

    /// Less than one number is kept between blocks, so that no block is parsed twice.
    #[test]
    fn a_map_of_any_length_is_parsed_once() {
        let segment = |at| Segment { offset: (1 << 60) + 2 * at, length: 1 };
        let segments: Vec<Segment> = (0..limits::SEGMENTS as u64).map(segment).collect();
        let mut map = Map::new(limits::SIZE);
        for block in map_text(&segments).as_chunks::<BLOCK>().0 {
            assert!(!map.is_complete() && map.take(block).is_ok());
            assert!(map.rest.capacity() < 2 * 20, "{}", map.rest.capacity());
        }
        assert_eq!(map.segments(), segments);
    }

    #[test]
    fn blocks_are_those_of_every_archive_so_far() {
        // The output of the crate `tar` 0.4 for the same fields.
        let fields = Fields {
            kind: b'3',
            path: b"a",
            link: b"",
            mode: 0o4755,
            uid: 3_000_000_000,
            gid: 65534,
            mtime: 1,
            size: 1 << 33,
            device: Some((1, 3)),
        };
        let block = fields.block();
        let field = |range: Range<usize>| block[range].escape_ascii().to_string();
        assert_eq!(field(MODE), "0004755\\x00");
        assert_eq!(field(UID), "\\x80\\x00\\x00\\x00\\xb2\\xd0^\\x00");
        assert_eq!(field(GID), "0177776\\x00");
        assert_eq!(field(SIZE), "\\x80\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\x00\\x00\\x00");
        assert_eq!(field(MTIME), "00000000001\\x00");
        assert_eq!((field(MAJOR), field(MINOR)), ("0000001\\x00".to_owned(), "0000003\\x00".to_owned()));
        assert_eq!(look(&block), Ok(Head::Entry(1 << 33)));
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
        assert_eq!(decode_whole(&blocks), Ok(disk));
        assert!(look(&[0; BLOCK]) == Ok(Head::End) && look(&[1; BLOCK]).is_err());
    }
}
