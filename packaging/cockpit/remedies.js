// What a click can do about a problem.

/** Kinds of remedies, and the codes of the problems that each is for. */
const KINDS = {
    activate: ["swap-off"],
    reload: ["device-lost", "memory-changed"],
    device: ["memory-limit-near", "size-doubtful", "swap-full", "swap-nearly-full", "writes-failed"],
    ramdisk: ["ramdisk-nearly-full"],
    save: ["save-failed", "snapshot-damaged", "store-not-writable"],
    snapshots: ["ramdisk-began-empty", "ramdisk-fallback", "ramdisk-passthrough", "snapshot-broken", "snapshot-corrupt", "snapshot-held", "snapshot-old", "store-nearly-full"],
    // Everything else is for the administrator, as the text of the remedy says.
    text: ["config-doubtful", "config-invalid", "config-not-lasting", "container", "created-at-runtime", "daemon-not-running", "device-claimed-twice",
        "device-taken-over", "device-unmanaged", "disk-swap-below", "driver-option", "filesystem-nearly-full",
        "foreign-manager", "fstab-line", "generator-missing", "import-offered", "incompressible", "kernel-too-old", "no-disk-swap-for-hibernation",
        "not-enabled", "not-in-line", "not-set-up", "overridden", "override-orphaned", "pressure-needs-rights",
        "pressure-unknown", "priority-inverted", "program-ended", "ramdisk-not-loaded", "ramdisk-over-budget", "ramdisk-unclean", "ramdisks-exceed-memory",
        "reads-failed", "record-damaged", "refused", "resume-on-zram", "setting-changed", "swap-drained", "unfinished",
        "unit-hidden", "unreadable", "verdict-damaged", "verdict-not-used", "writeback-missing", "zram-missing", "zswap-active",
        "zswap-without-swap"],
};

/** The kind of remedy of each code. A problem without one, from a newer daemon, has the text only. */
export const REMEDIES = Object.fromEntries(Object.entries(KINDS).flatMap(([kind, codes]) => codes.map(code => [code, kind])));
