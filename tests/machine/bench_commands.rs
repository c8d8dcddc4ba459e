//! `zramdctl bench ramdisk` and `bench swap` on the running kernel. Needs root and zram; otherwise each test is skipped with
//! the reason.
//!
//! After any end, also a kill, nothing of them is left.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::mounted::Mounted;
use crate::support::{
    CTL, bench_run, can_use_real_kernel, eventually, has_program, real_kernel_lock, scratch_is_recorded,
    texts,
};
use serde_json::Value;
use tempfile::TempDir;

fn bench(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_zramdctl")).arg("bench").args(words).output().unwrap()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Names in a directory with this prefix.
fn names(directory: &str, prefix: &str) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(prefix)).collect();
    names.sort();
    names
}

/// State of the machine, as far as the benchmarks change it.
fn machine() -> String {
    let swaps: Vec<String> =
        read("/proc/swaps").lines().filter_map(|line| Some(line.split(' ').next()?.to_owned())).collect();
    let mounts = read("/proc/self/mounts").lines().filter(|line| line.contains("zram")).count();
    let scratch: Vec<String> =
        names("/run/zramd", "zram").into_iter().filter(|name| name.ends_with(".scratch")).collect();
    let cluster = read("/proc/sys/vm/page-cluster");
    format!("{:?} {swaps:?} {mounts} {scratch:?} {cluster}", names("/sys/block", "zram"))
}

#[track_caller]
fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn ramdisk_compares_media_and_leaves_nothing() {
    if !can_use_real_kernel() {
        return;
    }
    let _lock = real_kernel_lock();
    let before = machine();
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = directory.path().to_str().unwrap();
    let found = json(&bench(&["ramdisk", "--size", "16MiB", "--json", path]));
    assert_eq!((&found["schema_version"], &found["size_bytes"]), (&2.into(), &(16 << 20).into()));
    let rows = found["results"].as_array().unwrap();
    let media: Vec<(&str, &str)> = rows
        .iter()
        .filter(|row| row["contents"] == "real")
        .map(|row| {
            (row["medium"].as_str().unwrap().split(' ').next().unwrap(), row["access"].as_str().unwrap())
        })
        .collect();
    // A file system without O_DIRECT is dropped from the page cache instead.
    let disk = media[media.len() - 2].1;
    assert!(disk == "direct" || disk == "dropped", "{media:?}");
    let file_system = if has_program("mkfs.ext4") { 2 } else { 0 };
    let mut expected = vec![("tmpfs", "memory"), ("zram", "direct")];
    expected.extend([("zram", "direct"), ("zram", "cache")].into_iter().take(file_system));
    expected.extend([(path, disk), (path, "cache")]);
    assert_eq!(media, expected);
    assert_eq!(rows.len(), 2 * media.len(), "each with zeros and with real data");
    for row in rows {
        for pass in ["first_write", "second_write", "read"] {
            assert!(row[pass]["bytes_per_second"].as_u64().unwrap() > 0, "{row}");
        }
        let random = &row["random_read"];
        let time = |name: &str| random[name].as_u64().unwrap();
        assert!(time("requests") > 0 && time("min_ns") <= time("mean_ns"), "{row}");
        assert!(time("p50_ns") <= time("p99_ns") && time("p99_ns") <= time("max_ns"), "{row}");
    }
    let real = rows.iter().find(|row| row["contents"] == "real" && !row["ratio"].is_null()).unwrap();
    assert!(real["ratio"].as_f64().unwrap() > 1.0, "program files compress: {real}");
    assert_eq!(machine(), before);
    assert_eq!(fs::read_dir(path).unwrap().count(), 0);
}

