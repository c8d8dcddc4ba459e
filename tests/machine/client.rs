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
                cells(PROGRAM, &words, &format!("PATH,{columns}"))
            };
            seen = vec![ours(&["list"]), ours(&[]), theirs];
            seen[0] == seen[2] && seen[1] == seen[2]
        });
        assert_eq!(seen[0].len(), 2, "{seen:#?}");
    }
    let output = ctl(&["-c", &example(), "status", "zram0", "/dev/zram1", "scratch"]);
    let (result, messages) = texts(&output);
    assert!(output.status.success() && messages.is_empty(), "{output:?}");
    assert!(result.contains("[zram1]") && result.contains(&format!("{}:10", example())), "{result}");
    let output = ctl(&["show", "zram0", "-p", "Active,Managed,Role", "--value"]);
    assert_eq!(texts(&output).0, "yes\nyes\nswap\n");
    let (result, _) = texts(&ctl(&["stats", "zram1"]));
    assert!(result.contains("zramd_device_info{device=\"zram1\",algorithm="), "{result}");
    assert!(!result.contains("zram0"), "{result}");
}
