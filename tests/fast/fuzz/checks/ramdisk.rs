//! Files of a store after bit rot or manipulation: manifests, states, archives.

use engine::ramdisk::{ArchiveReader, TransferError};
use logic::ramdisk::entry::{Body, Entry};
use logic::ramdisk::header::{self, BLOCK, Head};
use logic::ramdisk::hold::refuse_size;
use logic::ramdisk::manifest::Manifest;
use logic::ramdisk::paths::refuse_entry;
use logic::ramdisk::state::State;
use logic::ramdisk::{StoreFile, classify};

pub fn manifest(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    if let Ok(manifest) = Manifest::parse(text) {
        assert_eq!(Manifest::parse(&manifest.text()), Ok(manifest.clone()));
        let contents = &manifest.contents;
        assert!(refuse_size(contents, u64::MAX, u64::MAX).is_none());
        if contents.occupied_bytes > 0 {
            assert!(refuse_size(contents, contents.occupied_bytes - 1, u64::MAX).is_some());
        }
        let _ = contents.entries();
    }
    let state = State::parse(text);
    assert_eq!(State::parse(&state.text()).text(), state.text());
    for name in text.split('\n') {
        if let StoreFile::Archive(number) | StoreFile::Manifest(number) | StoreFile::Pin(number) =
            classify(name)
        {
            assert!(number > 0 && name.starts_with(&format!("gen-{number}.")), "{name}");
        }
    }
}

/// An accepted entry has a path below the root, and is the same when written again.
fn believed(entry: &Entry) {
    assert_eq!(refuse_entry(&entry.path), None, "{entry:?}");
    if let Body::HardLink(target) = &entry.body {
        assert_eq!(refuse_entry(target), None, "{entry:?}");
    }
    let mut blocks = Vec::new();
    header::encode(entry, &mut blocks);
    let (mut at, mut records) = (0, 0..0);
    loop {
        let block: &[u8; BLOCK] = blocks[at..at + BLOCK].try_into().unwrap();
        match header::look(block) {
            Ok(Head::Extended(length)) => {
                records = at + BLOCK..at + BLOCK + usize::try_from(length).unwrap();
                at = records.end + header::padding(length);
            }
            Ok(Head::Entry(_)) => {
                assert_eq!(header::decode(block, &blocks[records]), Ok(entry.clone()));
                return;
            }
            other => panic!("{other:?}: {entry:?}"),
        }
    }
}

pub fn archive(data: &[u8]) {
    let mut reader = ArchiveReader::new(data);
    loop {
        match reader.next_entry() {
            // Entries after it are still read.
            Ok(Some(Err(_))) => {}
            Ok(Some(Ok(entry))) => {
                if let Body::Sparse { size, .. } = entry.body {
                    match reader.read_map(size) {
                        Ok(Ok(segments)) => {
                            assert!(segments.iter().all(|segment| segment.offset + segment.length <= size));
                        }
                        Ok(Err(_)) => {}
                        Err(trouble) => {
                            return assert!(matches!(trouble, TransferError::Bad(_)), "{trouble:?}");
                        }
                    }
                }
                believed(&entry);
            }
            Ok(None) => break,
            Err(trouble) => {
                assert!(matches!(trouble, TransferError::Bad(_)), "{trouble:?}");
                break;
            }
        }
    }
    // Mutations rarely have a valid checksum: one header gets it, and the rest are its records.
    let Some((block, records)) = data.split_first_chunk::<BLOCK>() else { return };
    let mut fixed = *block;
    header::seal(&mut fixed);
    if matches!(header::look(&fixed), Ok(Head::Entry(_)))
        && let Ok(entry) = header::decode(&fixed, records)
    {
        believed(&entry);
    }
}