#[test]
fn ramdisk_refuses_what_would_hurt() {
    if !can_use_real_kernel() {
        return;
    }
    let _lock = real_kernel_lock();
    let before = machine();
    let much = bench(&["ramdisk", "--size", "4096GiB"]);
    assert_eq!(much.status.code(), Some(7), "{much:?}");
    assert!(texts(&much).1.contains("4.0 TiB"), "{much:?}");
    let nowhere = bench(&["ramdisk", "--size", "16MiB", "/nowhere"]);
    assert_eq!(nowhere.status.code(), Some(1), "{nowhere:?}");
    assert!(texts(&nowhere).1.contains("/nowhere"), "{nowhere:?}");
    assert_eq!(machine(), before);
}

#[test]
fn swap_times_faults_and_leaves_the_machine_as_it_was() {
    if !can_use_real_kernel() {
        return;
    }
    let _lock = real_kernel_lock();
    let before = machine();
    let output = bench(&[
        "swap",
        "--memory",
        "32MiB",
        "--algorithm",
        "lzo-rle",
        "--page-cluster",
        "0,3",
        "--json=short",
    ]);
    let found = json(&output);
    assert_eq!((&found["schema_version"], &found["disk"]), (&3.into(), &Value::Null));
    let rows = found["results"].as_array().unwrap();
    let clusters: Vec<u64> = rows.iter().map(|row| row["page_cluster"].as_u64().unwrap()).collect();
    assert_eq!(clusters, [0, 3]);
    for row in rows {
        assert_eq!(row["algorithm"], "lzo-rle");
        for rate in ["swap_out_per_second", "random_in_per_second", "sequential_in_per_second"] {
            assert!(row[rate].as_u64().unwrap() > 0, "{rate}: {row}");
        }
        assert!(row["fault"]["p99_ns"].as_u64() >= row["fault"]["p50_ns"].as_u64(), "{row}");
        assert!(row["ratio"].as_f64().unwrap() > 1.0, "{row}");
    }
    assert_eq!(machine(), before);
}

/// A file system in a file.
struct Image {
    // Dropped first.
    mount: Mounted,
    directory: TempDir,
}

impl Image {
    /// `None`, with the reason printed, if that is impossible.
    fn new(fs_type: &str, bytes: u64) -> Option<Image> {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let at = directory.path().join("mounted");
        fs::create_dir(&at).unwrap();
        let mount = Mounted::image(&directory.path().join("image"), fs_type, bytes, &at)?;
        fs::create_dir(at.join("empty")).unwrap();
        Some(Image { mount, directory })
    }

    /// An empty directory on it.
    fn empty(&self) -> PathBuf {
        self.directory.path().join("mounted/empty")
    }
}

#[test]
fn swap_on_a_disk_is_compared_and_its_file_is_removed() {
    if !can_use_real_kernel() {
        return;
    }
    let _lock = real_kernel_lock();
    let before = machine();
    for fs_type in ["ext4", "xfs", "btrfs"] {
        let Some(image) = Image::new(fs_type, 400 << 20) else { continue };
        let directory = image.empty();
        let path = directory.to_str().unwrap();
        let words =
            ["swap", "--memory", "16MiB", "--algorithm", "lzo-rle", "--page-cluster", "0,3", "--disk", path];
        let asked = bench(&words);
        let (_, said) = texts(&asked);
        assert_eq!(asked.status.code(), Some(1), "{asked:?}");
        assert!(said.contains(&format!("about 64.0 MiB to {path} ({fs_type}): 16.0 MiB twice")), "{said}");
        assert!(said.contains("Nothing was written"), "{said}");

        let found = json(&bench(&[&words[..], &["--yes", "--json=short"]].concat()));
        assert_eq!(found["disk"], format!("{path} ({fs_type})"));
        let rows = found["results"].as_array().unwrap();
        let algorithms: Vec<Option<&str>> = rows.iter().map(|row| row["algorithm"].as_str()).collect();
        assert_eq!(algorithms, [Some("lzo-rle"), Some("lzo-rle"), None, None]);
        for row in &rows[2..] {
            for rate in ["swap_out_per_second", "random_in_per_second", "sequential_in_per_second"] {
                assert!(row[rate].as_u64().unwrap() > 0, "{rate}: {row}");
            }
            assert!(row["ratio"].is_null() && row["fault"]["requests"].as_u64() > Some(0), "{row}");
        }
        assert_eq!(machine(), before);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
    }
}

