//! Limits of persistent RAM disks on the running kernel: commands that do not end, and no free inodes.
//!
//! Needs root, zram and `dbus-daemon`; otherwise each test is skipped with the reason.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use crate::support::kept::Kept;
use crate::support::private_bus::{call, property, run};
use crate::support::session::Session;
use crate::support::{eventually, eventually_some};
use zbus::{MessageStream, OwnedObjectPath, OwnedVariant};

/// Whether a process has ended; a zombie counts as ended, because it has no parent that waits.
fn has_ended(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.map_or(true, |stat| stat.contains(") Z ") || stat.contains(") X "))
}

/// A script that starts a process, writes its id to a file, and ignores SIGTERM.
const HANGS: &str = "
trap '' TERM
(sh -c 'echo $$ >NOTE.new; mv NOTE.new NOTE; exec sleep 600') &
while :; do sleep 1; done
";

#[test]
fn commands_that_do_not_end_are_killed_and_the_last_snapshot_stays() {
    let kept = Kept::new("hanging");
    let directory = tempfile::tempdir().unwrap();
    let note = directory.path().join("note");
    let script = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text.replace("NOTE", note.to_str().unwrap())).unwrap();
        path.display().to_string()
    };
    let (before, after) = (script("before", "exit 0"), script("after", "exit 0"));
    let lines = format!(
        "size = \"16MiB\"\nhook-time-limit = \"1s\"\n\
         pre-save = [\"/bin/sh\", {before:?}]\npost-restore = [\"/bin/sh\", {after:?}]"
    );
    let Some(session) = Session::begin(&kept.section(&lines)) else { return };
    session.ok(&["reload"]);
    let file = kept.mount_point().join("file");
    fs::write(&file, "first").unwrap();
    session.ok(&["ramdisk", "save", kept.name]);
    let status = || session.json(&["ramdisk", "status", kept.name])["ramdisks"][0]["status"].clone();
    let names = || {
        let entries = fs::read_dir(kept.store()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = entries.collect();
        names.sort();
        names
    };
    let before = (names(), session.ok(&["ramdisk", "snapshots", kept.name]));
    // Processes of the command end with it. On a busy machine it may be killed before it starts them: then once more.
    let until_it_began = |act: &dyn Fn()| {
        let begun = (0..20).find_map(|_| {
            act();
            fs::read_to_string(&note).ok()
        });
        let pid = begun.expect("the command begins");
        eventually("the command has ended", || has_ended(&pid));
        fs::remove_file(&note).unwrap();
    };

    fs::write(&file, "second").unwrap();
    script("before", HANGS);
    until_it_began(&|| {
        let messages = session.fails(&["ramdisk", "save", kept.name], 1);
        let disk = status();
        assert_eq!(disk["last_save_result"], "failed", "{disk}");
        // The command, and its limit.
        for text in [&messages, disk["last_save_message"].as_str().unwrap()] {
            for part in ["hanging", "pre-save", "/bin/sh", " 1 s"] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
    });
    assert_eq!((names(), session.ok(&["ramdisk", "snapshots", kept.name])), before);
    session.ok(&["ramdisk", "verify", kept.name]);

    // A failing hook after a load does not undo it.
    script("before", "exit 0");
    script("after", HANGS);
    until_it_began(&|| {
        session.ok(&["ramdisk", "restore", kept.name, "1"]);
        assert_eq!(fs::read_to_string(&file).unwrap(), "first");
        let disk = status();
        assert_eq!((&disk["load_state"], &disk["generation"]), (&"loaded".into(), &1.into()), "{disk}");
        for part in ["post-restore", "/bin/sh", " 1 s"] {
            assert!(disk["load_message"].as_str().unwrap().contains(part), "{part}: {disk}");
        }
        // Pinned, so that further attempts do not prune it.
        session.ok(&["ramdisk", "pin", kept.name, "1"]);
    });

    fs::write(&file, "third").unwrap();
    session.ok(&["ramdisk", "save", kept.name]);
    assert_eq!(status()["last_save_result"], "ok");
}

#[test]
fn a_cancelled_save_ends_its_command_and_is_no_failure() {
    let kept = Kept::new("cancelled");
    let directory = tempfile::tempdir().unwrap();
    let (script, note) = (directory.path().join("before"), directory.path().join("note"));
    fs::write(&script, "exit 0").unwrap();
    let lines = format!("size = \"16MiB\"\nhook-time-limit = \"90s\"\npre-save = [\"/bin/sh\", {script:?}]");
    let Some(session) = Session::begin(&kept.section(&lines)) else { return };
    session.ok(&["reload"]);
    session.ok(&["ramdisk", "save", kept.name]);
    fs::write(&script, HANGS.replace("NOTE", note.to_str().unwrap())).unwrap();
    run(async {
        let client = session.bus().client().await;
        let disk = format!("/org/zramd1/ramdisk/{}", kept.name);
        let options = HashMap::<String, OwnedVariant>::new();
        let job: OwnedObjectPath = call(&client, &disk, "org.zramd1.RamDisk.Save", &options).await.unwrap();
        eventually("the command begins", || note.exists());
        call::<_, ()>(&client, &job, "org.zramd1.Job.Cancel", &()).await.unwrap();
        let ended = async || {
            Some(property(&client, &job, "org.zramd1.Job", "Result").await)
                .filter(|result: &String| !result.is_empty())
        };
        let result = eventually_some("the save ends", ended).await;
        assert_eq!(result, "cancelled");
        let last: String = property(&client, &disk, "org.zramd1.RamDisk", "LastSaveResult").await;
        assert_eq!(last, "ok", "of the save before");
    });
    let pid = fs::read_to_string(&note).unwrap();
    eventually("the command has ended", || has_ended(&pid));
    // For the save at the end of the session.
    fs::write(&script, "exit 0").unwrap();
}

#[test]
fn a_disk_without_inodes_takes_no_files_and_says_so() {
    let kept = Kept::new("few");
    let section = kept.section("size = \"16MiB\"\ninodes = 64\nspace-watch = true");
    let Some(session) = Session::begin(&section) else { return };
    run(async {
        let client = session.bus().client().await;
        let rule = "type='signal',interface='org.zramd1.RamDisk',member='SpaceLow'";
        let mut signals = MessageStream::for_match_rule(rule, &client, None).await.unwrap();
        session.ok(&["reload"]);
        let status = || session.json(&["ramdisk", "status", kept.name])["ramdisks"][0].clone();
        let free = || status()["free_inodes"].as_u64().unwrap();
        assert!(free() > 50, "{}", status());

        let full = (0..100).find_map(|number| {
            let made = fs::write(kept.mount_point().join(number.to_string()), "");
            made.err().map(|error| (number, error))
        });
        let (made, error) = full.expect("no more than 64 fit");
        assert!(made > 50 && error.kind() == ErrorKind::StorageFull, "{made}: {error}");
        assert_eq!(free(), 0);
        let space = rustix::fs::statvfs(kept.mount_point()).unwrap();
        assert!(space.f_bfree * 10 > space.f_blocks * 9, "bytes are left");

        // Polled twice a minute. Usage seen during the set-up may have been reported already.
        let deadline = Instant::now() + Duration::from_secs(180);
        loop {
            let message =
                tokio::time::timeout_at(deadline.into(), next(&mut signals)).await.expect("no signal");
            let (percent, free): (u32, u64) = message.body().deserialize().unwrap();
            assert!(percent >= 80 && free > 10 << 20, "{percent} {free}");
            assert!(message.header().path().unwrap().as_str().ends_with("/few"));
            if percent >= 95 {
                break;
            }
        }
        let log = fs::read_to_string(session.bus().bus().directory().join("zramd.log")).unwrap();
        let place = kept.mount_point().display().to_string();
        let told = |line: &str| [&place, "ramdisk.few", "100 %"].iter().all(|part| line.contains(*part));
        assert!(log.lines().any(told), "{log}");

        // Existing files can be written, and removing one makes room for another.
        fs::write(kept.mount_point().join("1"), "contents").unwrap();
        fs::remove_file(kept.mount_point().join("0")).unwrap();
        assert_eq!(free(), 1);
        fs::write(kept.mount_point().join("new"), "fits").unwrap();
        session.ok(&["ramdisk", "save", kept.name]);
        assert_eq!(status()["status"]["snapshots"][0]["generation"], 1);
    });
}

async fn next(stream: &mut MessageStream) -> zbus::Message {
    use futures_core::Stream;
    let next = std::future::poll_fn(|context| std::pin::Pin::new(&mut *stream).poll_next(context));
    next.await.expect("the connection is closed").unwrap()
}
