//! The draft of a save has a name that no load uses, and the next save removes the draft of a killed one.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::apart::this_program;
use crate::support::ramdisk::{FORCED, Trial, noise, picture, small};
use host::linux::ramdisk::Calls;
use logic::ramdisk::state::Outcome;
use rustix::process::{Signal, getpid, kill_process};
use store::{self, Ramdisk, Saved};

/// Path of the disk's description, for the process that is killed.
const SPEC: &str = "ZRAMD_TEST_DISK";
const DRAFT: &str = "gen-2.partial";

/// Contents that do not compress.
fn large(root: &Path) {
    let noise = noise(1 << 20);
    for number in 0..24_u8 {
        let file: Vec<u8> = noise.iter().map(|byte| byte.wrapping_add(number)).collect();
        fs::write(root.join(format!("large-{number:02}")), file).unwrap();
    }
}

fn save(disk: &Ramdisk) -> Saved {
    store::save(&Calls::new(), disk, FORCED, &mut |_| true).unwrap()
}

#[test]
#[ignore = "run by the_draft_of_a_killed_save_is_removed_by_the_next"]
fn dies_while_it_saves() {
    let spec = fs::read_to_string(std::env::var_os(SPEC).unwrap()).unwrap();
    let disk: Ramdisk = serde_json::from_str(&spec).unwrap();
    let draft = disk.store().join(DRAFT);
    let saved = store::save(&Calls::new(), &disk, FORCED, &mut |_| {
        if fs::metadata(&draft).is_ok_and(|meta| meta.len() > 0) {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
        true
    });
    panic!("it has not been killed: {saved:?}");
}

/// Kills a save while it writes.
fn killed_save(trial: &Trial) {
    let spec: PathBuf = trial.path("spec.json");
    fs::write(&spec, serde_json::to_string(&trial.disk).unwrap()).unwrap();
    let output = this_program()
        .args(["--ignored", "--exact", "ramdisk_draft::dies_while_it_saves", "--nocapture"])
        .env(SPEC, &spec)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.signal(), Some(Signal::KILL.as_raw()), "{output:?}");
}

#[test]
fn the_draft_of_a_killed_save_is_removed_by_the_next() {
    let trial = Trial::with(small);
    let saved = save(&trial.disk);
    assert!(matches!(saved, Saved::Written { generation: 1, .. }), "{saved:?}");
    assert_eq!(trial.names(), ["gen-1", "state.json"]);
    let old = picture(trial.place());
    large(trial.place());
    let new = picture(trial.place());

    killed_save(&trial);
    assert_eq!(trial.names(), ["gen-1", DRAFT, "state.json"]);
    assert!(fs::metadata(trial.disk.store().join(DRAFT)).unwrap().len() > 0);
    assert_eq!(trial.generations(), [1]);
    trial.verify(1).unwrap();

    // The next save in the same boot.
    let saved = save(&trial.disk);
    assert!(matches!(saved, Saved::Written { generation: 2, .. }), "{saved:?}");
    assert_eq!(trial.names(), ["gen-1", "gen-2", "state.json"]);
    trial.verify(1).unwrap();
    trial.verify(2).unwrap();
    trial.reboot();
    assert_eq!(trial.load().unwrap().generation, Some(2));
    assert!(picture(trial.place()) == new);

    // After a reboot the last good snapshot is loaded, and the next save removes the draft.
    store::delete(&Calls::new(), &trial.disk, 2).unwrap();
    killed_save(&trial);
    trial.reboot();
    let loaded = trial.load().unwrap();
    assert_eq!((loaded.outcome, loaded.generation), (Outcome::Loaded, Some(1)), "{:?}", loaded.refused);
    assert!(picture(trial.place()) == old);
    save(&trial.disk);
    assert!(!trial.names().iter().any(|name| name == DRAFT), "{:?}", trial.names());
    trial.verify(2).unwrap();
}
