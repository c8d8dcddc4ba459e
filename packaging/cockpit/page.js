// The page: what the daemon shows, from top to bottom.

import { DEVICE, Daemon, MANAGER, RAMDISK, ROOT } from "./bus.js";
import { Benchmark } from "./benchmark.js";
import { Charts } from "./chart.js";
import { Devices, inMemory, used } from "./devices.js";
import * as dialogs from "./dialogs.js";
import { h, put, say, sync, withCommands } from "./dom.js";
import { icon } from "./icons.js";
import { Jobs } from "./jobs.js";
import { Overview } from "./overview.js";
import { Ramdisks } from "./ramdisks.js";
import { REMEDIES } from "./remedies.js";
import { load as loadSchema } from "./schema.js";
import { absent, unconfigured } from "./start.js";
import { followTheme } from "./theme.js";
import { Zswap } from "./zswap.js";

const _ = cockpit.gettext;

/** Kinds of remedies whose button does all that the text of the remedy says. */
const SAME = ["activate", "reload", "save"];

/** What the figures of one moment say of the time since those before; the rates are unknown at first, and after a restart. */
function sampled(daemon, before) {
    const { manager, heard } = daemon;
    const devices = used(daemon).map(object => object[DEVICE]);
    const sum = value => devices.reduce((total, device) => total + value(device), 0);
    const seconds = (manager.StatsTimestampMonotonic - before?.StatsTimestampMonotonic) / 1e6;
    const since = name => (seconds > 0 && manager[name] >= before[name] ? (manager[name] - before[name]) / seconds : NaN);
    return {
        time: heard,
        memory: manager.MemoryTotalBytes - manager.MemoryAvailableBytes,
        stored: sum(inMemory) + manager.ZswapOriginalDataBytes,
        used: sum(device => device.MemoryUsedBytes) + manager.ZswapMemoryUsedBytes,
        came: since("SwappedInBytes"),
        out: since("SwappedOutBytes"),
        waited: Math.min(since("MemoryStalledUSec") / 1e6, 1),
    };
}

class Page {
    daemon = new Daemon();
    schema = { device: {}, ramdisk: {} };
    #admin = cockpit.permission({ admin: true });
    #charts = new Charts();
    #before = null;
    #notice = h("div", { role: "alert", class: "notice" });
    #readOnly = h("p", { class: "notice info" }, icon("note"), _("You see everything, but changes need administrative access."));
    #problems = h("ul", { class: "problems" });
    #problemSection = h("section", { "aria-labelledby": "problems-title" },
        h("h2", { id: "problems-title", tabindex: -1 }, _("Problems")), this.#problems);
    #pressure = h("p", { class: "pressure" });
    #overrides = h("ul", { class: "overrides" });
    #overrideSection = h("section", { "aria-labelledby": "overrides-title" },
        h("h2", { id: "overrides-title" }, _("Until the next boot")), this.#overrides);
    jobs = new Jobs(this.daemon);
    #overview = new Overview(this.daemon);
    devices = new Devices(this);
    ramdisks = new Ramdisks(this);
    #zswap = new Zswap(this.daemon);
    #benchmark = new Benchmark(this);
    #absent = absent(this);
    #unconfigured = unconfigured(this);

