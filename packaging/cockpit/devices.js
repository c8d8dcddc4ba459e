// The table of zram devices, and their forms.

import { DEVICE, FILESYSTEM, MANAGER, ROOT, SWAP } from "./bus.js";
import * as dialogs from "./dialogs.js";
import { cell, details, h, say, sync, table } from "./dom.js";
import { bytes, exactly, ratio } from "./format.js";
import { icon } from "./icons.js";
import { meter } from "./meter.js";

const _ = cockpit.gettext;

/** What is shown of a device besides its use and how full it is. Narrow screens show it on demand. */
const MORE = [_("Stored"), _("Memory"), _("Ratio"), _("Headroom"), _("Algorithm")];

/** Microseconds from which the figures of a device are older than the sample. */
const OLD = 1500000;

/** Data that is in memory, not on a backing device. */
export function inMemory(device) {
    return Math.max(device.OriginalDataBytes - device.BackingBytes, 0);
}

/** Devices that are set up. */
export function used(daemon) {
    return daemon.having(DEVICE).filter(object => object[DEVICE].DiskSizeBytes > 0);
}

/** What a device is used for, and the kind of icon. */
function use(object, now) {
    const { [SWAP]: swap, [FILESYSTEM]: files, [DEVICE]: device } = object;
    const age = now - device.StatsTimestampMonotonic;
    const old = age > OLD ? cockpit.format(_("figures $0 s old"), Math.round(age / 1e6)) : "";
    const words = { filesystem: _("file system"), raw: _("raw"), unused: _("unused") };
    const states = { active: _("active"), mounted: _("mounted"), ready: _("not in use"), unfinished: _("unfinished"), unused: _("unused") };
    const state = states[device.State] || device.State;
    let [kind, text] = ["note", [words[device.Role] || device.Role, state]];
    if (swap?.Active)
        [kind, text] = ["ok", [cockpit.format(_("swap, priority $0"), swap.Priority), state]];
    else if (swap)
        [kind, text] = ["off", [_("swap, off"), state]];
    else if (files)
        [kind, text] = ["ok", [files.MountPoint, state]];
    return [device.State === "unfinished" ? "warning" : old ? "note" : kind, [...new Set([...text, old])].filter(Boolean).join(", ")];
}

/** How full a device is: swap by its slots, a file system as it counts, and others by what is stored. */
function filling({ [SWAP]: swap, [FILESYSTEM]: files, [DEVICE]: device }) {
    if (files)
        return [files.UsedBytes, files.SizeBytes];
    return [swap?.Active ? device.SwapUsedBytes : device.OriginalDataBytes, device.DiskSizeBytes];
}

/** The algorithm with its parameters, as a configuration file has it. */
export function algorithm({ Algorithm: name, AlgorithmParameters: parameters }) {
    const words = Object.entries(parameters).map(([key, value]) => `${key}=${value}`);
    return words.length ? `${name}(${words.join(", ")})` : name;
}

function memory(device) {
    const used = bytes(device.MemoryUsedBytes);
    return device.MemoryLimitBytes ? cockpit.format(_("$0 of $1"), used, bytes(device.MemoryLimitBytes)) : used;
}

/** Keys without a value are empty in a form; this one has a word for it. */
const UNSET = { "zram-resident-limit": "none" };

/** A value of the configuration as a form has it: TOML without quotes, a list with commas. */
export function written(setting) {
    if (!setting)
        return undefined;
    const [, , toml] = setting;
    return toml.startsWith("[") ? [...toml.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, item]) => item).join(", ") : toml.replace(/^"(.*)"$/s, "$1");
}

export class Devices {
    constructor(page) {
        this.page = page;
        const headings = [_("Name"), _("Use"), _("Full"), ...MORE, _("Actions")];
        this.table = table("devices", _("zram devices"), headings);
        this.none = h("p", null, _("No zram device is in use."));
        this.element = h("section", { "aria-labelledby": "devices-title" },
            h("div", { class: "title" },
                h("h2", { id: "devices-title" }, _("Devices")),
                page.button(_("Create device…"), () => this.create()),
                page.button(_("Apply configuration…"), () => this.reload())),
            this.none, h("div", { class: "scroll" }, this.table.element));
    }

