// The page: what the daemon shows, from top to bottom.

import { DEVICE, RAMDISK, Daemon, JOB, MANAGER, ROOT } from "./bus.js";
import { Benchmark } from "./benchmark.js";
import { Chart } from "./chart.js";
import { Devices, inMemory, used } from "./devices.js";
import * as dialogs from "./dialogs.js";
import { Ramdisks } from "./ramdisks.js";
import { h, put, say, sync, withCommands } from "./dom.js";
import { bytes } from "./format.js";
import { REMEDIES } from "./remedies.js";
import { load as loadSchema } from "./schema.js";
import { followTheme } from "./theme.js";

const _ = cockpit.gettext;

/** Bytes below which the sentence at the top says that next to nothing is stored, as that of `zramdctl status`. */
const WORTH_MENTIONING = 1 << 20;

class Page {
    daemon = new Daemon();
    schema = { device: {}, ramdisk: {} };
    #admin = cockpit.permission({ admin: true });
    #chart = new Chart();
    #gain = h("p", { class: "gain" });
    #count = h("p");
    #notice = h("div", { role: "alert", class: "notice" });
    #readOnly = h("p", { class: "notice info" }, _("You see everything, but changes need administrative access."));
    #jobs = h("ul", { class: "jobs", "aria-label": _("Jobs") });
    #said = h("div", { role: "status", class: "hidden" });
    #failure = h("div", { role: "alert" });
    #problems = h("ul", { class: "problems" });
    #problemSection = h("section", { "aria-labelledby": "problems-title" },
        h("h2", { id: "problems-title" }, _("Problems")), this.#problems);
    #pressure = h("p");
    #overrides = h("ul", { class: "overrides" });
    #overrideSection = h("section", { "aria-labelledby": "overrides-title" },
        h("h2", { id: "overrides-title" }, _("Until the next boot")), this.#overrides);
    devices = new Devices(this);
    ramdisks = new Ramdisks(this);
    #benchmark = new Benchmark(this);
    #ended = new Set();