    start(main) {
        const { devices, ramdisks } = this;
        this.body = h("div", { hidden: true },
            this.#overview.element, this.#problemSection, this.#unconfigured, devices.element, this.#overrideSection, ramdisks.element,
            this.#zswap.element,
            h("section", { "aria-labelledby": "time-title" },
                h("h2", { id: "time-title" }, _("Over time")), this.#pressure, this.#charts.element),
            this.#benchmark.element);
        main.append(h("h1", null, _("Compressed memory")), this.#readOnly, this.#notice, this.jobs.element, this.jobs.said, this.#absent, this.body);
        this.#admin.addEventListener("changed", () => this.allow());
        this.allow();
        this.daemon.addEventListener("changed", () => this.#show());
        this.daemon.addEventListener("figures", () => {
            const { manager } = this.daemon;
            // A sample that was sent twice says nothing of the time between.
            if (manager.StatsTimestampMonotonic !== this.#before?.StatsTimestampMonotonic) {
                this.#charts.add(sampled(this.daemon, this.#before));
                this.#before = { ...manager };
            }
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

    /** Starts a job and follows it. What it refuses at once is shown as a failed one. */
    async run(path, name, method, type, ...values) {
        let job;
        try {
            job = await this.daemon.call(path, name, method, type, ...values);
        } catch (error) {
            this.jobs.fail(error.message);
            return;
        }
        await this.jobs.follow(job).catch(() => {});
    }

    /** Follows a job whose failure a dialog shows. */
    follow(path) {
        return this.jobs.follow(path, { failures: false });
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
            apply: async values => this.follow(
                await daemon.call(ROOT, MANAGER, "Configure", "a{sa{sv}}a{sv}", { [section]: changed() }, options(values))),
        });
    }

    /** Switches buttons for changes on or off. */
    allow() {
        const { allowed } = this.#admin;
        this.#readOnly.hidden = allowed !== false;
        document.querySelectorAll("button[data-change]").forEach(button => {
            button.disabled = !allowed;
        });
    }

    #show() {
        const { daemon } = this;
        this.#tellState();
        const there = daemon.manager.Version !== undefined;
        this.body.hidden = this.jobs.element.hidden = !there;
        this.#absent.hidden = daemon.state !== "gone" || Boolean(daemon.reason);
        if (!there) {
            this.#charts.clear();
            this.#before = null;
            return;
        }
        const { manager } = daemon;
        this.#unconfigured.hidden = Boolean(manager.ConfigFiles?.length || used(daemon).length || daemon.having(RAMDISK).length);
        this.#overview.show();
        this.#tellProblems();
        this.#tellPressure();
        this.#tellOverrides();
        this.jobs.show();
        this.devices.show();
        this.devices.element.hidden = !this.#unconfigured.hidden;
        this.ramdisks.show();
        this.#zswap.show();
        this.#benchmark.show();
    }

    #tellState() {
        const { state, reason, heard } = this.daemon;
        let text = "";
        if (state === "gone") {
            text = reason;
        } else if (state === "silent") {
            text = heard
                ? cockpit.format(_("zramd does not answer. The figures are those of $0. $1"), new Date(heard).toLocaleTimeString(), reason)
                : cockpit.format(_("zramd does not answer. $0"), reason);
        }
        if (this.#notice.dataset.text !== text) {
            this.#notice.dataset.text = text;
            this.#notice.replaceChildren(...text ? [icon("error"), h("p", null, withCommands(text))] : []);
        }
        put(document.body, "data-state", state);
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
            // The button does it.
            const isDone = action && SAME.includes(REMEDIES[code]);
            return h("li", { "data-code": code, class: level },
                icon(level in levels ? level : "note"),
                h("div", null, h("b", { class: "level" }, levels[level] || level), " ", message, !isDone && h("p", null, withCommands(remedy))),
                action && this.button(text, action, `${text} (${object})`));
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
            const item = h("li", null, h("span", null, h("b", null, section), " ", text), this.button(_("Undo"), () => this.run(
                ROOT, MANAGER, "UnsetOverride", "sa{sv}", section, {}), cockpit.format(_("Undo what holds for $0 until the next boot"), section)));
            item.update = () => {
                const own = (this.daemon.manager.Overrides || []).filter(([object]) => object === section);
                say(text, own.map(([, key, value, configured]) => configured
                    ? cockpit.format(_("$0 = $1 instead of $2"), key, value, configured) : `${key} = ${value}`).join(", "));
            };
            return item;
        });
    }
}

followTheme();
document.title = _("Compressed memory");
put(document.documentElement, "lang", (cockpit.language || "en").replace("_", "-"));
new Page().start(document.getElementById("page"));
