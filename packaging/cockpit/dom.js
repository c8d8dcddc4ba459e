// Elements, and lists of elements that keep their identity (and so the focus) when what they show changes.

const _ = cockpit.gettext;
const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
        if (name.startsWith("on"))
            element.addEventListener(name.slice(2), value);
        else if (value === true)
            element.setAttribute(name, "");
        else if (value !== false && value !== null && value !== undefined)
            element.setAttribute(name, value);
    }
    element.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false));
    return element;
}

/** An HTML element with these attributes; `onNAME` is a listener. */
export function h(tag, attributes, ...children) {
    return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function s(tag, attributes, ...children) {
    return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Sets a text, without touching what shows it already. */
export function say(element, text) {
    if (element.textContent !== text)
        element.textContent = text;
}

/** Sets an attribute, or removes it if the value is null. */
export function put(element, name, value) {
    if (value === null)
        element.removeAttribute(name);
    else if (element.getAttribute(name) !== String(value))
        element.setAttribute(name, value);
}

/**
 * Makes the children of `parent` those of `items`, in their order. `make` returns the element of an item, which has a function
 * `update` that shows it; elements of the same key are kept.
 */
export function sync(parent, items, keyOf, make) {
    const known = parent.known || (parent.known = new Map());
    const wanted = new Set(items.map(keyOf));
    for (const [key, element] of known) {
        if (!wanted.has(key)) {
            element.remove();
            known.delete(key);
        }
    }
    items.forEach((item, index) => {
        const key = keyOf(item);
        let element = known.get(key);
        if (!element) {
            element = make(item);
            known.set(key, element);
        }
        if (parent.children[index] !== element)
            parent.insertBefore(element, parent.children[index] || null);
        element.update?.(item);
    });
}

/** A text in which `words in backticks` are commands. */
export function withCommands(text) {
    return text.split("`").map((part, index) => index % 2 ? h("code", null, part) : part);
}

/** A list of facts. `show` has it show names with their values; those without a value are left out. */
export function facts() {
    const element = h("dl", { class: "facts" });
    return {
        element,
        show(rows) {
            sync(element, rows.filter(([, value]) => value), ([name]) => name, ([name]) => {
                const value = h("dd");
                const row = h("div", null, h("dt", null, name), value);
                row.update = ([, text]) => say(value, text);
                return row;
            });
        },
    };
}

/** A button in the first cell of a row that shows the cells `more` of this row; only narrow screens have it. */
export function details(name) {
    const button = h("button", { type: "button", class: "details", "aria-expanded": "false", "aria-label": cockpit.format(_("Details of $0"), name) }, _("Details"));
    button.addEventListener("click", () => put(button, "aria-expanded", button.closest("tr").classList.toggle("open")));
    return button;
}

/** A table cell that is labelled on narrow screens, where each row is a block of its own. */
export function cell(label, ...children) {
    return h("td", { role: "cell", "data-label": label || null }, ...children);
}

/** A table with a caption for screen readers. */
export function table(id, caption, headings) {
    const head = headings.map(heading => h("th", { role: "columnheader", scope: "col" }, heading));
    const body = h("tbody", { role: "rowgroup" });
    const element = h("table", { role: "table", id },
        h("caption", { class: "hidden" }, caption),
        h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, head)), body);
    return { element, body };
}