    start(main) {
        const { devices, ramdisks } = this;
        this.body = h("div", { hidden: true },
            this.#problemSection,
            h("section", { "aria-labelledby": "memory-title" },
                h("h2", { id: "memory-title" }, _("Memory")), this.#pressure, this.#chart.element),
            devices.element, ramdisks.element, this.#overrideSection, this.#benchmark.element);
        main.append(h("header", null, h("h1", null, _("Compressed memory")), this.#gain, this.#count), this.#notice, this.#readOnly,
                    this.#failure, this.#jobs, this.#said, this.body);
        this.#admin.addEventListener("changed", () => this.#allow());
        this.#allow();
        this.daemon.addEventListener("changed", () => this.#show());
        this.daemon.addEventListener("figures", () => {
            this.#sample();
            this.#show();
        });
        this.daemon.start();
        this.#show();
        loadSchema().then(schema => {
            this.schema = schema;
        });
    }

    /** A button for a change. It is off without administrative access. */
    button(text, action, label) {
        return h("button", { type: "button", "data-change": true, "aria-label": label, disabled: !this.#admin.allowed, onclick: action }, text);
    }

    /** Starts a job whose progress and end are among the jobs. What it refuses at once is shown below the title. */
    async run(path, name, method, type, ...values) {
        this.#failure.replaceChildren();
        try {
            const job = await this.daemon.ended(await this.daemon.call(path, name, method, type, ...values));
            if (job.Result !== "done")
                this.#fail(job.Message || job.Result);
        } catch (error) {
            this.#fail(error.message);
        }
    }

    /** A form that changes keys of a section. */
    changeSection(title, section, keys) {
        const { daemon } = this;
        const isTemporary = (daemon.manager.Overrides || []).some(([object]) => object === section);
        const duration = dialogs.choiceField("duration", _("For how long"),
                                             [["always", _("For good: in a file in /etc/zramd")], ["boot", _("Until the next boot")]]);
        if (isTemporary)
            duration.control.value = "boot";
        const force = dialogs.switchField("force", _("Discard contents that would be lost"));
        const changed = () => Object.fromEntries(keys.filter(key => key.value() !== key.before)
                .map(key => [key.name, dialogs.variantOf(key)]));
        const options = values => ({
            ...values.duration === "boot" ? { runtime: cockpit.variant("b", true) } : {},
            ...values.force ? { force: cockpit.variant("b", true) } : {},
        });
        dialogs.ask({
            title,
            fields: [...keys, duration, force],
            button: _("Apply"),
            preview: values => dialogs.planOf(daemon, { [section]: changed() }, options(values)),
            apply: async values => daemon.ended(
                await daemon.call(ROOT, MANAGER, "Configure", "a{sa{sv}}a{sv}", { [section]: changed() }, options(values))),
        });
    }

    #fail(message) {
        this.#failure.replaceChildren(h("div", { class: "notice" }, h("p", null, withCommands(message)),
            h("button", { type: "button", onclick: () => this.#failure.replaceChildren() }, _("Close"))));
    }

    #allow() {
        const { allowed } = this.#admin;
        this.#readOnly.hidden = allowed !== false;
        document.querySelectorAll("button[data-change]").forEach(button => {
            button.disabled = !allowed;
        });
    }

    #sample() {
        const devices = used(this.daemon).map(object => object[DEVICE]);
        const sum = value => devices.reduce((total, device) => total + value(device), 0);
        this.#chart.add({ time: this.daemon.heard, stored: sum(inMemory), used: sum(device => device.MemoryUsedBytes) });
    }

    #show() {
        const { daemon } = this;
        this.#tellState();
        const there = daemon.manager.Version !== undefined;
        this.body.hidden = this.#gain.hidden = this.#count.hidden = this.#jobs.hidden = !there;
        if (!there) {
            this.#chart.clear();
            return;
        }
        this.#tellGain();
        this.#tellProblems();
        this.#tellPressure();
        this.#tellOverrides();
        this.#tellJobs();
        this.devices.show();
        this.ramdisks.show();
        this.#benchmark.show();
    }

    #tellState() {
        const { state, reason, heard } = this.daemon;
        let text = "";
        if (state === "gone") {
            text = reason || _("zramd does not run, so nothing is known about compressed memory. `systemctl enable --now zramd` starts it. Devices keep working without it.");
        } else if (state === "silent") {
            text = heard
                ? cockpit.format(_("zramd does not answer. The figures are those of $0. $1"), new Date(heard).toLocaleTimeString(), reason)
                : cockpit.format(_("zramd does not answer. $0"), reason);
        }
        if (this.#notice.dataset.text !== text) {
            this.#notice.dataset.text = text;
            this.#notice.replaceChildren(...text ? [h("p", null, withCommands(text))] : []);
        }
        put(document.body, "data-state", state);
    }

    #tellGain() {
        const devices = used(this.daemon);
        const stored = role => devices.filter(object => object[DEVICE].Role === role)
                .reduce((sum, object) => sum + inMemory(object[DEVICE]), 0);
        const kinds = [[stored("swap"), _("$0 of programs")], [stored("filesystem"), _("$0 of files")], [stored("raw"), _("$0 of other data")]];
        const words = kinds.filter(([amount]) => amount >= WORTH_MENTIONING).map(([amount, text]) => cockpit.format(text, bytes(amount)));
        const total = kinds.reduce((sum, [amount]) => sum + amount, 0);
        const memory = devices.reduce((sum, object) => sum + object[DEVICE].MemoryUsedBytes, 0);
        let sentence = _("Next to nothing is stored in compressed memory yet.");
        if (!devices.length)
            sentence = _("No zram device is in use.");
        else if (words.length && total > memory)
            sentence = cockpit.format(_("$0 are in $1 of memory, which saves $2."), words.join(_(" and ")), bytes(memory), bytes(total - memory));
        else if (words.length)
            sentence = cockpit.format(_("$0 are in $1 of memory, which saves nothing."), words.join(_(" and ")), bytes(memory));
        say(this.#gain, sentence);
        const disks = this.daemon.having(RAMDISK).length;
        const problems = (this.daemon.manager.ProblemDetails || []).length;
        say(this.#count, [
            cockpit.format(cockpit.ngettext("$0 zram device", "$0 zram devices", devices.length), devices.length),
            cockpit.format(cockpit.ngettext("$0 RAM disk", "$0 RAM disks", disks), disks),
            problems ? cockpit.format(cockpit.ngettext("$0 problem", "$0 problems", problems), problems) : _("no problems"),
        ].join(" · "));
    }

    /** What a click can do about a problem: the text of the button, and the action. */
    #remedy(code, object) {
        const path = this.daemon.having(DEVICE).find(({ [DEVICE]: device }) => device.Name === object)?.path;
        const disk = this.daemon.having(RAMDISK).find(({ [RAMDISK]: found }) => found.Name === object)?.path;
        const { devices, ramdisks } = this;
        switch (REMEDIES[code]) {
        case "activate":
            return [_("Switch on"), () => this.run(ROOT, MANAGER, "ActivateDevice", "sa{sv}", object, {})];
        case "reload":
            return [_("Apply configuration…"), () => devices.reload()];
        case "device":
            return path && [_("Change…"), () => devices.change(path)];
        case "ramdisk":
            return disk && [_("Change…"), () => ramdisks.change(disk)];
        case "save":
            return disk && [_("Save"), () => this.run(disk, RAMDISK, "Save", "a{sv}", {})];
        case "snapshots":
            return disk && [_("Snapshots"), () => ramdisks.open(disk)];
        default:
            return null;
        }
    }

    #tellProblems() {
        const problems = this.daemon.manager.ProblemDetails || [];
        this.#problemSection.hidden = !problems.length;
        const levels = { error: _("Error"), warning: _("Warning"), note: _("Note") };
        sync(this.#problems, problems, problem => problem.join("\n"), ([level, code, object, message, remedy]) => {
            const [text, action] = this.#remedy(code, object) || [];
            return h("li", { "data-code": code, class: level },
                h("b", { class: "level" }, levels[level] || level), " ", message,
                h("p", null, withCommands(remedy), action && [" ", this.button(text, action, `${text} (${object})`)]));
        });
    }

