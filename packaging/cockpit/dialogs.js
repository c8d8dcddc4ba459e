// Forms of changes. Each shows what the daemon plans before it does it.

import { MANAGER, ROOT } from "./bus.js";
import { h, put, say, withCommands } from "./dom.js";
import { allowed, mistake, tooMany } from "./schema.js";

const _ = cockpit.gettext;

let count = 0;

/**
 * A dialog with a form. `preview(values)` returns what would be done, `apply(values)` the promise of a job's properties or
 * nothing. Without `preview` it only asks.
 */
export function ask({ title, text, fields = [], preview, apply, button }) {
    const id = `dialog-${++count}`;
    const trigger = document.activeElement;
    const error = h("div", { role: "alert", class: "error" });
    const plan = h("div", { class: "plan", role: "status" });
    const look = preview && h("button", { type: "submit", class: "primary" }, _("Preview"));
    const go = h("button", { type: preview ? "button" : "submit", class: "primary", disabled: Boolean(preview) }, button);
    const cancel = h("button", { type: "button", onclick: () => dialog.close() }, _("Cancel"));
    const form = h("form", { method: "dialog", novalidate: true },
        h("h2", { id }, title),
        text && h("p", null, withCommands(text)),
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
                    h("b", null, `${action} ${object}`), detail && [": ", withCommands(detail)])))
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

/** A field for a key of the configuration, with the range of its schema. `before` is its value now. */
export function keyField(key, label, before, { schema, choices, placeholder }) {
    const list = choices && h("datalist", { id: `choices-${++count}` }, choices.map(choice => h("option", { value: choice })));
    const control = h("input", { type: "text", autocomplete: "off", value: before, list: list?.id, placeholder });
    const field = labelled(key, label, control, allowed(schema));
    if (list)
        field.element.append(list);
    field.before = before;
    field.check = () => field.complain(field.value() === before ? "" : mistake(schema, field.value()));
    return field;
}

/** A field for a key whose value is a list, with commas between its items. Those within parentheses belong to an item. */
export function listField(key, label, before, more) {
    const field = keyField(key, label, before, more);
    const text = field.value;
    field.items = () => text().split(/,(?![^(]*\))/).map(item => item.trim()).filter(Boolean);
    field.check = () => field.complain(tooMany(more.schema, field.items()));
    return field;
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
