// Forms of changes. Each shows what the daemon plans before it does it.

import { MANAGER, ROOT } from "./bus.js";
import { h, put, say, withCommands } from "./dom.js";
import { bytes } from "./format.js";
import { mistake, tooMany } from "./schema.js";

const _ = cockpit.gettext;

/** What the actions of a plan are called. */
const ACTIONS = {
    create: _("create"), activate: _("activate"), adapt: _("adapt"), reactivate: _("reactivate"), recreate: _("recreate"),
    remove: _("remove"), refuse: _("refuse"),
};

/** The choice for a value that is not in a list, and the unit of one that is no number. */
const OTHER = "other";
const FORMULA = "formula";
const UNITS = ["KiB", "MiB", "GiB", "TiB"];

let count = 0;

/**
 * A dialog with a form. `preview(values)` returns what would be done, `apply(values)` the promise of a job's properties or
 * nothing. Without `preview` it only asks. `content` comes before the fields; nothing can be done before the promise `ready` is kept.
 * With `danger`, something is lost.
 */
export function ask({ title, text, content, fields = [], preview, apply, button, ready, danger }) {
    const id = `dialog-${++count}`;
    const trigger = document.activeElement;
    const error = h("div", { role: "alert", class: "error" });
    const plan = h("div", { class: "plan", role: "status" });
    const look = preview && h("button", { type: "submit", class: "primary" }, _("Preview"));
    const go = h("button", { type: preview ? "button" : "submit", class: danger ? "primary danger" : "primary", disabled: Boolean(preview || ready) }, button);
    const cancel = h("button", { type: "button", onclick: () => dialog.close() }, _("Cancel"));
    const form = h("form", { method: "dialog", novalidate: true },
        h("h2", { id }, title),
        text && h("p", null, withCommands(text)),
        content,
        fields.map(field => field.element),
        plan, error,
        h("div", { class: "buttons" }, look, go, cancel));
    const dialog = h("dialog", { "aria-labelledby": id }, form);

    const values = () => Object.fromEntries(fields.map(field => [field.name, field.value()]));
    const busy = is => {
        for (const control of [look, go, ...form.querySelectorAll("input, select")])
            control && (control.disabled = is);
        put(form, "aria-busy", is ? "true" : null);
    };
    const failed = problem => {
        error.replaceChildren(...withCommands(problem.message || String(problem)));
        error.hidden = false;
    };
    const valid = () => {
        const wrong = fields.filter(field => !field.check());
        wrong[0]?.focus();
        return !wrong.length;
    };
    const forget = () => {
        if (preview) {
            plan.replaceChildren();
            go.disabled = true;
        }
        error.replaceChildren();
    };
    form.addEventListener("input", forget);

    async function showPlan() {
        busy(true);
        error.replaceChildren();
        try {
            const changes = await preview(values());
            busy(false);
            const refused = changes.some(([action]) => action === "refuse");
            go.disabled = refused;
            plan.replaceChildren(h("h3", null, _("What this will do")), changes.length
                ? h("ul", null, changes.map(([action, object, detail]) => h("li", { "data-action": action },
                    h("b", null, `${ACTIONS[action] || action} ${object}`), detail && [": ", withCommands(detail)])))
                : h("p", null, _("Nothing changes on the running machine.")));
            (refused ? look : go).focus();
        } catch (problem) {
            busy(false);
            go.disabled = true;
            plan.replaceChildren();
            failed(problem);
            look.focus();
        }
    }

    async function carryOut() {
        busy(true);
        error.replaceChildren();
        try {
            const job = await apply(values());
            if (job && job.Result !== "done")
                throw new Error(job.Message || job.Result);
            dialog.close();
        } catch (problem) {
            busy(false);
            go.disabled = Boolean(preview);
            plan.replaceChildren();
            failed(problem);
            (look || go).focus();
        }
    }

    form.addEventListener("submit", event => {
        event.preventDefault();
        if (!valid())
            return;
        if (preview)
            showPlan();
        else
            carryOut();
    });
    if (preview)
        go.addEventListener("click", carryOut);
    dialog.addEventListener("close", () => {
        dialog.remove();
        // Where the row is gone, the page itself.
        (trigger?.isConnected ? trigger : document.getElementById("page")).focus();
    });
    document.body.append(dialog);
    dialog.showModal();
    if (ready) {
        put(form, "aria-busy", "true");
        ready.then(() => {
            go.disabled = false;
        }, failed).finally(() => put(form, "aria-busy", null));
    }
    return dialog;
}

function labelled(name, label, control, hint) {
    const id = `field-${++count}`;
    const help = h("p", { class: "hint", id: `${id}-hint` }, hint || "");
    const wrong = h("p", { class: "error", id: `${id}-error` });
    put(control, "id", id);
    put(control, "name", name);
    put(control, "aria-describedby", `${id}-hint ${id}-error`);
    const element = h("div", { class: "field" }, h("label", { for: id }, label), control, help, wrong);
    return {
        name, element, control,
        focus: () => control.focus(),
        value: () => control.value.trim(),
        complain(text) {
            say(wrong, text);
            put(control, "aria-invalid", text ? "true" : null);
            return !text;
        },
        check: () => true,
    };
}

/** What each key is about. */
const HINTS = {
    "zram-size": _("How much can be stored. Memory is taken only for what is stored, and less of it."),
    "compression-algorithm": _("The one that is chosen by measuring is best for most machines."),
    "recompression-algorithm": _("What has not been used for long is compressed again with these: up to three, with commas between them."),
    "zram-resident-limit": _("Most memory that it may take, whatever is stored."),
    "swap-priority": _("Of two swap devices, the one with the higher number is used first."),
    "mount-point": _("Where its file system is mounted. Without one, it is swap."),
    size: _("How much fits. Memory is taken only for what is in it."),
    inodes: _("How many files and directories fit."),
};

