// The verdict of the benchmark: a sentence, bars, and the table that they are drawn from.

import { BENCHMARK, ROOT } from "./bus.js";
import { bars } from "./chart.js";
import { cell, h, put, say, table } from "./dom.js";
import { microseconds, percent, rate, ratio, time } from "./format.js";
import { icon } from "./icons.js";

const _ = cockpit.gettext;

const PROFILES = { latency: _("little time"), balanced: _("a balance of time and memory"), capacity: _("much memory") };

/** The name of an algorithm with its parameters, as a configuration has it. */
function nameOf({ algorithm, parameters }) {
    const words = Object.entries(parameters || {}).map(([key, value]) => `${key}=${value}`);
    return words.length ? `${algorithm}(${words.join(", ")})` : algorithm;
}

/** Half the width of a range, as a share of the value. */
const spread = (value, low, high) => cockpit.format(_("± $0"), percent((high - low) / 2 / value));

/** The bytes per second of some passes and their spread; a disturbed run has none. */
function throughput({ value, low, high }) {
    return value ? `${rate(value)} ${spread(value, low, high)}` : "–";
}

export class Benchmark {
    /** When what is shown was measured, and the algorithm that was chosen then. */
    #shown = "";
    #rows = 0;

    constructor(page) {
        this.page = page;
        this.sentence = h("p");
        this.bars = h("div", { class: "two" });
        this.table = table("benchmark", _("What was measured"),
                           [_("Algorithm"), _("Price of a page"), _("Ratio"), _("Read a page"), _("Write a page"), _("Reads, all CPUs"), _("Writes, all CPUs"), _("Remark")]);
        this.note = h("p", { class: "source" },
            _("The price is the time to compress a page and to decompress it once, and a charge for the memory that it takes: less is better. The range behind ± is half the width of what was measured."));
        this.adopt = page.button(_("Adopt"), () => page.run(this.path, BENCHMARK, "Adopt", "a{sv}", {}), _("Adopt the chosen algorithm where swap is nearly empty"));
        this.element = h("section", { "aria-labelledby": "benchmark-title" },
            h("div", { class: "title" },
                h("h2", { id: "benchmark-title" }, _("Compression algorithms on this machine")),
                page.button(_("Measure now"), () => page.run(this.path, BENCHMARK, "Run", "a{sv}", {})),
                this.adopt),
            this.sentence, this.bars,
            h("details", { class: "measured" }, h("summary", null, _("All figures")), h("div", { class: "scroll" }, this.table.element), this.note));
    }

    get path() {
        return this.page.daemon.having(BENCHMARK)[0]?.path || ROOT;
    }

    show() {
        const verdict = this.page.daemon.get(this.path, BENCHMARK);
        const parts = [
            verdict.Chosen && cockpit.format(_("Chosen: $0, for $1, on $2."), verdict.Chosen, PROFILES[verdict.Profile] || verdict.Profile, time(verdict.Timestamp)),
            // After the chosen one, it may begin with the name of an algorithm.
            verdict.Reason && `${verdict.Chosen ? verdict.Reason : verdict.Reason[0].toUpperCase() + verdict.Reason.slice(1)}.`,
            verdict.WaitedShare >= 0.1 &&
                cockpit.format(_("The measurement had to wait for its processor $0 of the time, so throughput is left out."), percent(verdict.WaitedShare)),
            verdict.Provisional && cockpit.format(_("It is provisional: $0."), verdict.Provisional),
        ];
        say(this.sentence, parts.filter(Boolean).join(" "));
        this.adopt.hidden = !verdict.Chosen;
        const now = verdict.Chosen ? `${verdict.Timestamp} ${verdict.Chosen}` : "";
        if (now !== this.#shown) {
            this.#shown = now;
            this.#load(now);
        }
        this.#hide();
    }

    #hide() {
        this.bars.hidden = this.table.element.closest("details").hidden = !this.#rows;
    }

    /** Has all figures of the verdict, which has to be this one. */
    async #load(wanted) {
        let report = { results: [] };
        if (wanted) {
            try {
                ({ report } = JSON.parse(await this.page.daemon.ask(this.path, BENCHMARK, "Describe")));
            } catch (error) {
                // Again with the next figures.
                this.#shown = "";
                console.warn(error.message);
                return;
            }
        }
        if (this.#shown === wanted)
            this.#draw(report.results, report.verdict && nameOf(report.verdict));
    }

    #draw(results, chosen) {
        this.#rows = results.length;
        const named = (row, ...figures) => [nameOf(row), ...figures];
        const priced = results.filter(row => row.score !== null);
        this.bars.replaceChildren(
            bars(_("Price of a page: less is better"), priced.map(row => named(row, row.score, row.score_interval)), microseconds, chosen),
            bars(_("Bytes stored per byte of memory: more is better"), results.map(row => named(row, row.ratio_total)), ratio, chosen));
        this.table.body.replaceChildren(...results.map(row => {
            const name = nameOf(row);
            const [low, high] = row.score_interval || [];
            const price = row.score === null ? "–" : microseconds(row.score) + (low === undefined ? "" : ` ${spread(row.score, low, high)}`);
            const element = h("tr", { role: "row" },
                h("th", { role: "rowheader", scope: "row", "data-label": _("Algorithm") }, name),
                cell(_("Price of a page"), price), cell(_("Ratio"), ratio(row.ratio_total)), cell(_("Read a page"), microseconds(row.read.p50_ns)),
                cell(_("Write a page"), microseconds(row.write.p50_ns)), cell(_("Reads, all CPUs"), throughput(row.read.bytes_per_second)),
                cell(_("Writes, all CPUs"), throughput(row.write.bytes_per_second)),
                cell(_("Remark"), ...name === chosen && !row.excluded ? [icon("ok"), " ", _("chosen")] : [row.excluded || "–"]));
            put(element, "class", name === chosen ? "chosen" : null);
            return element;
        }));
        this.#hide();
    }
}