    show() {
        const devices = used(this.page.daemon);
        this.none.hidden = devices.length > 0;
        this.table.element.hidden = !devices.length;
        sync(this.table.body, devices, object => object.path, object => this.#row(object));
    }

    #row({ path, [DEVICE]: { Name: name } }) {
        const mark = icon("note");
        const purpose = h("span");
        const full = meter(cockpit.format(_("How full $0 is"), name));
        const cells = MORE.map((label, index) => {
            const found = cell(label);
            found.classList.add("more");
            found.classList.toggle("number", index < 4);
            return found;
        });
        const change = this.page.button(_("Change…"), () => this.change(path), cockpit.format(_("Change $0"), name));
        const remove = this.page.button(_("Remove…"), () => this.remove(path), cockpit.format(_("Remove $0"), name));
        remove.classList.add("danger");
        const foreign = h("span", { class: "note" }, _("set up by another program"));
        const actions = cell(_("Actions"), change, remove, foreign);
        actions.classList.add("more");
        const row = h("tr", { role: "row" },
            h("th", { role: "rowheader", scope: "row" }, h("span", { class: "name" }, name), details(name)),
            cell("", h("span", { class: "use" }, mark, purpose)), cell("", full.element), cells, actions);
        row.update = object => {
            const device = object[DEVICE];
            const [kind, text] = use(object, this.page.daemon.manager.StatsTimestampMonotonic);
            mark.show(kind);
            say(purpose, text);
            full.show(...filling(object));
            const texts = [bytes(device.OriginalDataBytes), memory(device), ratio(device.CompressionRatio), bytes(device.HeadroomBytes), device.Algorithm];
            cells.forEach((found, index) => say(found, texts[index]));
            change.hidden = !device.Managed;
            remove.hidden = !device.Managed || device.RamDisk !== "/";
            foreign.hidden = device.Managed;
        };
        return row;
    }

    /** A field for the algorithm, with those of the kernel to choose from. */
    algorithmField(before, schema, setting) {
        const choices = [["", _("the kernel's default")], ["auto", _("auto: what measuring has found")],
            ...(this.page.daemon.manager.SupportedAlgorithms || []).map(name => [name, name])];
        return dialogs.pickField("compression-algorithm", _("Compression algorithm"), before,
                                 { schema: schema["compression-algorithm"], choices, setting });
    }

