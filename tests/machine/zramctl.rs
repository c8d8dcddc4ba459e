//! zramctl(8) of util-linux beside ours: its options to set up and reset devices, and its table, which the example in C prints from
//! the bus.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::interop_sdbus::compiled;
use crate::support::private_bus::Guarded;
use crate::support::session::{Session, attribute};
use crate::support::{has_program, repository, skip, texts};

const COLUMNS: &str = "NAME,ALGORITHM,DISKSIZE,DATA,COMPR,TOTAL,STREAMS,MOUNTPOINT";

/// The cells of zramctl for the devices that are set up, in the order of their names.
fn of_zramctl() -> Vec<Vec<String>> {
    let output =
        Command::new("zramctl").args(["--raw", "--noheadings", "--output", COLUMNS]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let cell = |cell: &str| if cell.is_empty() { "-".to_owned() } else { cell.to_owned() };
    let mut rows: Vec<Vec<String>> =
        texts(&output).0.lines().map(|line| line.split(' ').map(cell).collect()).collect();
    for row in &mut rows {
        row.resize(COLUMNS.split(',').count(), "-".to_owned());
    }
    rows.sort();
    rows
}

fn cells(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn devices_are_set_up_and_reset_as_with_zramctl() {
    let Some(session) = Session::begin("") else { return };
    let node = session.ok(&["-f", "-s", "4M", "-a", "lzo-rle"]);
    let name = node.strip_prefix("/dev/").unwrap();
    assert_eq!(
        (attribute(name, "disksize"), attribute(name, "initstate")),
        ((4 << 20).to_string(), "1".to_owned())
    );
    assert!(attribute(name, "comp_algorithm").contains("[lzo-rle]"));
    if has_program("zramctl") {
        let row = of_zramctl().into_iter().find(|row| row[0] == node).unwrap();
        assert_eq!((row[1].as_str(), row[2].as_str(), row[7].as_str()), ("lzo-rle", "4M", "-"));
    }
    session.ok(&["-r", name]);
    assert!(session.fails(&["-r", name], 4).contains(name));
    // By its name, of which zramctl prints nothing.
    assert_eq!(session.ok(&[&node, "--size=1048576"]), "");
    assert_eq!(attribute(name, "disksize"), (1 << 20).to_string());
    session.ok(&["--reset", &node]);
    // A device in use is not reset.
    let swap = session.ok(&["create", "--size", "4MiB"]);
    assert!(session.fails(&["-r", &swap], 1).contains("zramdctl remove"));
    session.ok(&["-q", "remove", &swap]);
    assert!(session.fails(&["-f", "-s", "much"], 2).contains("512M"));
}

#[test]
fn the_example_prints_the_table_of_zramctl_and_follows_changes() {
    let mount_point = tempfile::tempdir().unwrap();
    let config = format!(
        "[zram0]\nzram-size = \"16MiB\"\n[zram1]\nzram-size = \"24MiB\"\nmount-point = {:?}\n[zram2]\nzram-size = \"4MiB\"\nfs-type = \"none\"\n",
        mount_point.path().join("mounted")
    );
    let Some(session) = Session::begin(&config) else { return };
    if !has_program("zramctl") {
        return skip("needs zramctl");
    }
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compiled(directory.path(), "packaging/examples/table.c") else { return };
    session.ok(&["reload"]);
    let example = || {
        let mut command = Command::new(&program);
        command.env("DBUS_SYSTEM_BUS_ADDRESS", session.bus().address());
        command
    };
    // The file system may write meanwhile.
    let mut compared = (Vec::new(), Vec::new());
    for _ in 0..20 {
        let output = example().output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let printed = texts(&output).0;
        let mut lines = printed.lines();
        assert_eq!(cells(lines.next().unwrap()).join(","), COLUMNS);
        compared = (lines.map(cells).collect(), of_zramctl());
        if compared.0 == compared.1 {
            break;
        }
    }
    assert_eq!(compared.0, compared.1);
    assert_eq!(compared.0.len(), 3);

    let mut child = Guarded(example().arg("--follow").stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let mut find = |is_it: &dyn Fn(&[String]) -> bool| {
        let found = lines.by_ref().map(|line| cells(&line.unwrap())).find(|row| is_it(row));
        assert!(found.is_some(), "the example has ended");
    };
    find(&|row| row[0] == "/dev/zram2");
    session.ok(&["-f", "-s", "8M"]);
    find(&|row| row[0] == "/dev/zram3" && row[2] == "8M");
    session.ok(&["resize", "zram0", "20MiB"]);
    find(&|row| row[0] == "/dev/zram0" && row[2] == "20M" && row[7] == "[SWAP]");
}

/// README's lines for busctl, as they are.
#[test]
fn the_lines_in_the_readme_work() {
    if !has_program("busctl") {
        return skip("needs busctl");
    }
    let Some(session) = Session::begin("[zram0]\nzram-size = \"16MiB\"\n") else { return };
    session.ok(&["reload"]);
    let readme = std::fs::read_to_string(repository("README.md")).unwrap();
    let lines: Vec<&str> = readme.lines().filter(|line| line.starts_with("busctl ")).collect();
    assert!(lines.len() >= 4, "{lines:?}");
    for line in lines.iter().filter(|line| !line.contains("monitor")) {
        let line = line.replacen("busctl", &format!("busctl --address={}", session.bus().address()), 1);
        let output = Command::new("sh").args(["-c", &line]).output().unwrap();
        // Only Compact has no answer.
        let is_answered = output.stdout.is_empty() == line.contains("Compact");
        assert!(output.status.success() && is_answered, "{line}: {output:?}");
    }
}
