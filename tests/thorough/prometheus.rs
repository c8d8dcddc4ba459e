//! A real Prometheus scrapes the HTTP endpoint, and its answers are the figures of the running kernel.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::support::example::session;
use crate::support::private_bus::{Guarded, bound};
use crate::support::{eventually, has_program, repository, setup, skip};

/// A port of the loopback interface that is free now.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// What a server answers: head and body. `None` if it does not run yet.
fn get(port: u16, target: &str) -> Option<(String, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(format!("GET {target} HTTP/1.0\r\n\r\n").as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some((head.to_owned(), body.to_owned()))
}

/// The data that Prometheus' API answers with, if it does.
fn api(port: u16, target: &str) -> Option<Value> {
    let (_, body) = get(port, &format!("/api/v1/{target}"))?;
    let mut answer: Value = serde_json::from_str(&body).ok()?;
    (answer["status"] == "success").then(|| answer["data"].take())
}

/// The series that a query selects.
fn query(port: u16, query: &str) -> Option<Vec<Value>> {
    let escaped: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
    Some(api(port, &format!("query?query={escaped}"))?["result"].as_array()?.clone())
}

/// The queries of the dashboard, with values for Grafana's variables.
fn dashboard() -> Vec<String> {
    let text = fs::read_to_string(repository("packaging/monitoring/zramd.dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let expressions = targets.map(|target| target["expr"].as_str().unwrap());
    expressions.map(|text| text.replace("$instance", ".*").replace("$__rate_interval", "1m")).collect()
}

#[test]
fn prometheus_scrapes_the_endpoint() {
    let Some(_session) = session() else { return };
    for program in ["prometheus", "systemd-socket-activate"] {
        if !has_program(program) {
            return skip(&format!("needs {program}"));
        }
    }
    let example = repository("config/example.toml");
    let applied = setup(&["--config", example.to_str().unwrap(), "apply"]);
    assert!(applied.status.success(), "{applied:?}");
    let directory = tempfile::tempdir().unwrap();
    let start = |program: &str, arguments: &[&str]| {
        let log = fs::File::create(directory.path().join(format!("{program}.log"))).unwrap();
        let mut command = bound(Path::new(program));
        command
            .args(arguments)
            .current_dir(&directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        Guarded(command.spawn().unwrap())
    };

    let [port, own] = [free_port(), free_port()];
    let listen = format!("127.0.0.1:{port}");
    let zramdctl = env!("CARGO_BIN_EXE_zramdctl");
    let _endpoint =
        start("systemd-socket-activate", &["--inetd", "--listen", &listen, zramdctl, "stats", "--http"]);
    let mut answer = None;
    eventually("the endpoint answers", || {
        answer = get(port, "/metrics");
        answer.is_some()
    });
    let (head, body) = answer.unwrap();
    assert!(head.starts_with("HTTP/1.1 200 ") && body.contains("\nzramd_problems{"), "{head}\n{body}");
    assert!(get(port, "/").unwrap().0.starts_with("HTTP/1.1 404 "));

    fs::copy(repository("packaging/monitoring/zramd.rules.yml"), directory.path().join("rules.yml")).unwrap();
    let configuration = format!(
        "global: {{scrape_interval: 200ms, evaluation_interval: 200ms}}\nrule_files: [rules.yml]\nscrape_configs:\n- job_name: zramd\n  \
         static_configs: [{{targets: ['{listen}']}}]\n"
    );
    fs::write(directory.path().join("prometheus.yml"), configuration).unwrap();
    let _prometheus = start(
        "prometheus",
        &[
            "--config.file=prometheus.yml",
            "--storage.tsdb.path=data",
            &format!("--web.listen-address=127.0.0.1:{own}"),
        ],
    );
    // A scrape may fail while the machine is busy; its series are then missing until the next one.
    let value = |series: &str| {
        let found = query(own, series)?;
        found.first()?["value"][1].as_str()?.parse::<f64>().ok()
    };
    for (series, expected) in [
        ("zramd_device_disk_size_bytes{device='zram0'}", 256 << 20),
        ("zramd_device_disk_size_bytes{device='zram1'}", 128 << 20),
        ("zramd_ramdisk_size_bytes{ramdisk='scratch',job='zramd'}", 64 << 20),
    ] {
        eventually(series, || value(series) == Some(f64::from(expected)));
    }
    // What is stored reaches Prometheus.
    let pages: Vec<u8> = (0u32..1 << 20).flat_map(u32::to_le_bytes).collect();
    fs::write("/mnt/zramd-example/cache/pages", pages).unwrap();
    rustix::fs::sync();
    eventually("four MiB on zram1", || {
        value("zramd_device_original_data_bytes{device='zram1'}") >= Some(f64::from(4 << 20))
    });

    assert!(dashboard().len() > 12);
    for expression in dashboard() {
        assert!(query(own, &expression).is_some(), "{expression}");
    }
    // Each rule has been evaluated without an error.
    let mut rules = Vec::new();
    eventually("the rules are evaluated", || {
        let groups = api(own, "rules").unwrap_or_default();
        rules = groups["groups"][0]["rules"].as_array().cloned().unwrap_or_default();
        !rules.is_empty() && rules.iter().all(|rule| rule["health"] != "unknown")
    });
    assert!(rules.iter().all(|rule| rule["health"] == "ok"), "{rules:?}");
}
