//! Programs of the tests, on a machine apart from this one: a mount namespace that has programs, libraries, the repository
//! and the temporary directory, but neither zram, swap, configuration, records, nor a system bus.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use crate::support::{CTL, find_program, repository, skip};

/// Makes the machine, says so, and keeps it until standard input is closed. `/sys` is where the new root is mounted, because
/// no path that a test uses is below it. Arguments: the paths that tests use.
const MACHINE: &str = r#"
set -eu
PATH=$PATH:/usr/sbin:/sbin
mount -t tmpfs -o mode=0755 none /sys
cd /sys
mkdir -p dev/pts etc/systemd old proc run sys var
ln -s /run var/run
# Programs and libraries; the other files are for the dynamic linker.
for path in /bin /sbin /lib* /usr /nix /gnu /opt /etc/alternatives /etc/ld.so.*; do
    if [ -L "$path" ]; then
        cp -P "$path" ".$path"
    elif [ -d "$path" ]; then
        mkdir ".$path"
        mount --rbind "$path" ".$path"
    elif [ -e "$path" ]; then
        cp "$path" ".$path"
    fi
done
for node in null zero full random urandom tty; do
    : >"dev/$node"
    mount --bind "/dev/$node" "dev/$node"
done
: >dev/kmsg
mount -t devpts -o newinstance,ptmxmode=0666 none dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount --rbind /proc proc
printf 'root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n' >etc/passwd
printf 'root:x:0:\nnogroup:x:65534:\n' >etc/group
printf 'Filename Type Size Used Priority\n' >swaps
printf 'MemTotal: 8000000 kB\nMemFree: 6000000 kB\nMemAvailable: 7000000 kB\n' >meminfo
printf 'quiet\n' >cmdline
for file in swaps meminfo cmdline; do
    mount --bind "$file" "proc/$file"
done
for path; do
    if ! [ -e ".$path" ]; then
        mkdir -p ".$path"
        mount --rbind "$path" ".$path"
    fi
done
pivot_root . old
cd /
umount -n -l old
rmdir old
echo ready
read -r _ || true
"#;

/// Programs that need more of this machine, such as their configuration or the home directory, and never start ours.
const OUTSIDE: [&str; 10] = [
    "cargo",
    "chmod",
    "git",
    "groff",
    "mandoc",
    "nix-build",
    "nix-instantiate",
    "promtool",
    "touch",
    "xmllint",
];

/// The words that start a program on the machine apart; its process is kept until this program ends.
fn entering() -> Option<&'static [String]> {
    static ENTERING: OnceLock<Option<(Vec<String>, Child)>> = OnceLock::new();
    let begun = ENTERING.get_or_init(|| match begin() {
        Ok(begun) => Some(begun),
        Err(why) => {
            skip(&format!("cannot hide this machine from the programs: {why}"));
            None
        }
    });
    begun.as_ref().map(|(words, _)| words.as_slice())
}

/// What tests read and write. A directory is before those that it contains.
fn paths() -> Vec<PathBuf> {
    let mut paths = vec![std::env::temp_dir(), repository(""), PathBuf::from(env!("CARGO_TARGET_TMPDIR"))];
    let original = std::env::var_os("ZRAM_GENERATOR").map(PathBuf::from);
    let programs = [Some(PathBuf::from(CTL)), original].into_iter().flatten();
    paths.extend(programs.filter_map(|program| program.parent().map(Path::to_owned)));
    paths.sort();
    paths
}

