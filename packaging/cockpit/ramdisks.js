// The table of RAM disks, with what is saved of them, and their snapshots.

import { DEVICE, RAMDISK } from "./bus.js";
import { algorithm, written } from "./devices.js";
import * as dialogs from "./dialogs.js";
import { cell, facts, h, put, say, sync, table } from "./dom.js";
import { bytes, exactly, number, time, timeOrNever } from "./format.js";
import { icon } from "./icons.js";
import { meter } from "./meter.js";

const _ = cockpit.gettext;

/** What is kept over a reboot. */
const KEPT = { none: _("nothing is saved"), skeleton: _("directories are saved"), snapshot: _("contents are saved") };
/** How it was filled, where that is not as usual, and the kind of icon. */
const LOADS = {
    loading: ["note", _("being filled")], fallback: ["warning", _("filled from an older snapshot")],
    passthrough: ["warning", _("not in memory: the directory on the disk is used")], failed: ["error", _("could not be filled")],
};
/** Why something was left out of a save, or not kept whole. */
const OMISSIONS = {
    attributes: _("$0 without user attributes"), damaged: _("$0 with unreadable places"), flags: _("$0 without the flags of chattr"),
    format: _("$0 of a kind that a snapshot cannot hold"), lease: _("$0 held by another program"), path: _("$0 with a path that is too long"),
    unreadable: _("$0 unreadable"), other: _("$0 for another reason"),
};
const RESULTS = { ok: _("done"), unchanged: _("there was nothing to write"), failed: _("failed") };

export class Ramdisks {
    #open = new Map();

    constructor(page) {
        this.page = page;
        const headings = [_("Name"), _("Use"), _("Full"), _("Last save"), _("Next save"), _("Actions")];
        this.table = table("ramdisks", _("RAM disks"), headings);
        this.element = h("section", { "aria-labelledby": "ramdisks-title" },
            h("h2", { id: "ramdisks-title" }, _("RAM disks")), h("div", { class: "scroll" }, this.table.element));
    }

