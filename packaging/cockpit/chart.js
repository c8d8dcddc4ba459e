// Memory, what is stored in it, swap traffic, and waiting for memory, over time; and bars of measurements.

import { INTERVAL } from "./bus.js";
import { h, put, s, say } from "./dom.js";
import { bytes, clock, percent, rate } from "./format.js";
import { recorded } from "./history.js";

const _ = cockpit.gettext;

const MINUTE = 60000;
/** Minutes that the charts show: the first of these in which everything fits. */
const SPANS = [2, 5, 10, 60];
/** Minutes that are kept without recordings from before the page was opened, and with them. */
const KEPT = [10, 60];
const HEIGHT = 130;
const LEFT = 76;
const BOTTOM = 22;
const TOP = 8;

/** A round number of bytes that is at least this one: a power of two, and at least `least`. */
function above(value, least) {
    let step = least;
    while (step < value)
        step *= 2;
    return step;
}

const ofBytes = { text: bytes, top: most => above(most, 1 << 20) };
const ofRate = { text: rate, top: most => above(most, 1 << 10) };
const ofShare = { text: percent, top: most => (most > 0.5 ? 1 : most > 0.1 ? 0.5 : 0.1) };

/** The charts: a title, what the axis shows, and the lines with their names. The second line is dashed. */
const PANELS = [
    [_("Memory"), ofBytes, [["memory", _("In use")]]],
    [_("Compressed"), ofBytes, [["stored", _("Stored")], ["used", _("Memory")]]],
    [_("Swap traffic"), ofRate, [["came", _("In")], ["out", _("Out")]]],
    [_("Waiting for memory"), ofShare, [["waited", _("Share of the time")]]],
];

class Panel {
    #axes = s("g", { class: "axes" });
    #lines;
    #svg;

