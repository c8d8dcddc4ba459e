// The table of zram devices, and their forms.

import { DEVICE, FILESYSTEM, MANAGER, ROOT, SWAP } from "./bus.js";
import * as dialogs from "./dialogs.js";
import { cell, h, say, sync, table } from "./dom.js";
import { bytes, exactly, ratio } from "./format.js";

const _ = cockpit.gettext;

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

function use(object) {
    const { [SWAP]: swap, [FILESYSTEM]: files, [DEVICE]: device } = object;
    if (swap?.Active)
        return cockpit.format(_("swap, priority $0"), swap.Priority);
    if (swap)
        return _("swap, off");
    if (files)
        return cockpit.format(_("$0, $1 of $2 in use"), files.MountPoint, bytes(files.UsedBytes), bytes(files.SizeBytes));
    return { filesystem: _("file system"), raw: _("raw"), unused: _("unused") }[device.Role] || device.Role;
}

function state(device, now) {
    const words = {
        active: _("active"), mounted: _("mounted"), ready: _("not in use"), unfinished: _("unfinished"), unused: _("unused"),
    };
    const age = now - device.StatsTimestampMonotonic;
    const old = age > OLD ? " " + cockpit.format(_("(figures $0 s old)"), Math.round(age / 1e6)) : "";
    return (words[device.State] || device.State) + old;
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

export class Devices {
    constructor(page) {
        this.page = page;
        const headings = [_("Name"), _("Use"), _("State"), _("Algorithm"), _("Size"), _("Stored"), _("In memory"), _("Ratio"),
            _("Room"), _("Actions")];
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
        const head = h("th", { role: "rowheader", scope: "row", "data-label": _("Name") }, name);
        const cells = [_("Use"), _("State"), _("Algorithm"), _("Size"), _("Stored"), _("In memory"), _("Ratio"), _("Room")]
                .map((label, index) => {
                    const found = cell(label);
                    found.classList.toggle("number", index > 2);
                    return found;
                });
        const change = this.page.button(_("Change…"), () => this.change(path), cockpit.format(_("Change $0"), name));
        const remove = this.page.button(_("Remove…"), () => this.remove(path), cockpit.format(_("Remove $0"), name));
        const foreign = h("span", { class: "note" }, _("set up by another program"));
        const row = h("tr", { role: "row" }, head, cells, cell(_("Actions"), change, remove, foreign));
        row.update = object => {
            const device = object[DEVICE];
            const texts = [use(object), state(device, this.page.daemon.manager.StatsTimestampMonotonic), device.Algorithm,
                bytes(device.DiskSizeBytes), bytes(device.OriginalDataBytes), memory(device),
                ratio(device.CompressionRatio), bytes(device.HeadroomBytes)];
            cells.forEach((found, index) => say(found, texts[index]));
            change.hidden = !device.Managed;
            remove.hidden = !device.Managed || device.RamDisk !== "/";
            foreign.hidden = device.Managed;
        };
        return row;
    }

    /** A field for the algorithm, with those of the kernel to choose from. */
    algorithmField(before, schema) {
        const choices = ["auto", ...this.page.daemon.manager.SupportedAlgorithms || []];
        return dialogs.listField("compression-algorithm", _("Compression algorithm"), before,
                                 { schema: schema["compression-algorithm"], choices });
    }

    #fields(values) {
        const schema = this.page.schema.device;
        const field = (key, label, more) => dialogs.keyField(key, label, values[key] ?? "", { schema: schema[key], ...more });
        return [
            field("zram-size", _("Size"), { placeholder: "4GiB" }),
            this.algorithmField(values["compression-algorithm"] ?? "", schema),
            dialogs.listField("recompression-algorithm", _("Algorithms for recompression"), values["recompression-algorithm"] ?? "",
                              { schema: schema["recompression-algorithm"] }),
            field("zram-resident-limit", _("Memory limit"), { choices: ["none"] }),
            "swap-priority" in values && field("swap-priority", _("Swap priority")),
        ].filter(Boolean);
    }

    /** Changes keys of a device, for good or until the next boot. */
    change(path) {
        const { page } = this;
        const device = page.daemon.get(path, DEVICE);
        if (device.RamDisk !== "/") {
            page.ramdisks.change(device.RamDisk);
            return;
        }
        const swap = page.daemon.objects.get(path)?.[SWAP];
        const fields = this.#fields({
            "zram-size": exactly(device.DiskSizeBytes),
            "compression-algorithm": algorithm(device),
            "recompression-algorithm": device.RecompressionAlgorithms.map(([, name]) => name).join(", "),
            "zram-resident-limit": device.MemoryLimitBytes ? exactly(device.MemoryLimitBytes) : "none",
            ...swap ? { "swap-priority": String(swap.Priority) } : {},
        });
        page.changeSection(cockpit.format(_("Change $0"), device.Name), device.ConfigSection || device.Name, fields);
    }

    remove(path) {
        const { daemon } = this.page;
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
            preview: values => dialogs.planOf(daemon, section, { runtime: cockpit.variant("b", true), ...forced(values) }),
            apply: async values => daemon.ended(await daemon.call(ROOT, MANAGER, "RemoveDevice", "sa{sv}", name, forced(values))),
        });
    }

    create() {
        const { daemon, schema } = this.page;
        const mount = dialogs.keyField("mount-point", _("Mount point"), "", { schema: schema.device["mount-point"] });
        const name = dialogs.textField("name", _("Name"), _("A device is called zram and a number."));
        name.control.value = this.#free();
        const fields = [name, ...this.#fields({ "zram-size": "", "swap-priority": "" }), mount];
        const keys = () => Object.fromEntries(fields.filter(field => field !== name && field.value() !== "")
                .map(field => [field.name, dialogs.variantOf(field)]));
        dialogs.ask({
            title: _("Create device"),
            text: _("The device lasts until the next boot. Without a mount point it is swap; fields that are left empty have their defaults."),
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
        const { daemon } = this.page;
        const force = dialogs.switchField("force", _("Discard contents that would be lost"));
        dialogs.ask({
            title: _("Apply configuration"),
            text: _("The configuration is read again, and the machine is brought in line with it."),
            fields: [force],
            button: _("Apply"),
            preview: values => daemon.ask(ROOT, MANAGER, "Plan", "a{sv}", forced(values)),
            apply: async values => daemon.ended(await daemon.call(ROOT, MANAGER, "Reload", "a{sv}", forced(values))),
        });
    }
}

/** The option `force`, if it is wanted. */
export function forced(values) {
    return values.force ? { force: cockpit.variant("b", true) } : {};
}
