//! `zramdctl list` compared with zramctl.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Output};

use crate::support::{
    can_use_real_kernel, eventually, has_program, real_kernel_lock, repository, setup, skip, texts,
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_zramdctl");

fn ctl(words: &[&str]) -> Output {
    Command::new(PROGRAM).args(words).output().unwrap()
}

fn example() -> String {
    repository("config/example.toml").to_str().unwrap().to_owned()
}

/// Removes the devices of the test at its end.
struct Devices {
    _lock: fs::File,
}

impl Drop for Devices {
    fn drop(&mut self) {
        let output = setup(&["revert"]);
        if !output.status.success() {
            eprintln!("could not clean up: {output:?}");
        }
    }
}

/// zramctl formats the number of migrated objects as bytes, which only differs without `--bytes`.
const FORMS: [(&[&str], &str); 2] = [
    (&["--bytes"], "ALGORITHM,DISKSIZE,DATA,COMPR,TOTAL,MEM-LIMIT,MEM-USED,ZERO-PAGES,MIGRATED,MOUNTPOINT"),
    (&[], "ALGORITHM,DISKSIZE,DATA,COMPR,TOTAL,MEM-LIMIT,MEM-USED,ZERO-PAGES,MOUNTPOINT"),
];

/// Calls of zramctl in scripts that only look. packaging/docs/switching.md lists them.
const CALLS: [&str; 16] = [
    "",
    "/dev/zram0",
    "--output-all",
    "--bytes --raw --noheadings",
    "-n -o NAME",
    "--noheadings -o NAME,MOUNTPOINT",
    "-o NAME,DISKSIZE,DATA,COMPR,TOTAL",
    "--raw --bytes -n -o NAME,ALGORITHM,DISKSIZE",
    "--output NAME,STREAMS,ZERO-PAGES",
    "-b --output name,data,compr,total,mem-limit,mem-used,migrated",
    "-bn --raw -o DISKSIZE /dev/zram0",
    "-n --bytes --raw -o DATA,COMPR,TOTAL /dev/zram1",
    "--noheadings --output ALGORITHM /dev/zram0",
    "--output MOUNTPOINT --noheadings /dev/zram1",
    "/dev/zram77",
    "-o NAME,UNKNOWN",
];

/// Whether a call succeeds, and its lines with the cells by column; without headings, by number of the column.
fn looked(program: &str, call: &str) -> (bool, Vec<Vec<String>>) {
    let output = Command::new(program)
        .args(call.split_whitespace().filter(|word| *word != "--raw"))
        .arg("--raw")
        .output()
        .unwrap();
    // zramctl leaves cells empty. With all columns, two have other headings here.
    let cell = |cell: &str| match cell {
        "" => "-".to_owned(),
        "SAME" => "ZERO-PAGES".to_owned(),
        "MEM-PEAK" => "MEM-USED".to_owned(),
        cell => cell.to_owned(),
    };
    let rows = texts(&output).0;
    let rows = rows.lines().map(|line| line.split(' ').map(cell).collect());
    // RAM disks are no devices.
    (output.status.success(), rows.filter(|row: &Vec<String>| row[0] != "scratch").collect())
}

/// The lines with these columns only, if there are headings.
fn with_columns(lines: Vec<Vec<String>>, headings: &[String]) -> Vec<Vec<String>> {
    let Some(places) = headings
        .iter()
        .map(|heading| lines.first()?.iter().position(|found| found == heading))
        .collect::<Option<Vec<usize>>>()
    else {
        return lines;
    };
    lines.iter().map(|line| places.iter().map(|&place| line[place].clone()).collect()).collect()
}

fn calls_are_those_of_zramctl() {
    let table = fs::read_to_string(repository("packaging/docs/switching.md")).unwrap();
    for call in CALLS {
        let listed = format!("| `{}` |", format!("zramctl {call}").trim_end());
        assert!(table.contains(&listed), "{listed}");
        let mut seen: Vec<Vec<Vec<String>>> = Vec::new();
        eventually("the same answer", || {
            let (succeeds, theirs) = looked("zramctl", call);
            let (succeeds_too, ours) = looked(PROGRAM, call);
            seen = if call == "--output-all" {
                // The columns of zramctl are among others. MIGRATED: see `FORMS`.
                let mut common = theirs.first().cloned().unwrap_or_default();
                common.retain(|name| name != "MIGRATED");
                vec![with_columns(theirs, &common), with_columns(ours, &common)]
            } else {
                vec![theirs, ours]
            };
            // zramctl lists the devices in the order of the directory.
            for lines in &mut seen {
                lines.sort();
            }
            succeeds == succeeds_too && (!succeeds || seen[0] == seen[1])
        });
        println!("{call}: {seen:?}");
    }
}

/// Cells by device, as printed by zramctl and zramdctl.
fn cells(program: &str, words: &[&str], columns: &str) -> BTreeMap<String, Vec<String>> {
    let output = Command::new(program).args(words).args(["-n", "--raw", "-o", columns]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let rows = texts(&output).0;
    rows.lines()
        .map(|line| line.split(' ').map(str::to_owned).collect::<Vec<String>>())
        .map(|row| (row[0].clone(), row[1..].to_vec()))
        .collect()
}

#[test]
fn the_figures_are_those_of_zramctl() {
    if !can_use_real_kernel() {
        return;
    }
    if !has_program("zramctl") {
        return skip("needs zramctl");
    }
    let _devices = Devices { _lock: real_kernel_lock() };
    let applied = setup(&["--config", &example(), "apply"]);
    assert!(applied.status.success(), "{applied:?}");
    // Compressible, incompressible, and same-filled pages.
    let program = fs::read(PROGRAM).unwrap();
    let noise: Vec<u8> =
        (0u32..1 << 18).flat_map(|at| (at.wrapping_mul(2_654_435_761) ^ (at >> 3)).to_le_bytes()).collect();
    let zero = vec![0; 1 << 20];
    for (name, data) in
        [("program", &program[..program.len().min(8 << 20)]), ("noise", &noise), ("zero", &zero)]
    {
        fs::write(format!("/mnt/zramd-example/cache/{name}"), data).unwrap();
    }
    rustix::fs::sync();
    for (form, columns) in FORMS {
        let mut seen = Vec::new();
        // The journal of the file system may be written between the two reads.
        eventually("the same figures", || {
            let theirs = cells("zramctl", form, &format!("NAME,{columns}"));
            let ours = |command: &[&'static str]| {
                let words = [command, &["zram0", "zram1"], form].concat();
                cells(PROGRAM, &words, &format!("NAME,{columns}"))
            };
            seen = vec![ours(&["list"]), ours(&[]), theirs];
            seen[0] == seen[2] && seen[1] == seen[2]
        });
        assert_eq!(seen[0].len(), 2, "{seen:#?}");
    }
    calls_are_those_of_zramctl();
    let output = ctl(&["-c", &example(), "status", "zram0", "/dev/zram1", "scratch"]);
    let (result, messages) = texts(&output);
    assert!(output.status.success() && messages.is_empty(), "{output:?}");
    assert!(result.contains("[zram1]") && result.contains(&format!("{}:11", example())), "{result}");
    let output = ctl(&["show", "zram0", "-p", "Active,Managed,Role", "--value"]);
    assert_eq!(texts(&output).0, "yes\nyes\nswap\n");
    let (result, _) = texts(&ctl(&["stats", "zram1"]));
    assert!(result.contains("zramd_device_info{device=\"zram1\",algorithm="), "{result}");
    assert!(!result.contains("zram0"), "{result}");
}