#[test]
fn a_disk_that_cannot_be_measured_is_refused_before_anything_is_written() {
    if !can_use_real_kernel() {
        return;
    }
    let _lock = real_kernel_lock();
    let before = machine();
    let Some(image) = Image::new("ext4", 64 << 20) else { return };
    let small = image.empty();
    let other = small.join(".zramd-bench.swap");
    let tmpfs = tempfile::tempdir_in("/dev/shm").unwrap();
    let try_on = |path: &str, status: i32, expected: &str| {
        let output = bench(&["swap", "--memory", "16MiB", "--algorithm", "lzo-rle", "--disk", path, "--yes"]);
        let said = texts(&output).1;
        assert_eq!(output.status.code(), Some(status), "{path}: {output:?}");
        assert!(said.contains(path) && said.contains(expected), "{path}: {said}");
    };
    try_on("/nowhere", 1, "no such file");
    try_on("/etc/hostname", 7, "not a directory");
    try_on(tmpfs.path().to_str().unwrap(), 7, "tmpfs");
    fs::write(small.join("../fill"), vec![1; 16 << 20]).unwrap();
    try_on(small.to_str().unwrap(), 7, "--memory");
    fs::remove_file(small.join("../fill")).unwrap();
    fs::write(&other, "text").unwrap();
    try_on(small.to_str().unwrap(), 7, ".zramd-bench.swap");
    assert_eq!(fs::read_to_string(&other).unwrap(), "text");
    fs::remove_file(&other).unwrap();
    image.mount.remount("ro");
    try_on(small.to_str().unwrap(), 7, "read-only");
    assert_eq!(fs::read_dir(&small).unwrap().count(), 0);
    assert_eq!(machine(), before);
}

/// Kills `zramd-worker` during `bench ramdisk` and `bench swap`; with `both`, also the program that waits for it.
fn killed(both: bool, then: impl Fn()) {
    if !can_use_real_kernel() {
        return;
    }
    let _lock = real_kernel_lock();
    let before = machine();
    let cluster = read("/proc/sys/vm/page-cluster");
    let other = if cluster.trim() == "1" { "2" } else { "1" };
    let Some(image) = Image::new("ext4", 400 << 20) else { return };
    let directory = image.empty();
    let path = directory.to_str().unwrap();
    let on_disk = [
        "swap",
        "--memory",
        "64MiB",
        "--page-cluster",
        other,
        "--algorithm",
        "lzo-rle",
        "--disk",
        path,
        "--yes",
    ];
    for words in [
        &["ramdisk", "--size", "64MiB", path][..],
        &["swap", "--memory", "64MiB", "--page-cluster", other],
        &on_disk,
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zramdctl"));
        let mut client = command.arg("bench").args(words).stdout(Stdio::null()).spawn().unwrap();
        eventually("a device in use", || match words[0] {
            "swap" if words.contains(&"--disk") => read("/proc/swaps").contains(path),
            "swap" => read("/proc/sys/vm/page-cluster") != cluster,
            _ => scratch_is_recorded(),
        });
        let work: Value =
            serde_json::from_str(&read(&format!("/run/zramd/work/bench-{}.json", words[0]))).unwrap();
        let worker = i32::try_from(work["pid"].as_i64().unwrap()).unwrap();
        if both {
            client.kill().unwrap();
        }
        let pid = rustix::process::Pid::from_raw(worker).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        assert!(!client.wait().unwrap().success());
        eventually("the end of the worker", || !Path::new(&format!("/proc/{worker}")).exists());
        then();
        assert_eq!(machine(), before);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
    }
}

#[test]
fn a_killed_worker_leaves_nothing() {
    killed(false, || {});
}

#[test]
fn remains_of_both_killed_programs_are_removed_by_the_next_run() {
    killed(true, || {
        let next = bench(&["ramdisk", "--size", "16MiB", "--algorithm", "none-such"]);
        assert_eq!(next.status.code(), Some(5), "{next:?}");
    });
}