    show() {
        const disks = this.page.daemon.having(RAMDISK);
        this.element.hidden = !disks.length;
        // Below the row of an open disk is one with the rest, and its snapshots.
        const rows = disks.flatMap(disk => [{ key: disk.path, disk },
            ...this.#open.has(disk.path) ? [{ key: `${disk.path} snapshots`, disk, snapshots: true }] : []]);
        sync(this.table.body, rows, row => row.key, row => row.snapshots ? this.#snapshots(row) : this.#row(row));
    }

    #row({ disk: { path, [RAMDISK]: { Name: name } } }) {
        const { page } = this;
        const mark = icon("ok");
        const use = h("span");
        const full = meter(cockpit.format(_("How full $0 is"), name));
        const last = cell(_("Last save"));
        const next = cell(_("Next save"));
        const named = (text, what, action) => page.button(text, action, cockpit.format(what, name));
        const save = named(_("Save"), _("Save $0"), () => page.run(path, RAMDISK, "Save", "a{sv}", {}));
        const change = named(_("Change…"), _("Change $0"), () => this.change(path));
        const list = h("button", { type: "button", "aria-expanded": "false", "aria-label": cockpit.format(_("Details of $0"), name),
                                   onclick: () => this.toggle(path) }, _("Details"));
        const row = h("tr", { role: "row" }, h("th", { role: "rowheader", scope: "row" }, h("span", { class: "name" }, name)),
                      cell("", h("span", { class: "use" }, mark, use)), cell("", full.element), last, next,
                      cell("", change, save, list));
        row.update = ({ disk: { [RAMDISK]: now } }) => {
            const failed = now.LastSaveResult === "failed";
            const [kind, load] = LOADS[now.LoadState] || ["ok", ""];
            mark.show(failed ? "error" : kind);
            say(use, [now.MountPoint, load, KEPT[now.Persistence] || now.Persistence].filter(Boolean).join(", "));
            full.show(now.UsedBytes, now.SizeBytes);
            say(last, timeOrNever(now.LastSaveTimestamp) + (failed ? ` (${RESULTS.failed})` : ""));
            say(next, timeOrNever(now.NextSaveTimestamp));
            save.hidden = now.Persistence === "none";
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
        const about = facts();
        const row = h("tr", { role: "row", class: "inner" }, h("td", { role: "cell", colspan: 6 }, about.element, found.element, error));
        row.update = async ({ disk: { [RAMDISK]: now } }) => {
            const omitted = Object.entries(now.LastSaveOmitted || {}).filter(([, count]) => count)
                    .map(([reason, count]) => cockpit.format(OMISSIONS[reason] || `$0 (${reason})`, number(count, 0)));
            about.show([
                [_("Result of the last save"), RESULTS[now.LastSaveResult]],
                [_("Left out or not kept whole"), omitted.join(", ")],
                [_("Snapshots"), cockpit.format(cockpit.ngettext("$0 snapshot, in $1", "$0 snapshots, in $1", now.SnapshotCount), now.SnapshotCount, bytes(now.StoreBytes))],
                [_("Written in the day before the last save"), bytes(now.WrittenDayBytes)],
                [_("Written since this is counted"), bytes(now.WrittenTotalBytes)],
                [_("Newest snapshot last read as a whole"), now.LastVerifyTimestamp && time(now.LastVerifyTimestamp)],
                [_("Held by"), now.Backend],
            ]);
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
        const rows = snapshots.map(([id, when, files, stored, reason, good, pinned]) => {
            const what = cockpit.format(_("snapshot $0 of $1"), id, name);
            const button = (text, action) => page.button(text, action, `${text} ${what}`);
            const destroys = (text, action) => {
                const found = button(text, action);
                found.classList.add("danger");
                return found;
            };
            const state = [good ? _("good") : _("damaged"), pinned && _("pinned"), id === loaded && _("loaded")].filter(Boolean);
            return h("tr", { role: "row" },
                h("th", { role: "rowheader", scope: "row", "data-label": _("Number") }, id),
                cell(_("Time"), time(when)), cell(_("Files"), bytes(files)), cell(_("Stored"), bytes(stored)), cell(_("Reason"), reason),
                cell(_("State"), icon(good ? "ok" : "error"), " ", state.join(", ")),
                cell(_("Actions"),
                    destroys(_("Restore…"), () => dialogs.ask({
                        title: cockpit.format(_("Restore $0"), what),
                        text: cockpit.format(_("What is on $0 now is saved first; then the RAM disk is emptied and filled from this snapshot. Programs that use it are in the way."), name),
                        button: _("Restore"),
                        danger: true,
                        apply: async () => page.follow(await page.daemon.call(path, RAMDISK, "Restore", "ta{sv}", id, {})),
                    })),
                    button(_("Verify"), () => act("Verify", "ta{sv}", id, {})),
                    button(pinned ? _("Unpin") : _("Pin"), () => act("Pin", "tba{sv}", id, !pinned, {})),
                    destroys(_("Delete…"), () => dialogs.ask({
                        title: cockpit.format(_("Delete $0"), what),
                        text: _("The snapshot is deleted from the disk that stores it."),
                        button: _("Delete"),
                        danger: true,
                        apply: async () => page.follow(await page.daemon.call(path, RAMDISK, "DeleteSnapshot", "ta{sv}", id, {})),
                    }))));
        });
        body.replaceChildren(...rows);
    }

    async change(path) {
        const disk = this.page.daemon.get(path, RAMDISK);
        const { daemon, schema: { ramdisk: schema }, devices } = this.page;
        const configured = await daemon.configured(`ramdisk.${disk.Name}`);
        const about = key => ({ schema: schema[key], setting: configured.get(key) });
        const before = (key, now) => written(configured.get(key)) ?? now;
        const fields = [
            dialogs.sizeField("size", _("Size"), before("size", exactly(disk.SizeBytes)), about("size")),
            // One on zram has the algorithm of its device, and one in tmpfs a number of files.
            disk.Backend === "zram"
                ? devices.algorithmField(before("compression-algorithm", algorithm(daemon.get(disk.Device, DEVICE))), schema, configured.get("compression-algorithm"))
                : dialogs.keyField("inodes", _("Upper bound of files"), before("inodes", ""), about("inodes")),
        ];
        this.page.changeSection(cockpit.format(_("Change $0"), disk.Name), `ramdisk.${disk.Name}`, fields);
    }
}
