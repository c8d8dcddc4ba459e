// What is stored, and in how much memory, since the page was opened.

import { INTERVAL } from "./bus.js";
import { h, s, put, say } from "./dom.js";
import { bytes } from "./format.js";

const _ = cockpit.gettext;

/** Minutes that the chart shows: the first of these in which everything fits. */
const SPANS = [2, 5, 10];
const MINUTE = 60000;
const HEIGHT = 180;
const LEFT = 76;
const BOTTOM = 22;
const TOP = 8;

/** A round number of bytes that is at least this one: one, two or five of a power of two of bytes. */
function above(value) {
    let step = 1 << 20;
    while (step < value)
        step *= 2;
    return step;
}

export class Chart {
    #samples = [];
    #axes = s("g", { class: "axes" });
    #stored = s("path", { class: "stored" });
    #used = s("path", { class: "used" });
    #svg = s("svg", { role: "img", height: HEIGHT, width: "100%" }, this.#axes, this.#stored, this.#used);
    #figures = { stored: h("b"), used: h("b"), saved: h("b") };
    #saved = h("span");

    constructor() {
        const figures = this.#figures;
        this.element = h("div", { class: "chart" },
            h("p", { class: "legend" },
                h("span", { class: "key stored" }, _("Stored"), " ", figures.stored), " ",
                h("span", { class: "key used" }, _("In memory"), " ", figures.used), " ",
                h("span", null, this.#saved, " ", figures.saved)),
            this.#svg);
        new ResizeObserver(() => this.draw()).observe(this.#svg);
    }

    clear() {
        this.#samples = [];
        this.draw();
    }

    add(sample) {
        const oldest = sample.time - SPANS.at(-1) * MINUTE;
        this.#samples = [...this.#samples.filter(other => other.time > oldest), sample];
        this.draw();
    }

    draw() {
        const now = this.#samples.at(-1);
        if (!now)
            return;
        const difference = now.stored - now.used;
        say(this.#figures.stored, bytes(now.stored));
        say(this.#figures.used, bytes(now.used));
        say(this.#saved, difference >= 0 ? _("Saved") : _("Lost"));
        say(this.#figures.saved, bytes(Math.abs(difference)));

        const width = Math.max(this.#svg.clientWidth, 240);
        const most = above(Math.max(...this.#samples.map(sample => Math.max(sample.stored, sample.used))));
        const age = now.time - this.#samples[0].time;
        const span = SPANS.find(minutes => minutes * MINUTE >= age) || SPANS.at(-1);
        const x = time => width - (now.time - time) / (span * MINUTE) * (width - LEFT);
        const y = value => HEIGHT - BOTTOM - value / most * (HEIGHT - BOTTOM - TOP);
        const line = value => this.#samples.map((sample, index) => {
            const before = this.#samples[index - 1];
            // Nothing is known while the page was hidden.
            const joins = before && sample.time - before.time < 2.5 * INTERVAL;
            return `${joins ? "L" : "M"}${x(sample.time).toFixed(1)} ${y(sample[value]).toFixed(1)}`;
        }).join("");
        put(this.#stored, "d", line("stored"));
        put(this.#used, "d", line("used"));
        put(this.#svg, "viewBox", `0 0 ${width} ${HEIGHT}`);
        const shown = [cockpit.format(_("Stored data and the memory that holds it, over $0 minutes."), span),
            cockpit.format(_("Now: $0 in $1."), bytes(now.stored), bytes(now.used))];
        put(this.#svg, "aria-label", shown.join(" "));

        const grid = [0, 0.5, 1].map(part => [
            s("line", { x1: LEFT, x2: width, y1: y(most * part), y2: y(most * part) }),
            s("text", { x: LEFT - 6, y: y(most * part) + 4, "text-anchor": "end" }, bytes(most * part)),
        ]);
        const minutes = [span, 0].map(minute => s("text", {
            x: x(now.time - minute * MINUTE), y: HEIGHT - 5, "text-anchor": minute ? "start" : "end",
        }, minute ? cockpit.format(_("$0 min ago"), minute) : _("now")));
        this.#axes.replaceChildren(...grid.flat(), ...minutes);
    }
}

/** Bars of one figure of each algorithm. */
function bars(label, rows, value, text) {
    const most = Math.max(...rows.map(value), 0);
    return h("table", { class: "bars", role: "table" },
        h("caption", null, label),
        h("tbody", { role: "rowgroup" }, rows.map(row => h("tr", { role: "row" },
            h("th", { scope: "row", role: "rowheader" }, row[0]),
            h("td", { role: "cell" },
                s("svg", { height: 12, width: "100%", "aria-hidden": "true" },
                    s("rect", { height: 12, width: `${most ? value(row) / most * 100 : 0}%`, rx: 2 }))),
            h("td", { role: "cell", class: "number" }, text(value(row)))))));
}

export { bars };