    /** The fields of a device: what the configuration says, or, where the daemon does not tell, what is so now. */
    #fields(now, configured = new Map()) {
        const schema = this.page.schema.device;
        const about = key => ({ schema: schema[key], setting: configured.get(key) });
        const before = key => written(configured.get(key)) ?? (configured.size ? UNSET[key] : now[key]) ?? "";
        return [
            dialogs.sizeField("zram-size", _("Size"), before("zram-size"), about("zram-size")),
            this.algorithmField(before("compression-algorithm"), schema, configured.get("compression-algorithm")),
            dialogs.listField("recompression-algorithm", _("Algorithms for recompression"), before("recompression-algorithm"), about("recompression-algorithm")),
            dialogs.sizeField("zram-resident-limit", _("Memory limit"), before("zram-resident-limit"), { none: true, ...about("zram-resident-limit") }),
            "swap-priority" in now && dialogs.keyField("swap-priority", _("Swap priority"), before("swap-priority"), about("swap-priority")),
        ].filter(Boolean);
    }

    /** Changes keys of a device, for good or until the next boot. */
    async change(path) {
        const { page } = this;
        const device = page.daemon.get(path, DEVICE);
        if (device.RamDisk !== "/") {
            page.ramdisks.change(device.RamDisk);
            return;
        }
        const section = device.ConfigSection || device.Name;
        const configured = await page.daemon.configured(section);
        const swap = page.daemon.objects.get(path)?.[SWAP];
        const fields = this.#fields({
            "zram-size": exactly(device.DiskSizeBytes),
            "compression-algorithm": algorithm(device),
            "recompression-algorithm": device.RecompressionAlgorithms.map(([, name]) => name).join(", "),
            "zram-resident-limit": device.MemoryLimitBytes ? exactly(device.MemoryLimitBytes) : "none",
            ...swap ? { "swap-priority": String(swap.Priority) } : {},
        }, configured);
        page.changeSection(cockpit.format(_("Change $0"), device.Name), section, fields);
    }

    remove(path) {
        const { page } = this;
        const { daemon } = page;
        const { Name: name, ...device } = daemon.get(path, DEVICE);
        const files = device.Role === "filesystem";
        const force = dialogs.switchField("force", _("Discard the files on it"));
        const section = { [name]: { enabled: cockpit.variant("b", false) } };
        dialogs.ask({
            title: cockpit.format(_("Remove $0"), name),
            text: files
                ? cockpit.format(_("$0 is a file system with $1 of data."), name, bytes(device.OriginalDataBytes))
                : cockpit.format(_("What is stored on $0 ($1) moves back to memory, or to other swap. A device from a configuration file returns at the next boot."),
                                 name, bytes(device.OriginalDataBytes)),
            fields: files ? [force] : [],
            button: _("Remove"),
            danger: true,
            preview: values => dialogs.planOf(daemon, section, { runtime: cockpit.variant("b", true), ...forced(values) }),
            apply: async values => page.follow(await daemon.call(ROOT, MANAGER, "RemoveDevice", "sa{sv}", name, forced(values))),
        });
    }

    create() {
        const { daemon, schema } = this.page;
        const mount = dialogs.keyField("mount-point", _("Mount point"), "", { schema: schema.device["mount-point"], placeholder: "/run/cache" });
        const name = dialogs.textField("name", _("Name"), _("A device is called zram and a number."));
        name.control.value = this.#free();
        const own = this.#fields({ "compression-algorithm": "auto", "zram-resident-limit": "none", "swap-priority": "" });
        const fields = [name, ...own, mount];
        // What `zramdctl init` would have.
        cockpit.spawn(["zramdctl", "init", "--dry-run"]).then(proposal => {
            const [, size] = /^zram-size = "(.*)"$/m.exec(proposal) || [];
            if (size)
                own[0].suggest(size);
        }, () => {});
        const keys = () => Object.fromEntries(fields.filter(field => field !== name && field.value() !== "")
                .map(field => [field.name, dialogs.variantOf(field)]));
        dialogs.ask({
            title: _("Create device"),
            text: _("The device lasts until the next boot. Fields that are left empty have their defaults."),
            fields,
            button: _("Create"),
            preview: values => dialogs.planOf(daemon, { [values.name]: keys() }, { runtime: cockpit.variant("b", true) }),
            // It returns when the device is in use.
            apply: async values => {
                await daemon.call(ROOT, MANAGER, "CreateDevice", "a{sv}", { ...keys(), name: cockpit.variant("s", values.name) });
            },
        });
    }

    /** The name of the first device that is neither in use nor has a section. */
    #free() {
        const { daemon } = this.page;
        const taken = new Set([...used(daemon).map(object => object[DEVICE].Name), ...(daemon.manager.Overrides || []).map(([section]) => section)]);
        let number = 0;
        while (taken.has(`zram${number}`))
            number += 1;
        return `zram${number}`;
    }

    reload() {
        const { page } = this;
        const { daemon } = page;
        const force = dialogs.switchField("force", _("Discard contents that would be lost"));
        dialogs.ask({
            title: _("Apply configuration"),
            text: _("The configuration is read again, and the machine is brought in line with it."),
            fields: [force],
            button: _("Apply"),
            preview: values => daemon.ask(ROOT, MANAGER, "Plan", "a{sv}", forced(values)),
            apply: async values => page.follow(await daemon.call(ROOT, MANAGER, "Reload", "a{sv}", forced(values))),
        });
    }
}

/** The option `force`, if it is wanted. */
export function forced(values) {
    return values.force ? { force: cockpit.variant("b", true) } : {};
}
