//! Files of a store after bit rot or manipulation: manifests, states, trees, frames, footers.

use logic::ramdisk::hold::refuse_size;
use logic::ramdisk::manifest::Manifest;
use logic::ramdisk::state::State;
use logic::ramdisk::{StoreFile, classify};
use store::format::tree::{Entry, Places, Reader, Run, Runs};
use store::format::{self, FOOTER, Footer, Head};

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
        if let StoreFile::Generation(number) | StoreFile::Bad(number) | StoreFile::Pin(number) =
            classify(name)
        {
            assert!(number > 0 && name.starts_with(&format!("gen-{number}")), "{name}");
        }
    }
}

/// An accepted entry has a name without a slash, in a directory of the tree, and is the same when written again.
pub fn tree(data: &[u8]) {
    let (mut reader, mut places, mut out) = (Reader::new(data), Places::default(), Vec::new());
    let mut entries: Vec<Entry> = Vec::new();
    while let Ok(Some(entry)) = reader.next_entry() {
        entry.put(&mut out);
        let (mut runs, mut blocks, mut is_whole) = (Runs::default(), 0, false);
        loop {
            match reader.run() {
                Ok(Some(Run::Hole(hole))) => {
                    blocks += hole;
                    runs.hole(&mut out, hole);
                }
                Ok(Some(Run::Contents(hashes))) => {
                    blocks += hashes.len() as u64 / 32;
                    hashes.as_chunks::<32>().0.iter().for_each(|hash| runs.content(&mut out, hash));
                }
                Ok(None) => {
                    is_whole = true;
                    break;
                }
                Err(_) => break,
            }
        }
        runs.end(&mut out);
        assert!(!is_whole || blocks == entry.size().div_ceil(format::BLOCK as u64), "{entry:?}");
        if !is_whole {
            return;
        }
        if let Ok(placed) = places.place(entry.clone()) {
            let name = &placed.entry.name;
            assert!(
                entries.is_empty() || !name.is_empty() && !name.contains(&b'/') && name != b"..",
                "{entry:?}"
            );
            let path = places.directories.path(placed.directory);
            assert!(!path.split(|byte| *byte == b'/').any(|part| part == b".."), "{entry:?}");
        }
        entries.push(entry);
    }
    let mut again = Reader::new(&out);
    for entry in &entries {
        assert_eq!(again.next_entry().as_ref(), Ok(&Some(entry.clone())));
    }
}

/// What is accepted as a frame, an index or a footer is what would be written for it, and is within the file.
pub fn frames(data: &[u8]) {
    let size = data.len() as u64;
    let is_within = |offset: u64, head: &Head| {
        let mut bytes = Vec::new();
        head.put(&mut bytes);
        assert_eq!(Head::parse(&bytes).as_ref(), Some(head));
        assert!(offset + head.length() as u64 + u64::from(head.stored) <= size);
        assert!(head.raw as usize <= format::FRAME && head.stored as usize <= format::STORED);
    };
    if let Some(frames) = format::parse_index(data, size) {
        for (offset, head) in &frames {
            is_within(*offset, head);
        }
    }
    let mut found = Vec::new();
    let next = format::scan(data, 0, size, &mut found);
    assert!(next <= size);
    for (offset, head) in &found {
        is_within(*offset, head);
        assert_eq!(Head::parse(&data[usize::try_from(*offset).unwrap()..]).as_ref(), Some(head));
    }
    // Mutations rarely have a valid hash: the end gets it.
    let Some(end) = data.last_chunk::<FOOTER>() else { return };
    let mut fixed = *end;
    let sum = format::hash(&fixed[..FOOTER - 32]);
    fixed[FOOTER - 32..].copy_from_slice(&sum);
    if let Ok(footer) = Footer::parse(&fixed, size) {
        assert_eq!(Footer::parse(&footer.bytes(), size).as_ref(), Ok(&footer));
        for section in [footer.index, footer.manifest, footer.tree, footer.again] {
            assert!(section.offset.checked_add(section.length).is_some_and(|end| end <= size), "{section:?}");
        }
    }
}
