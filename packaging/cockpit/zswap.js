// zswap, while it takes pages or holds some.

import { facts, h, say } from "./dom.js";
import { bytes, number, ratio } from "./format.js";
import { meter } from "./meter.js";

const _ = cockpit.gettext;

/** Reasons of zswap for not storing a page. */
const REJECTIONS = {
    limit: count => cockpit.ngettext("$0 page found the pool full", "$0 pages found the pool full", count),
    "compress-poor": count => cockpit.ngettext("$0 page did not compress", "$0 pages did not compress", count),
    allocation: count => cockpit.ngettext("$0 page found no memory", "$0 pages found no memory", count),
};

export class Zswap {
    #text = h("p");
    #pool = meter(_("Memory that zswap takes, of what it may take"), _("Memory"));
    #facts = facts();

    constructor(daemon) {
        this.daemon = daemon;
        this.element = h("section", { "aria-labelledby": "zswap-title", class: "zswap" },
            h("h2", { id: "zswap-title" }, _("zswap")), this.#text, this.#pool.element, this.#facts.element);
    }

    show() {
        const { manager } = this.daemon;
        this.element.hidden = !manager.ZswapEnabled && !manager.ZswapOriginalDataBytes;
        if (this.element.hidden)
            return;
        say(this.#text, manager.ZswapEnabled
            ? manager.ZswapManaged ? _("Pages on their way to swap on a disk are compressed in memory first, as the configuration asks for.")
                : _("Pages on their way to swap are compressed in memory first. It was switched on by another program, or with the kernel.")
            : _("It is off, and still holds pages."));
        this.#pool.show(manager.ZswapMemoryUsedBytes, manager.ZswapMemoryLimitBytes);
        const rejected = Object.entries(manager.ZswapRejected || {}).filter(([, count]) => count)
                .map(([reason, count]) => cockpit.format(REJECTIONS[reason]?.(count) || `${reason}: $0`, number(count, 0)));
        this.#facts.show([
            [_("Algorithm"), manager.ZswapAlgorithm],
            [_("Stored"), bytes(manager.ZswapOriginalDataBytes)],
            [_("Saved"), bytes(manager.ZswapOriginalDataBytes > manager.ZswapMemoryUsedBytes ? manager.ZswapOriginalDataBytes - manager.ZswapMemoryUsedBytes : 0)],
            [_("Ratio"), ratio(manager.ZswapMemoryUsedBytes ? manager.ZswapOriginalDataBytes / manager.ZswapMemoryUsedBytes : 0)],
            [_("Taken in since boot"), bytes(manager.ZswapWrittenBytes)],
            [_("Read since boot"), bytes(manager.ZswapReadBytes)],
            [_("Written to the disk since boot"), bytes(manager.ZswapBackingWrittenBytes)],
            [_("Not stored"), rejected.join(", ")],
        ]);
    }
}
