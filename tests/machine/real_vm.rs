//! `[vm]` on the running kernel. Needs root and zram; otherwise each test is skipped with the reason.
//!
//! The previous settings of the machine are restored in any case.

use std::fs;
use std::process::Command;

use crate::support::{can_use_real_kernel, real_kernel_lock, setup, texts};
use logic::vm::Tunable;

/// Exclusive use of the machine, and its previous settings.
struct Session {
    before: Vec<(Tunable, String)>,
    directory: tempfile::TempDir,
    _lock: fs::File,
}

fn read(tunable: Tunable) -> Option<String> {
    Some(fs::read_to_string(tunable.path()).ok()?.trim().to_owned())
}

fn settings() -> Vec<(Tunable, String)> {
    Tunable::ALL.into_iter().filter_map(|tunable| Some((tunable, read(tunable)?))).collect()
}

fn session() -> Option<Session> {
    can_use_real_kernel().then(|| {
        let lock = real_kernel_lock();
        Session { before: settings(), directory: tempfile::tempdir().unwrap(), _lock: lock }
    })
}

impl Drop for Session {
    fn drop(&mut self) {
        setup(&["revert"]);
        for (tunable, value) in &self.before {
            fs::write(tunable.path(), value).unwrap();
        }
    }
}

impl Session {
    /// Runs `zramd-setup COMMAND` with this configuration, and returns its standard error.
    fn run(&self, configuration: &str, command: &[&str]) -> String {
        let file = self.directory.path().join("z.toml");
        fs::write(&file, configuration).unwrap();
        let output = setup(&[&["--config", file.to_str().unwrap()], command].concat());
        assert!(output.status.success(), "{output:?}");
        texts(&output).1
    }

    /// The codes of what `zramdctl doctor` finds with this configuration.
    fn findings(&self, configuration: &str) -> Vec<String> {
        let file = self.directory.path().join("z.toml");
        fs::write(&file, configuration).unwrap();
        let mut doctor = Command::new(env!("CARGO_BIN_EXE_zramdctl"));
        let output = doctor.arg("--config").arg(&file).args(["doctor", "--json"]).output().unwrap();
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let found = found["problems"].as_array().unwrap().iter();
        found.map(|finding| finding["code"].as_str().unwrap().to_owned()).collect()
    }
}

const TUNED: &str =
    "[zram0]\nzram-size = \"16MiB\"\nswap-priority = 32000\n[vm]\ntune = true\nswappiness = 133\n";

#[test]
fn settings_come_with_the_swap_and_go_with_it() {
    let Some(session) = session() else { return };
    fs::write(Tunable::Zswap.path(), "Y").ok();
    let before = settings();
    assert_eq!(session.run(TUNED, &["apply"]), "");
    assert_eq!(read(Tunable::Swappiness).as_deref(), Some("133"));
    assert_eq!(read(Tunable::PageCluster).as_deref(), Some("0"));
    assert_ne!(read(Tunable::Zswap).as_deref(), Some("Y"));
    let shown = texts(&setup(&["status"])).0;
    assert!(shown.contains("vm.swappiness 133") && shown.contains("vm.page-cluster 0"), "{shown}");
    assert!(!session.findings(TUNED).contains(&"setting-changed".to_owned()));
    let plan =
        setup(&["--config", session.directory.path().join("z.toml").to_str().unwrap(), "--json", "plan"]);
    let plan: serde_json::Value = serde_json::from_slice(&plan.stdout).unwrap();
    assert_eq!(plan["steps"], serde_json::json!([]), "a second run makes no steps");
    session.run(TUNED, &["down", "zram0"]);
    assert_eq!(settings(), before);
}

#[test]
fn what_another_program_changes_is_left_alone() {
    let Some(session) = session() else { return };
    session.run(TUNED, &["apply"]);
    fs::write(Tunable::Swappiness.path(), "44").unwrap();
    session.run(TUNED, &["apply"]);
    assert_eq!(read(Tunable::Swappiness).as_deref(), Some("44"), "nobody fights over it");
    assert!(session.findings(TUNED).contains(&"setting-changed".to_owned()));
    session.run(TUNED, &["revert"]);
    assert_eq!(read(Tunable::Swappiness).as_deref(), Some("44"));
    let cluster = session.before.iter().find(|(tunable, _)| *tunable == Tunable::PageCluster);
    assert_eq!(read(Tunable::PageCluster).as_ref(), cluster.map(|(_, value)| value));
}

/// The rules of the kernel, compared with those of the simulator.
#[test]
fn the_simulator_refuses_what_the_kernel_refuses() {
    use host::Host;
    use host::linux::LinuxHost;
    use sim::SimMachine;
    use sim::kernel::KernelConfig;
    let Some(_session) = session() else { return };
    let machine = SimMachine::new(KernelConfig::this_machine());
    for tunable in Tunable::ALL {
        for value in ["0", "1", "10", "31", "32", "200", "201", "3000", "3001", "-1", "x", "Y", "n", ""] {
            let (mut real, mut sim) = (LinuxHost::new("/"), machine.process());
            let done =
                (real.write_tunable(tunable, value).is_ok(), sim.write_tunable(tunable, value).is_ok());
            // The kernel does not pass on an empty write(2).
            let done = if value.is_empty() { (false, false) } else { done };
            assert_eq!(done.0, done.1, "{tunable} = {value:?}");
            if done.0 {
                assert_eq!(
                    real.read_tunable(tunable).unwrap(),
                    sim.read_tunable(tunable).unwrap(),
                    "{tunable} = {value:?}"
                );
            }
        }
    }
}

/// zswap with the compressors of the running kernel: the first one of a list that it has, and nothing without one.
#[test]
fn zswap_is_set_and_restored() {
    let Some(session) = session() else { return };
    let before = settings();
    let Some(compressor) = read(Tunable::ZswapCompressor) else { return };
    fs::write(Tunable::Zswap.path(), "N").unwrap();
    // Few kernels have 842.
    let section =
        format!("[zswap]\nenabled = true\nmax-pool = \"31%\"\ncompressor = [\"842\", \"{compressor}\"]\n");
    let said = session.run(&section, &["apply"]);
    let lacks = said.contains("this kernel has no compressor 842 for zswap");
    assert!(lacks || read(Tunable::ZswapCompressor).as_deref() == Some("842"), "{said}");
    assert_eq!(read(Tunable::Zswap).as_deref(), Some("Y"));
    assert_eq!(read(Tunable::ZswapMaxPool).as_deref(), Some("31"));
    assert_eq!(session.run(&section, &["apply"]).lines().filter(|line| line.contains("842")).count(), 0);
    session.run("", &["revert"]);
    for (tunable, value) in before.iter().filter(|(tunable, _)| *tunable != Tunable::Zswap) {
        assert_eq!(read(*tunable).as_ref(), Some(value), "{tunable}");
    }
    assert_eq!(read(Tunable::Zswap).as_deref(), Some("N"));
    if lacks {
        let file = session.directory.path().join("z.toml");
        fs::write(&file, "[zswap]\nenabled = true\nmax-pool = \"31%\"\ncompressor = \"842\"\n").unwrap();
        assert!(!setup(&["--config", file.to_str().unwrap(), "apply"]).status.success());
        assert_eq!(read(Tunable::Zswap).as_deref(), Some("N"));
        let pool = before.iter().find(|(tunable, _)| *tunable == Tunable::ZswapMaxPool);
        assert_eq!(read(Tunable::ZswapMaxPool).as_ref(), pool.map(|(_, value)| value));
    }
}
