//! A program or file system that does not answer delays nothing that it does not take part in, and is named where it does.

use std::fs;
use std::process::{Child, Command, Stdio};

use crate::support::dead_fuse::DeadFuse;
use crate::support::example::session;
use crate::support::private_bus::Guarded;
use crate::support::{PYTHON, eventually, texts};
use host::linux::LinuxHost;
use host::{Holder, Host};

const CONFIGURATION: &str = "[zram7]\nzram-size = \"32MiB\"\nmount-point = \"/mnt/zramd-waiting\"\n";

fn setup(file: &str, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zramd-setup"));
    command.args(["--config", file]).args(words);
    command
}

/// A process that runs this Python text, which prints a line when it is ready.
fn python(text: &str) -> Guarded {
    let mut child: Child = Command::new(PYTHON)
        .args(["-c", &format!("{text}\nprint('ready', flush=True)\nimport time; time.sleep(600)")])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
    Guarded(child)
}

#[test]
fn a_dead_file_system_of_another_program_delays_neither_set_up_nor_removal() {
    let Some(_session) = session() else { return };
    let Some(dead) = DeadFuse::mount() else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("z.toml");
    fs::write(&file, CONFIGURATION).unwrap();
    let file = file.to_str().unwrap();
    let (dead, applied) = dead.beside(setup(file, &["apply"]));
    assert!(applied.status.success(), "{applied:?}");
    // The users of the mount are named, and the dead file system is not one.
    let user = python("held = open('/mnt/zramd-waiting/file', 'w')");
    let (dead, refused) = dead.beside(setup(file, &["revert"]));
    let messages = texts(&refused).1;
    assert!(messages.contains(&format!("(pid {})", user.0.id())), "{messages}");
    assert!(!messages.contains(&format!("(pid {})", dead.pid())), "{messages}");
    drop(user);
    let user = python("held = open('/dev/zram7', 'rb')");
    let (dead, refused) = dead.beside(setup(file, &["down", "zram7"]));
    let messages = texts(&refused).1;
    assert!(messages.contains(&format!("(pid {})", user.0.id())), "{messages}");
    drop(user);
    let (_dead, reverted) = dead.beside(setup(file, &["revert"]));
    assert!(reverted.status.success(), "{reverted:?}");
}

/// Paths of the configuration below a dead file system: what is there fails and is named, everything else is set up.
#[test]
fn a_dead_file_system_fails_only_what_is_configured_there() {
    let Some(_session) = session() else { return };
    let Some(dead) = DeadFuse::mount() else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("z.toml");
    let there = dead.path().display();
    let sections = [
        format!("[zram6]\nzram-size = \"16MiB\"\nmount-point = \"{there}/parent/cache\"\n"),
        format!(
            "[zram7]\nzram-size = \"16MiB\"\nwriteback-file = \"{there}/file\"\nwriteback-size = \"16MiB\"\n"
        ),
        "[zram8]\nzram-size = \"16MiB\"\nmount-point = \"/mnt/zramd-waiting\"\n".to_owned(),
        format!("[ramdisk.there]\nsize = \"4MiB\"\nmount-point = \"{there}/disk\"\n"),
        format!(
            "[ramdisk.kept]\nsize = \"4MiB\"\nmount-point = \"/mnt/zramd-waiting-disk\"\npersist = \"snapshot\"\nstore = \"{there}/store\"\n"
        ),
    ];
    fs::write(&file, sections.concat()).unwrap();
    let setup = |dead: &DeadFuse, words: &[&str]| {
        let mut command = dead.inside(env!("CARGO_BIN_EXE_zramd-setup"));
        command.arg("--config").arg(&file).args(words);
        command
    };
    let command = setup(&dead, &["apply"]);
    let (dead, applied) = dead.beside(command);
    let messages = texts(&applied).1;
    for name in ["zram6", "zram7", "ramdisk.there", "/store"] {
        assert!(messages.contains(name), "{name}: {messages}");
    }
    let mut command = dead.inside("mountpoint");
    command.args(["-q", "/mnt/zramd-waiting"]);
    let (dead, mounted) = dead.beside(command);
    let command = setup(&dead, &["revert"]);
    let (_dead, reverted) = dead.beside(command);
    assert!(reverted.status.success(), "{reverted:?}");
    assert!(mounted.status.success() && applied.status.code() == Some(1), "{messages}");
}

/// Everything that prevents an unmount is found in the text of `/proc`, also in another mount namespace and in a chroot.
#[test]
fn the_users_of_a_mount_are_found_by_file_map_directory_root_and_program() {
    let Some(_session) = session() else { return };
    let Some(dead) = DeadFuse::mount() else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("z.toml");
    fs::write(&file, CONFIGURATION).unwrap();
    let (_dead, applied) = dead.beside(setup(file.to_str().unwrap(), &["apply"]));
    assert!(applied.status.success(), "{applied:?}");
    let place = "/mnt/zramd-waiting";
    fs::write(format!("{place}/file"), [1; 4096]).unwrap();
    fs::copy("/bin/sleep", format!("{place}/program")).unwrap();
    let texts = [
        "held = open(f'{place}/file')",
        concat!(
            "import ctypes\nlibc = ctypes.CDLL(None)\nfile = open(f'{place}/file')\n",
            "libc.mmap(None, 4096, 1, 1, file.fileno(), ctypes.c_long(0))\nfile.close()"
        ),
        "import os\nos.chdir(place)",
        "import os\nos.chroot(place)",
        "import os\nheld = os.open(f'{place}/file', os.O_PATH)",
        // In a mount namespace of its own, where it is mounted elsewhere as well.
        "import ctypes\nctypes.CDLL(None).unshare(0x20000)\nheld = open(f'{place}/file')",
    ];
    let mut users: Vec<Guarded> =
        texts.into_iter().map(|text| python(&format!("import time\nplace = '{place}'\n{text}"))).collect();
    let mut program = Command::new(format!("{place}/program"));
    users.push(Guarded(program.arg("600").stdin(Stdio::null()).current_dir("/").spawn().unwrap()));
    let found = || -> Vec<u32> {
        let holders: Vec<Holder> = LinuxHost::new("/").mount_users(place);
        holders.iter().map(|holder| holder.pid).collect()
    };
    let mut expected: Vec<u32> = users.iter().map(|user| user.0.id()).collect();
    expected.sort_unstable();
    // The program is executed a moment after it was started.
    eventually("all users are found", || found() == expected);
    drop(users);
    assert_eq!(found(), Vec::<u32>::new());
}

/// Every user may open a device by name only, and have a file of that name.
#[test]
fn a_name_of_a_device_holds_nothing() {
    let Some(_session) = session() else { return };
    let host = LinuxHost::new("/");
    let Some(number) = host.device_numbers().unwrap().into_iter().next() else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(format!("zram{number}"));
    fs::write(&file, "").unwrap();
    let _name = python(&format!("import os\nheld = os.open('/dev/zram{number}', os.O_PATH)"));
    let _file = python(&format!("held = open({file:?})"));
    assert_eq!(host.holders(number), []);
    let opened = python(&format!("held = open('/dev/zram{number}', 'rb')"));
    let pids: Vec<u32> = host.holders(number).iter().map(|holder| holder.pid).collect();
    assert_eq!(pids, [opened.0.id()]);
}