/// Options that keep the run from replacing the verdict.
const LZO_RLE: [&str; 4] = ["--algorithms", "lzo-rle", "--seconds", "1"];

#[test]
fn media_that_cannot_be_measured_are_named() {
    if !can_use_real_kernel() {
        return;
    }
    let _lock = real_kernel_lock();
    for (words, status, expected) in [
        (&["--data", "/etc"][..], 1, "/etc: "),
        (&["--data", "/etc/hostname"], 1, "/etc/hostname: "),
        (&["--threads", "60000"], 2, "`threads` is 1 to "),
        (&["--generator", "--chart", "/nonexistent/x.svg"], 1, "/nonexistent/x.svg: "),
    ] {
        let output = bench_run(&[&LZO_RLE[..], words].concat());
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        assert!(texts(&output).1.contains(expected), "{output:?}");
    }
}

#[test]
fn a_whole_file_is_measured_if_asked_for() {
    if !can_use_real_kernel() {
        return;
    }
    let _lock = real_kernel_lock();
    let file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
    // More than a sample has, in lines that differ.
    let line = |number: u32| format!("{number:08} a line of text that compresses, but not to nothing\n");
    fs::write(file.path(), (0..720_000).map(line).collect::<String>()).unwrap();
    let pages = fs::metadata(file.path()).unwrap().len() / 4096;
    assert!(pages > 8192, "{pages}");
    let path = file.path().to_str().unwrap();
    let report = json(&bench_run(&[&LZO_RLE[..], &["--data", path, "--whole", "--json"]].concat()));
    assert_eq!((&report["data"]["source"], &report["data"]["pages"]), (&"file".into(), &pages.into()));
    let without = bench_run(&["--whole"]);
    assert_eq!(without.status.code(), Some(2), "{without:?}");
}

/// With a single number of pages, the suggestion considers all of them, and other algorithms are not mentioned.
#[test]
fn the_suggestion_considers_all_numbers_of_pages() {
    if !can_use_real_kernel() {
        return;
    }
    let _lock = real_kernel_lock();
    let report =
        json(&bench_run(&[&LZO_RLE[..], &["--generator", "--page-cluster", "3", "--json"]].concat()));
    let clusters = report["page_clusters"].as_array().unwrap();
    let numbers: Vec<u64> = clusters.iter().map(|row| row["page_cluster"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [0, 1, 2, 3]);
    let reason = report["verdict"]["reason"].as_str().unwrap();
    assert!(reason.contains("lzo-rle") && !reason.contains("lz4"), "{reason}");
}

#[test]
fn wrong_words_are_wrong_usage() {
    for words in [
        &["ramdisk", "--size", "much"][..],
        &["ramdisk", "--algorithm", "zstd(level"],
        &["swap", "--page-cluster", "4"],
        &["swap", "--page-cluster", "3-1"],
        &["swap", "--yes"],
        &["swap", "word"],
        &["run", "--seconds", "0.1"],
        &["run", "--threads", "0"],
        &[],
    ] {
        let output = bench(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
    }
}

#[test]
fn without_rights_it_says_so() {
    for what in ["ramdisk", "swap"] {
        // In a user namespace of its own, root has no rights outside.
        let output = Command::new("unshare").args(["--user", CTL, "bench", what]).output().unwrap();
        assert_eq!(output.status.code(), Some(77), "{output:?}");
    }
}

#[test]
fn the_named_configuration_counts() {
    if !can_use_real_kernel() {
        return;
    }
    let _lock = real_kernel_lock();
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("zramd.toml");
    fs::write(&config, "[benchmark]\nprofile = \"capacity\"\nsample = \"public\"\n").unwrap();
    // Of one algorithm, so that nothing is kept.
    let words =
        ["--config", config.to_str().unwrap(), "--algorithms", "lzo-rle", "--seconds", "10", "--json"];
    let output = bench_run(&words);
    assert_eq!(json(&output)["profile"], "capacity");
}