    #tellPressure() {
        const { PressureLevel: level, PressureReason: reason } = this.daemon.manager;
        const words = { none: _("none"), moderate: _("moderate"), severe: _("severe"), critical: _("critical") };
        say(this.#pressure, cockpit.format(_("Memory pressure: $0"), words[level] || level) + (reason ? ` (${reason})` : ""));
        put(this.#pressure, "data-level", level);
    }

    #tellOverrides() {
        const overrides = this.daemon.manager.Overrides || [];
        this.#overrideSection.hidden = !overrides.length;
        const sections = [...new Set(overrides.map(([section]) => section))];
        sync(this.#overrides, sections, section => section, section => {
            const text = h("span");
            const item = h("li", null, h("b", null, section), " ", text, " ", this.button(_("Undo"), () => this.run(
                ROOT, MANAGER, "UnsetOverride", "sa{sv}", section, {}), cockpit.format(_("Undo what holds for $0 until the next boot"), section)));
            item.update = () => {
                const own = (this.daemon.manager.Overrides || []).filter(([object]) => object === section);
                say(text, own.map(([, key, value, configured]) => configured
                    ? cockpit.format(_("$0 = $1 instead of $2"), key, value, configured) : `${key} = ${value}`).join(", "));
            };
            return item;
        });
    }

    #tellJobs() {
        const { daemon } = this;
        const jobs = daemon.having(JOB);
        sync(this.#jobs, jobs, job => job.path, ({ path }) => {
            const title = h("span");
            const progress = h("progress", { max: 1 });
            const message = h("span");
            const cancel = this.button(_("Cancel"), () => daemon.call(path, JOB, "Cancel", "").catch(error => this.#fail(error.message)));
            const item = h("li", null, title, " ", progress, " ", message, " ", cancel);
            item.update = ({ [JOB]: job }) => {
                const name = [job.Type, job.Object].filter(Boolean).join(" ");
                say(title, name);
                put(progress, "aria-label", name);
                put(progress, "value", job.Progress || null);
                progress.hidden = cancel.hidden = Boolean(job.Result);
                const words = { done: _("done"), failed: _("failed"), cancelled: _("cancelled"), postponed: _("postponed") };
                say(message, job.Result ? `${words[job.Result] || job.Result}: ${job.Message}` : "");
                put(item, "data-result", job.Result || null);
                // The number of a job is used again after a restart of the daemon.
                const once = `${path} ${job.StartTimestampMonotonic}`;
                if (job.Result && !this.#ended.has(once)) {
                    this.#ended.add(once);
                    say(this.#said, `${name}: ${message.textContent}`);
                }
            };
            return item;
        });
    }
}

followTheme();
document.title = _("Compressed memory");
put(document.documentElement, "lang", (cockpit.language || "en").replace("_", "-"));
new Page().start(document.getElementById("page"));
