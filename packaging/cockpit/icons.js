// Icons for states. The words beside them say the same.

import { s } from "./dom.js";

/** What is drawn in a square of 16 by 16. */
const SHAPES = {
    ok: ["M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Z", "M4.6 8.2l2.3 2.3 4.5-4.8"],
    note: ["M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Z", "M8 7.2v4.3M8 4.4v.3"],
    warning: ["M8 1.5 15.2 14.5H.8Z", "M8 6v4M8 12.2v.3"],
    error: ["M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Z", "M8 4v5M8 11.4v.3"],
    off: ["M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Z", "M4.8 8h6.4"],
};

/** An icon of this kind; `show` makes it another one. */
export function icon(kind) {
    const element = s("svg", { class: "icon", viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" });
    element.show = wanted => {
        if (element.dataset.kind === wanted)
            return;
        element.dataset.kind = wanted;
        const [body, mark] = SHAPES[wanted];
        element.replaceChildren(s("path", { class: "body", d: body }), s("path", { class: "mark", d: mark }));
    };
    element.show(kind);
    return element;
}