/** What a value comes to on this machine, and where it is from, if the daemon tells. */
function outcome(setting) {
    if (!setting)
        return "";
    const [, , , { t: type, v: value }, origin, file, line] = setting;
    const parts = [
        type === "t" ? cockpit.format(_("That is $0 here."), bytes(value)) : "",
        { default: _("It is the default."), file: cockpit.format(_("It is in $0, line $1."), file, line), override: _("It holds until the next boot.") }[origin],
    ];
    return parts.filter(Boolean).join(" ");
}

/** Makes a field one for a key of the configuration. `before` is its value now, and `setting` what the daemon tells about that. */
function forKey(field, before, { schema, setting }) {
    field.before = before;
    field.check = () => field.complain(field.value() === before ? "" : mistake(schema, field.value()));
    const known = outcome(setting);
    const result = h("p", { class: "hint outcome" }, known);
    field.element.append(result);
    field.element.addEventListener("input", () => say(result, field.value() === before ? known : ""));
    return field;
}

/** A field for a key of the configuration with a text or a number. */
export function keyField(key, label, before, more = {}) {
    const control = h("input", { type: "text", autocomplete: "off", value: before, placeholder: more.placeholder });
    return forKey(labelled(key, label, control, HINTS[key]), before, more);
}

/** A field for a key whose value is a list, with commas between its items. Those within parentheses belong to an item. */
export function listField(key, label, before, more) {
    return ofItems(keyField(key, label, before, more), more.schema);
}

/** Makes a field one whose text is a list. */
function ofItems(field, schema) {
    const text = field.value;
    field.items = () => text().split(/,(?![^(]*\))/).map(item => item.trim()).filter(Boolean);
    field.check = () => field.complain(tooMany(schema, field.items()));
    return field;
}

/** A field with a list of values to choose from, and a text for all others. */
export function pickField(key, label, before, more) {
    const { choices } = more;
    const isListed = choices.some(([value]) => value === before);
    const control = h("select", null, choices.map(([value, text]) => h("option", { value }, text)), h("option", { value: OTHER }, _("Something else…")));
    const other = h("input", { type: "text", autocomplete: "off", value: isListed ? "" : before, "data-for": key,
                               "aria-label": cockpit.format(_("$0: something else"), label) });
    control.value = isListed ? before : OTHER;
    const field = labelled(key, label, control, HINTS[key]);
    control.after(other);
    const show = () => {
        other.hidden = control.value !== OTHER;
    };
    control.addEventListener("input", show);
    show();
    field.value = () => (control.value === OTHER ? other.value.trim() : control.value);
    return ofItems(forKey(field, before, more), more.schema);
}

/** A field for bytes: a number and its unit, or a formula; and "none", where that is allowed. */
export function sizeField(key, label, before, more = {}) {
    const [, amount, unit] = /^([\d.]+) ?([KMGT]iB)$/.exec(before) || [];
    const isNone = more.none && before === "none";
    const control = h("input", { type: "text", autocomplete: "off", value: isNone ? "" : amount ?? before, placeholder: more.placeholder });
    const units = h("select", { "data-for": key, "aria-label": cockpit.format(_("$0: unit"), label) },
                    UNITS.map(name => h("option", { value: name }, name)), h("option", { value: FORMULA }, _("Formula")),
                    more.none && h("option", { value: "none" }, _("none")));
    units.value = isNone ? "none" : amount !== undefined ? unit : before ? FORMULA : "MiB";
    const field = labelled(key, label, control, HINTS[key]);
    const pair = h("div", { class: "pair" });
    control.replaceWith(pair);
    pair.append(control, units);
    const show = () => {
        control.hidden = units.value === "none";
    };
    units.addEventListener("input", show);
    // A formula, or a number with its unit, stands for itself.
    control.addEventListener("input", () => {
        if (/[^\d.]/.test(control.value.trim()))
            units.value = FORMULA;
    });
    show();
    field.value = () => {
        const text = control.value.trim();
        return units.value === "none" ? "none" : text && units.value !== FORMULA ? `${text}${units.value}` : text;
    };
    /** Fills it with another value, unless something was typed. */
    field.suggest = text => {
        if (control.value)
            return;
        control.value = text;
        units.value = FORMULA;
    };
    return forKey(field, before, more);
}

/** A field for another text. */
export function textField(name, label, hint) {
    return labelled(name, label, h("input", { type: "text", autocomplete: "off" }), hint);
}

/** One of several values. */
export function choiceField(name, label, choices, hint) {
    return labelled(name, label, h("select", null, choices.map(([value, text]) => h("option", { value }, text))), hint);
}

/** Yes or no. */
export function switchField(name, label, hint) {
    const field = labelled(name, label, h("input", { type: "checkbox" }), hint);
    field.element.classList.add("switch");
    field.value = () => field.control.checked;
    return field;
}

/** The value of a field as it goes over the bus: a list of several items, a number where it is one, otherwise a text. */
export function variantOf(field) {
    const text = field.value();
    const items = field.items?.() || [];
    if (items.length > 1)
        return cockpit.variant("as", items);
    return /^-?\d+$/.test(text) ? cockpit.variant("i", Number(text)) : cockpit.variant("s", text);
}

/** The plan for changes of sections. */
export function planOf(daemon, sections, options) {
    return daemon.call(ROOT, MANAGER, "PlanConfigure", "a{sa{sv}}a{sv}", sections, options);
}