    constructor([title, scale, lines]) {
        this.title = title;
        this.scale = scale;
        this.#lines = lines.map(([key, name]) => ({ key, name, path: s("path", { class: key }), value: h("b") }));
        this.#svg = s("svg", { role: "img", height: HEIGHT, width: "100%" }, this.#axes, ...this.#lines.map(line => line.path));
        this.more = h("span");
        this.element = h("div", { class: "panel" },
            h("h3", null, title),
            h("p", { class: "legend" }, this.#lines.map(({ key, name, value }) => [h("span", { class: "key " + key }, name, " ", value), " "]), this.more),
            this.#svg);
    }

    get width() {
        return this.#svg.clientWidth;
    }

    draw(samples, minutes) {
        const now = samples.at(-1);
        const width = Math.max(this.width, 200);
        const values = this.#lines.flatMap(({ key }) => samples.map(sample => sample[key]).filter(Number.isFinite));
        const most = this.scale.top(Math.max(...values, 0));
        const x = time => width - (now.time - time) / (minutes * MINUTE) * (width - LEFT);
        const y = value => HEIGHT - BOTTOM - value / most * (HEIGHT - BOTTOM - TOP);
        for (const { key, path, value } of this.#lines) {
            const known = samples.filter(sample => Number.isFinite(sample[key]));
            put(path, "d", known.map((sample, index) => {
                const before = known[index - 1];
                // Nothing is known while the page was hidden, or nothing was recorded.
                const joins = before && sample.time - before.time < 2.5 * Math.max(sample.every, before.every);
                return [joins ? "L" : "M", x(sample.time).toFixed(1), " ", y(sample[key]).toFixed(1)].join("");
            }).join(""));
            say(value, Number.isFinite(now[key]) ? this.scale.text(now[key]) : "–");
        }
        put(this.#svg, "viewBox", `0 0 ${width} ${HEIGHT}`);
        const shown = this.#lines.map(({ name, value }) => `${name} ${value.textContent}`).join(", ");
        put(this.#svg, "aria-label", cockpit.format(_("$0, over $1 minutes. Now: $2"), this.title, minutes, shown));
        const grid = [0, 0.5, 1].map(part => [
            s("line", { x1: LEFT, x2: width, y1: y(most * part), y2: y(most * part) }),
            s("text", { x: LEFT - 6, y: y(most * part) + 4, "text-anchor": "end" }, this.scale.text(most * part)),
        ]);
        const times = [minutes, 0].map(minute => s("text", {
            x: x(now.time - minute * MINUTE), y: HEIGHT - 5, "text-anchor": minute ? "start" : "end",
        }, minute ? cockpit.format(_("$0 min ago"), minute) : _("now")));
        this.#axes.replaceChildren(...grid.flat(), ...times);
    }
}

export class Charts {
    #samples = [];
    #panels = PANELS.map(panel => new Panel(panel));
    #source = h("span");
    #kept = KEPT[0];

    constructor() {
        this.metrics = h("button", { type: "button", class: "link", onclick: () => cockpit.jump("/metrics") }, _("Metrics and history"));
        this.element = h("div", null, h("div", { class: "charts" }, this.#panels.map(panel => panel.element)),
                         h("p", { class: "source" }, this.#source, " ", this.metrics));
        new ResizeObserver(() => this.draw()).observe(this.element);
        say(this.#source, _("The charts begin when this page is opened."));
        this.#remember();
    }

    /** Puts what was recorded before the samples of this page. */
    async #remember() {
        const before = await recorded(KEPT[1] * MINUTE);
        if (!before.length) {
            say(this.#source, _("The charts begin when this page is opened: Cockpit has no history of this machine (Performance Co-Pilot)."));
            return;
        }
        [, this.#kept] = KEPT;
        const first = this.#samples[0]?.time ?? Infinity;
        this.#samples = [...before.filter(sample => sample.time < first), ...this.#samples];
        say(this.#source, cockpit.format(_("What was before this page was opened, from $0 on, was recorded by Performance Co-Pilot; it does not record what is compressed."),
                                         clock(this.#samples[0].time)));
        this.draw();
    }

    clear() {
        this.#samples = this.#samples.filter(sample => sample.every > INTERVAL);
    }

    add(sample) {
        const oldest = sample.time - this.#kept * MINUTE;
        this.#samples = [...this.#samples.filter(other => other.time > oldest), { every: INTERVAL, ...sample }];
        this.draw();
    }

    draw() {
        const now = this.#samples.at(-1);
        if (!now)
            return;
        const age = now.time - this.#samples[0].time;
        const minutes = SPANS.find(span => span * MINUTE >= age) || SPANS.at(-1);
        this.#panels.forEach(panel => panel.draw(this.#samples, minutes));
        const difference = now.stored - now.used;
        if (Number.isFinite(difference))
            say(this.#panels[1].more, cockpit.format(difference >= 0 ? _("Saved $0") : _("Lost $0"), bytes(Math.abs(difference))));
    }
}

/**
 * Bars of one figure of each row: its name, its value, and the range of that, if it is known. `mark` is the name of the row that stands
 * out.
 */
export function bars(label, rows, text, mark) {
    const most = Math.max(...rows.map(([, value, range]) => range?.[1] ?? value), 0);
    const at = value => `${most ? value / most * 100 : 0}%`;
    return h("table", { class: "bars", role: "table" },
        h("caption", null, label),
        h("tbody", { role: "rowgroup" }, rows.map(([name, value, range]) => h("tr", { role: "row", class: name === mark ? "chosen" : null },
            h("th", { scope: "row", role: "rowheader" }, name),
            h("td", { role: "cell" },
                s("svg", { height: 12, width: "100%", "aria-hidden": "true" },
                    s("rect", { height: 12, width: at(value), rx: 2 }),
                    ...range ? [s("line", { class: "range", x1: at(range[0]), x2: at(range[1]), y1: 6, y2: 6 })] : [])),
            h("td", { role: "cell", class: "number" }, text(value))))));
}
