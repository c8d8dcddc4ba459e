// The table of RAM disks, with their snapshots.

import { DEVICE, RAMDISK } from "./bus.js";
import { algorithm } from "./devices.js";
import * as dialogs from "./dialogs.js";
import { cell, h, put, say, sync, table } from "./dom.js";
import { bytes, exactly, time, timeOrNever } from "./format.js";

const _ = cockpit.gettext;

export class Ramdisks {
    #open = new Map();

    constructor(page) {
        this.page = page;
        const headings = [_("Name"), _("Mount point"), _("Used"), _("Size"), _("Kept"), _("Last save"), _("Next save"), _("Actions")];
        this.table = table("ramdisks", _("RAM disks"), headings);
        this.element = h("section", { "aria-labelledby": "ramdisks-title" },
            h("h2", { id: "ramdisks-title" }, _("RAM disks")), h("div", { class: "scroll" }, this.table.element));
    }

    show() {
        const disks = this.page.daemon.having(RAMDISK);
        this.element.hidden = !disks.length;
        // Below the row of an open disk is one with its snapshots.
        const rows = disks.flatMap(disk => [{ key: disk.path, disk },
            ...this.#open.has(disk.path) ? [{ key: `${disk.path} snapshots`, disk, snapshots: true }] : []]);
        sync(this.table.body, rows, row => row.key, row => row.snapshots ? this.#snapshots(row) : this.#row(row));
    }

    #row({ disk: { path, [RAMDISK]: { Name: name } } }) {
        const { page } = this;
        const labels = [_("Mount point"), _("Used"), _("Size"), _("Kept"), _("Last save"), _("Next save")];
        const cells = labels.map((label, index) => {
            const found = cell(label);
            found.classList.toggle("number", index === 1 || index === 2);
            return found;
        });
        const named = (text, what, action) => page.button(text, action, cockpit.format(what, name));
        const save = named(_("Save"), _("Save $0"), () => page.run(path, RAMDISK, "Save", "a{sv}", {}));
        const change = named(_("Change…"), _("Change $0"), () => this.change(path));
        const list = h("button", { type: "button", "aria-expanded": "false",
                                   onclick: () => this.toggle(path) });
        const row = h("tr", { role: "row" }, h("th", { role: "rowheader", scope: "row", "data-label": _("Name") }, name), cells,
                      cell(_("Actions"), change, save, list));
        row.update = ({ disk: { [RAMDISK]: now } }) => {
            const kept = { none: _("nothing"), skeleton: _("directories"), snapshot: _("contents") }[now.Persistence] || now.Persistence;
            const failed = now.LastSaveResult === "failed" ? ` (${_("failed")})` : "";
            const texts = [now.MountPoint, bytes(now.UsedBytes), bytes(now.SizeBytes), kept, timeOrNever(now.LastSaveTimestamp) + failed,
                timeOrNever(now.NextSaveTimestamp)];
            cells.forEach((found, index) => say(found, texts[index]));
            save.hidden = list.hidden = now.Persistence === "none";
            say(list, cockpit.format(_("Snapshots ($0)"), now.SnapshotCount));
            put(list, "aria-label", cockpit.format(_("Snapshots ($0) of $1"), now.SnapshotCount, name));
            put(list, "aria-expanded", this.#open.has(path));
        };
        return row;
    }

    toggle(path) {
        if (!this.#open.delete(path))
            this.#open.set(path, { count: -1, list: [] });
        this.show();
    }

    /** Opens the list of snapshots, and goes there. */
    open(path) {
        if (!this.#open.has(path))
            this.toggle(path);
        this.table.body.known.get(path).querySelector("[aria-expanded]").focus();
    }

    #snapshots({ disk: { path, [RAMDISK]: { Name: name } } }) {
        const { page } = this;
        const { daemon } = page;
        const found = table(`snapshots-${name}`, cockpit.format(_("Snapshots of $0"), name),
                            [_("Number"), _("Time"), _("Files"), _("Stored"), _("Reason"), _("State"), _("Actions")]);
        const error = h("p", { class: "error" });
        const row = h("tr", { role: "row", class: "inner" }, h("td", { role: "cell", colspan: 8 }, found.element, error));
        row.update = async ({ disk: { [RAMDISK]: now } }) => {
            const open = this.#open.get(path);
            // A save, a deletion or a pin changes one of these.
            const mark = [now.SnapshotCount, now.StoreBytes, now.LastSaveTimestamp, now.Generation, open?.again].join();
            if (!open || open.mark === mark)
                return;
            open.mark = mark;
            try {
                this.#list(found.body, path, await daemon.ask(path, RAMDISK, "ListSnapshots"));
                say(error, "");
            } catch (problem) {
                say(error, problem.message);
            }
        };
        return row;
    }

    #list(body, path, snapshots) {
        const { page } = this;
        const { Name: name, Generation: loaded } = page.daemon.get(path, RAMDISK);
        const act = async (method, type, ...values) => {
            await page.run(path, RAMDISK, method, type, ...values);
            const open = this.#open.get(path);
            if (open)
                open.again = (open.again || 0) + 1;
            this.show();
        };
        const rows = snapshots.map(([number, when, files, stored, reason, good, pinned]) => {
            const what = cockpit.format(_("snapshot $0 of $1"), number, name);
            const button = (text, action) => page.button(text, action, `${text} ${what}`);
            const state = [good ? _("good") : _("damaged"), pinned && _("pinned"), number === loaded && _("loaded")].filter(Boolean);
            return h("tr", { role: "row" },
                h("th", { role: "rowheader", scope: "row", "data-label": _("Number") }, number),
                cell(_("Time"), time(when)), cell(_("Files"), bytes(files)), cell(_("Stored"), bytes(stored)), cell(_("Reason"), reason),
                cell(_("State"), state.join(", ")),
                cell(_("Actions"),
                    button(_("Restore…"), () => dialogs.ask({
                        title: cockpit.format(_("Restore $0"), what),
                        text: cockpit.format(_("What is on $0 now is saved first; then the RAM disk is emptied and filled from this snapshot. Programs that use it are in the way."), name),
                        button: _("Restore"),
                        apply: async () => page.daemon.ended(await page.daemon.call(path, RAMDISK, "Restore", "ta{sv}", number, {})),
                    })),
                    button(_("Verify"), () => act("Verify", "ta{sv}", number, {})),
                    button(pinned ? _("Unpin") : _("Pin"), () => act("Pin", "tba{sv}", number, !pinned, {})),
                    button(_("Delete…"), () => dialogs.ask({
                        title: cockpit.format(_("Delete $0"), what),
                        text: _("The snapshot is deleted from the disk that stores it."),
                        button: _("Delete"),
                        apply: async () => page.daemon.ended(await page.daemon.call(path, RAMDISK, "DeleteSnapshot", "ta{sv}", number, {})),
                    }))));
        });
        body.replaceChildren(...rows);
    }

    change(path) {
        const disk = this.page.daemon.get(path, RAMDISK);
        const { daemon, schema: { ramdisk: schema }, devices } = this.page;
        const fields = [
            dialogs.keyField("size", _("Size"), exactly(disk.SizeBytes), { schema: schema.size }),
            // One on zram has the algorithm of its device, and one in tmpfs a number of files.
            disk.Backend === "zram"
                ? devices.algorithmField(algorithm(daemon.get(disk.Device, DEVICE)), schema)
                : dialogs.keyField("inodes", _("Upper bound of files"), "", { schema: schema.inodes }),
        ];
        this.page.changeSection(cockpit.format(_("Change $0"), disk.Name), `ramdisk.${disk.Name}`, fields);
    }
}
