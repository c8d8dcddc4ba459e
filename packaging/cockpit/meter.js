// A bar that shows how full something is, with the words for it.

import { h, put, say } from "./dom.js";
import { bytes, percent } from "./format.js";
import { icon } from "./icons.js";

const _ = cockpit.gettext;

/** Shares from which a bar stands out. */
const HIGH = 0.8;
const FULL = 0.95;

/** A bar. `show(used, size)` has it show bytes of bytes; `label` is what screen readers hear before them. */
export function meter(label, title) {
    const text = h("span", { class: "amount" });
    const mark = icon("warning");
    const part = h("div");
    const bar = h("div", { class: "bar", role: "meter", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": 100 }, part);
    const element = h("div", { class: "meter" }, h("div", { class: "line" }, title && h("span", null, title), h("span", null, text, " ", mark)), bar);
    return {
        element,
        show(used, size, more) {
            const share = size ? Math.min(used / size, 1) : 0;
            const words = size ? cockpit.format(_("$0 of $1"), bytes(used), bytes(size)) : _("none");
            say(text, [words, more].filter(Boolean).join(", "));
            put(bar, "aria-valuenow", Math.round(share * 100));
            put(bar, "aria-valuetext", `${text.textContent} (${percent(share)})`);
            const level = share >= FULL ? "full" : share >= HIGH ? "high" : "fine";
            put(bar, "data-level", level);
            mark.show(level === "full" ? "error" : "warning");
            mark.toggleAttribute("hidden", level === "fine");
            part.style.inlineSize = `${share * 100}%`;
        },
    };
}
