//! All changing methods, with the expected states of the machine after a kill of the daemon.

/// Size in KiB and priority of a swap, if there is one.
pub type Swap = Option<(u64, i32)>;

/// The initial configuration.
pub const CONFIG: &str =
    "[zram1]\nzram-size = \"24MiB\"\nswap-priority = 5\ncompression-algorithm = \"lzo-rle\"\n";
/// Its swap, without the page of the header.
pub const CONFIGURED: Swap = Some((24 * 1024 - 4, 5));

/// A call, and its device.
pub struct Operation {
    pub name: &'static str,
    /// Object (below `/org/zramd1`), interface (`org.zramd1.…`), method, and the arguments as `busctl call` takes them.
    pub call: &'static [&'static str],
    /// `zramdctl` commands before the call.
    pub prepare: &'static [&'static str],
    /// A change of the configuration file before the call; it is read at the next reload.
    pub config: Option<(&'static str, &'static str)>,
    pub device: &'static str,
    /// The swap before and after the operation.
    pub before: Swap,
    pub after: Swap,
    /// The command of `zramd-setup` or `zramd-worker` that does it; `None` if the daemon does it, or refuses.
    pub verb: Option<&'static str>,
    /// Whether the verdict of the benchmark is another algorithm than that in use; the configuration then has "auto".
    pub verdict: bool,
}

const fn tuning(name: &'static str, call: &'static [&'static str]) -> Operation {
    Operation {
        name,
        call,
        prepare: &[],
        config: None,
        device: "zram1",
        before: CONFIGURED,
        after: CONFIGURED,
        verb: None,
        verdict: false,
    }
}

const fn change(name: &'static str, call: &'static [&'static str], after: Swap) -> Operation {
    Operation { after, verb: Some("carry-out"), ..tuning(name, call) }
}

const fn maintenance(name: &'static str, call: &'static [&'static str]) -> Operation {
    Operation { verb: Some("maintain"), ..tuning(name, call) }
}

const RELOAD: &[&str] = &["", "Manager", "Reload", "a{sv}", "0"];
const DEVICE: &str = "/device/zram1";

pub const OPERATIONS: [Operation; 23] = [
    Operation {
        device: "zram2",
        before: None,
        ..change(
            "create",
            &[
                "",
                "Manager",
                "CreateDevice",
                "a{sv}",
                "3",
                "name",
                "s",
                "zram2",
                "zram-size",
                "s",
                "16MiB",
                "swap-priority",
                "i",
                "3",
            ],
            Some((16 * 1024 - 4, 3)),
        )
    },
    Operation {
        device: "zram2",
        before: None,
        after: None,
        ..tuning(
            "create that is refused",
            &[
                "",
                "Manager",
                "CreateDevice",
                "a{sv}",
                "3",
                "name",
                "s",
                "zram2",
                "zram-size",
                "s",
                "16MiB",
                "compression-algorithm",
                "s",
                "nope",
            ],
        )
    },
    change("resize", &[DEVICE, "Device", "Resize", "ta{sv}", "41943040", "0"], Some((40 * 1024 - 4, 5))),
    tuning("resize that is refused", &[DEVICE, "Device", "Resize", "ta{sv}", "109950000000000000", "0"]),
    change("limit", &[DEVICE, "Device", "SetMemoryLimit", "t", "16777216"], CONFIGURED),
    Operation {
        config: Some(("swap-priority = 5", "swap-priority = 8")),
        ..change("reload with another priority", RELOAD, Some((24 * 1024 - 4, 8)))
    },
    Operation {
        config: Some(("24MiB", "32MiB")),
        ..change("reload with another size", RELOAD, Some((32 * 1024 - 4, 5)))
    },
    Operation { config: Some((CONFIG, "")), ..change("reload without the section", RELOAD, None) },
    Operation {
        prepare: &["resize", "zram1", "32MiB"],
        before: Some((32 * 1024 - 4, 5)),
        config: Some((CONFIG, "")),
        ..change("reload without the section of an override", RELOAD, None)
    },
    Operation {
        prepare: &["resize", "zram1", "32MiB"],
        before: Some((32 * 1024 - 4, 5)),
        ..change("unset", &["", "Manager", "UnsetOverride", "sa{sv}", "zram1", "0"], CONFIGURED)
    },
    change("swap off", &[DEVICE, "Swap", "Deactivate", "a{sv}", "0"], None),
    Operation {
        prepare: &["swap", "off", "zram1"],
        before: None,
        ..change("swap on", &["", "Manager", "ActivateDevice", "sa{sv}", "zram1", "0"], CONFIGURED)
    },
    tuning("swap on of what is on", &[DEVICE, "Swap", "Activate", "a{sv}", "0"]),
    change("remove", &["", "Manager", "RemoveDevice", "sa{sv}", "zram1", "0"], None),
    tuning("compact", &[DEVICE, "Device", "Compact"]),
    tuning("reset the peak", &[DEVICE, "Device", "ResetPeak"]),
    maintenance("mark idle pages", &[DEVICE, "Device", "MarkIdle", "a{sv}", "0"]),
    // On a kernel without these features, the operation begins in the same way.
    maintenance("recompress", &[DEVICE, "Device", "Recompress", "a{sv}", "0"]),
    maintenance("write back", &[DEVICE, "Device", "Writeback", "a{sv}", "0"]),
    maintenance("maintain", &["", "Manager", "Maintain", "a{sv}", "0"]),
    Operation {
        verdict: true,
        ..change("adopt", &["/benchmark", "Benchmark", "Adopt", "a{sv}", "0"], CONFIGURED)
    },
    Operation { verdict: true, ..tuning("forget", &["/benchmark", "Benchmark", "Forget"]) },
    Operation {
        verb: Some("benchmark"),
        ..tuning("measure", &["/benchmark", "Benchmark", "Run", "a{sv}", "0"])
    },
];