fn begin() -> Result<(Vec<String>, Child), String> {
    let path = |name: &str| {
        let found = find_program(name).ok_or(format!("there is no {name}"))?;
        Ok::<_, String>(found.to_str().ok_or("its path is not UTF-8")?.to_owned())
    };
    let (unshare, nsenter) = (path("unshare")?, path("nsenter")?);
    let is_root = rustix::process::geteuid().is_root();
    let mut command = Command::new(&unshare);
    command.args(["--mount", "--propagation", "private"]).args((!is_root).then_some("--map-root-user"));
    command.args(["sh", "-c", MACHINE, "sh"]).args(paths());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).map_err(|error| error.to_string())?;
    if line != "ready\n" {
        let mut why = String::new();
        child.stderr.take().unwrap().read_to_string(&mut why).ok();
        return Err(why.trim().replace('\n', ", "));
    }
    let target = format!("--target={}", child.id());
    let mut words = vec![nsenter, target, "--mount".to_owned()];
    if !is_root {
        words.extend([
            "--user".to_owned(),
            "--preserve-credentials".to_owned(),
            unshare,
            "--user".to_owned(),
        ]);
        // With the same IDs as outside.
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        words.extend([format!("--map-user={}", uid.as_raw()), format!("--map-group={}", gid.as_raw())]);
    }
    Ok((words, child))
}

/// A program on the machine apart, in its root directory: a path, or a name in `PATH`.
pub fn command_for(program: impl AsRef<OsStr>) -> Command {
    let Some([first, rest @ ..]) = entering() else { return Command::new(program) };
    let mut command = Command::new(first);
    command.args(rest).arg("--").arg(program);
    command
}

/// One of [`OUTSIDE`], on this machine.
pub fn outside(program: impl AsRef<OsStr>) -> Command {
    let name = Path::new(&program).file_name().unwrap().to_str().unwrap();
    assert!(OUTSIDE.contains(&name), "{name} is started on this machine");
    Command::new(program)
}

/// This test program again, to run one of its tests.
pub fn this_program() -> Command {
    Command::new(std::env::current_exe().unwrap())
}

/// Rust files of the tests that this program consists of.
fn sources() -> Vec<PathBuf> {
    let files = ["tests/fast", "tests/support", "tests/support/import"].into_iter();
    let files = files.flat_map(|directory| fs::read_dir(repository(directory)).unwrap());
    files
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "rs"))
        .collect()
}

/// No other file starts programs, except the helpers, which start those of other packages by name.
#[test]
fn every_program_is_started_here() {
    let here = repository(file!());
    let start = ["Command", "::new("].concat();
    for path in sources().into_iter().filter(|path| *path != here) {
        let text = fs::read_to_string(&path).unwrap();
        let helper = path.starts_with(repository("tests/support"));
        for after in text.split(&start).skip(1) {
            let is_other = after.starts_with("PYTHON)") || after.starts_with('"');
            assert!(helper && is_other, "{}: {start}{}: use `command_for`", path.display(), &after[..20]);
        }
        let ours = ["CARGO", "_BIN_EXE"].concat();
        assert!(path == repository("tests/support/mod.rs") || !text.contains(&ours), "{}", path.display());
        let other = ["std::os::unix::process::", "posix_spawn", "libc::exec"];
        assert!(!other[1..].iter().any(|name| text.contains(name)), "{}", path.display());
    }
}

#[test]
fn nothing_of_this_machine_is_there() {
    if entering().is_none() {
        return;
    }
    let look = "cat /proc/swaps /proc/cmdline; ls -A /run /sys /mnt /etc/zramd /dev/zram* 2>/dev/null; \
                echo; cut -d ' ' -f 5 /proc/self/mountinfo";
    let output = command_for("sh").args(["-c", look]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let nothing = "Filename Type Size Used Priority\nquiet\n/run:\n\n/sys:\n\n";
    let mounts = text.strip_prefix(nothing).unwrap_or_else(|| panic!("{text}"));
    let allowed =
        ["/dev/", "/etc/alternatives", "/etc/ld.so", "/proc", "/usr", "/opt", "/nix", "/gnu", "/lib"];
    let paths = paths();
    for place in mounts.lines() {
        let is_ours = paths.iter().any(|path| Path::new(place).starts_with(path));
        assert!(place == "/" || is_ours || allowed.iter().any(|start| place.starts_with(start)), "{place}");
    }
}
