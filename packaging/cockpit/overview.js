// What is seen first: whether memory is fine, what was gained, and how full memory and swap are.

import { DEVICE } from "./bus.js";
import { inMemory, used } from "./devices.js";
import { h, put, say } from "./dom.js";
import { bytes } from "./format.js";
import { icon } from "./icons.js";
import { meter } from "./meter.js";

const _ = cockpit.gettext;

/** Bytes below which the sentence says that next to nothing is stored, as that of `zramdctl status`. */
const WORTH_MENTIONING = 1 << 20;

/** What there is to say of memory at each level of pressure, and the kind of icon. */
const LEVELS = {
    none: ["ok", _("Memory is fine.")],
    moderate: ["warning", _("Memory is short.")],
    severe: ["error", _("Memory is very short.")],
    critical: ["error", _("Memory is far too short: most of the time, everything waits for it.")],
};

export class Overview {
    #icon = icon("ok");
    #verdict = h("b", { class: "verdict" });
    #gain = h("span", { class: "gain" });
    #worst = icon("warning");
    #todo = h("a", { href: "#problems-title" });
    #memory = meter(_("Memory in use"), _("Memory"));
    #swap = meter(_("Swap in use"), _("Swap"));

    constructor(daemon) {
        this.daemon = daemon;
        this.element = h("section", { class: "overview", "aria-label": _("State") },
            h("p", { class: "state" }, this.#icon, h("span", null, this.#verdict, " ", this.#gain, " ", this.#worst, " ", this.#todo)),
            h("div", { class: "meters" }, this.#memory.element, this.#swap.element));
    }

    show() {
        const { manager } = this.daemon;
        const [kind, words] = LEVELS[manager.PressureLevel] || LEVELS.none;
        const problems = (manager.ProblemDetails || []).filter(([level]) => level !== "note");
        this.#icon.show(kind);
        this.#worst.show(problems.some(([level]) => level === "error") ? "error" : "warning");
        this.#worst.toggleAttribute("hidden", !problems.length);
        say(this.#verdict, words);
        put(this.#verdict, "data-level", manager.PressureLevel || "none");
        this.#todo.hidden = !problems.length;
        say(this.#todo, cockpit.format(cockpit.ngettext("$0 problem needs attention.", "$0 problems need attention.", problems.length), problems.length));
        say(this.#gain, this.#gained());
        this.#memory.show(manager.MemoryTotalBytes - manager.MemoryAvailableBytes, manager.MemoryTotalBytes);
        this.#swap.show(manager.SwapTotalBytes - manager.SwapFreeBytes, manager.SwapTotalBytes);
    }

    #gained() {
        const devices = used(this.daemon);
        const stored = role => devices.filter(object => object[DEVICE].Role === role)
                .reduce((sum, object) => sum + inMemory(object[DEVICE]), 0);
        const kinds = [[stored("swap"), _("$0 of programs")], [stored("filesystem"), _("$0 of files")], [stored("raw"), _("$0 of other data")]];
        const words = kinds.filter(([amount]) => amount >= WORTH_MENTIONING).map(([amount, text]) => cockpit.format(text, bytes(amount)));
        const total = kinds.reduce((sum, [amount]) => sum + amount, 0);
        const memory = devices.reduce((sum, object) => sum + object[DEVICE].MemoryUsedBytes, 0);
        if (!devices.length)
            return _("No zram device is in use.");
        if (!words.length)
            return _("Next to nothing is stored in compressed memory yet.");
        if (total > memory)
            return cockpit.format(_("$0 are in $1 of memory, which saves $2."), words.join(_(" and ")), bytes(memory), bytes(total - memory));
        return cockpit.format(_("$0 are in $1 of memory, which saves nothing."), words.join(_(" and ")), bytes(memory));
    }
}
