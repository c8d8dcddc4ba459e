// The verdict of the benchmark: a sentence, bars, and the table that they are drawn from.

import { BENCHMARK, ROOT } from "./bus.js";
import { bars } from "./chart.js";
import { cell, h, say, table } from "./dom.js";
import { bytes, microseconds, ratio, time } from "./format.js";

const _ = cockpit.gettext;

/** Bytes a second; a disturbed run has none. */
const rate = value => (value ? cockpit.format(_("$0/s"), bytes(value)) : "–");

export class Benchmark {
    #shown = "";

    constructor(page) {
        this.page = page;
        this.sentence = h("p");
        this.bars = h("div", { class: "two" });
        this.table = table("benchmark", _("What was measured"),
                           [_("Algorithm"), _("Ratio"), _("Read a page"), _("Write a page"), _("Reads, all CPUs"), _("Writes, all CPUs"), _("Remark")]);
        this.adopt = page.button(_("Adopt"), () => page.run(this.path, BENCHMARK, "Adopt", "a{sv}", {}), _("Adopt the chosen algorithm where swap is nearly empty"));
        this.element = h("section", { "aria-labelledby": "benchmark-title" },
            h("div", { class: "title" },
                h("h2", { id: "benchmark-title" }, _("Compression algorithms on this machine")),
                page.button(_("Measure now"), () => page.run(this.path, BENCHMARK, "Run", "a{sv}", {})),
                this.adopt),
            this.sentence, this.bars, h("div", { class: "scroll" }, this.table.element));
    }

    get path() {
        return this.page.daemon.having(BENCHMARK)[0]?.path || ROOT;
    }

    show() {
        const verdict = this.page.daemon.get(this.path, BENCHMARK);
        const rows = verdict.Results || [];
        const parts = [
            verdict.Chosen && cockpit.format(_("Chosen: $0, for $1, on $2."), verdict.Chosen, verdict.Profile, time(verdict.Timestamp)),
            verdict.Reason && `${verdict.Reason}.`,
            verdict.WaitedShare >= 0.1 &&
                cockpit.format(_("The measurement had to wait for its processor $0 % of the time, so throughput is left out."), Math.round(verdict.WaitedShare * 100)),
            verdict.Provisional && cockpit.format(_("It is provisional: $0."), verdict.Provisional),
        ];
        say(this.sentence, parts.filter(Boolean).join(" "));
        this.adopt.hidden = !verdict.Chosen;
        this.bars.hidden = this.table.element.hidden = !rows.length;
        const text = JSON.stringify(rows);
        if (text === this.#shown)
            return;
        this.#shown = text;
        this.bars.replaceChildren(bars(_("Bytes stored per byte of memory: more is better"), rows, row => row[1], ratio),
                                  bars(_("Time to read a page: less is better"), rows, row => row[2], microseconds));
        this.table.body.replaceChildren(...rows.map(([algorithm, stored, read, write, reads, writes, why]) => h("tr", { role: "row" },
            h("th", { role: "rowheader", scope: "row", "data-label": _("Algorithm") }, algorithm),
            cell(_("Ratio"), ratio(stored)), cell(_("Read a page"), microseconds(read)), cell(_("Write a page"), microseconds(write)),
            cell(_("Reads, all CPUs"), rate(reads)),
            cell(_("Writes, all CPUs"), rate(writes)), cell(_("Remark"), why || (algorithm === verdict.Chosen ? _("chosen") : "–")))));
    }
}
