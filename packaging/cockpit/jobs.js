// What this page has asked the daemon to do: one line with the latest, and what has failed, until it is dismissed.

import { JOB } from "./bus.js";
import { h, put, say, sync, withCommands } from "./dom.js";
import { percent } from "./format.js";
import { icon } from "./icons.js";

const _ = cockpit.gettext;

/** What is done, by the type of a job; $0 is the device or RAM disk. */
const NAMES = {
    reload: _("Applying the configuration"), configure: _("Changing the configuration"), remove: _("Removing $0"), resize: _("Resizing $0"),
    activate: _("Switching $0 on"), deactivate: _("Switching $0 off"), unset: _("Undoing changes of $0"), benchmark: _("Measuring algorithms"),
    adopt: _("Adopting the chosen algorithm"), maintain: _("Maintaining"), save: _("Saving $0"), verify: _("Verifying $0"), restore: _("Restoring $0"),
    delete: _("Deleting a snapshot of $0"), pin: _("Pinning a snapshot of $0"), unpin: _("Unpinning a snapshot of $0"),
};
const RESULTS = { done: ["ok", _("done")], failed: ["error", _("failed")], cancelled: ["off", _("cancelled")], postponed: ["note", _("postponed")] };

function nameOf({ Type: type, Object: object }) {
    return NAMES[type] ? cockpit.format(NAMES[type], object) : [type, object].filter(Boolean).join(" ");
}

export class Jobs {
    /** What is known of each, by its number here: the daemon forgets jobs some time after their end. */
    #jobs = new Map();
    #count = 0;
    element = h("ul", { class: "jobs", "aria-label": _("Jobs") });
    said = h("div", { role: "status", class: "hidden" });

    constructor(daemon) {
        this.daemon = daemon;
    }

    /**
     * Follows a job by its object path to its end. Returns its properties. A dialog that shows a failure itself leaves it out here.
     */
    async follow(path, { failures = true } = {}) {
        const id = ++this.#count;
        this.#forget();
        this.#jobs.set(id, { path });
        try {
            const job = await this.daemon.ended(path);
            if (failures || job.Result !== "failed")
                this.#end(id, job);
            return job;
        } catch (error) {
            if (failures)
                this.#end(id, { ...this.daemon.get(path, JOB), Result: "failed", Message: error.message });
            throw error;
        } finally {
            if (!this.#jobs.get(id)?.Result || (!failures && this.#jobs.get(id).Result === "failed"))
                this.#jobs.delete(id);
            this.show();
        }
    }

    /** Shows something that was refused at once. */
    fail(message) {
        const id = ++this.#count;
        this.#jobs.set(id, {});
        this.#end(id, { Result: "failed", Message: message });
    }

    /** Forgets what has ended and has not failed: one line is enough for it. */
    #forget() {
        for (const [id, { Result: result }] of this.#jobs) {
            if (result && result !== "failed")
                this.#jobs.delete(id);
        }
    }

    #end(id, job) {
        this.#forget();
        this.#jobs.set(id, { ...this.#jobs.get(id), ...job });
        this.show();
        const [, words] = RESULTS[job.Result] || [];
        say(this.said, [nameOf(job), words || job.Result, job.Message].filter(Boolean).join(": "));
    }

    show() {
        for (const [id, job] of this.#jobs) {
            if (!job.Result)
                this.#jobs.set(id, { ...job, ...this.daemon.get(job.path, JOB) });
        }
        sync(this.element, [...this.#jobs], ([id]) => id, ([id]) => this.#line(id));
        this.element.hidden = !this.#jobs.size;
    }

    #line(id) {
        const mark = icon("note");
        const title = h("span");
        const progress = h("progress", { max: 1 });
        const message = h("span", { class: "message" });
        const cancel = h("button", { type: "button" }, _("Cancel"));
        const close = h("button", { type: "button", class: "plain", "aria-label": _("Dismiss"), title: _("Dismiss"), onclick: () => {
            this.#jobs.delete(id);
            this.show();
            document.getElementById("page").focus();
        } }, "✕");
        cancel.addEventListener("click", () => this.daemon.call(this.#jobs.get(id).path, JOB, "Cancel", "").catch(error => this.fail(error.message)));
        const item = h("li", null, mark, h("div", { class: "words" }, title, progress, message), cancel, close);
        item.update = ([, job]) => {
            const name = nameOf(job);
            const [kind, words] = RESULTS[job.Result] || ["note", job.Result];
            mark.show(kind);
            say(title, name);
            title.hidden = !name;
            put(progress, "aria-label", name);
            put(progress, "value", job.Progress || null);
            progress.hidden = cancel.hidden = Boolean(job.Result);
            close.hidden = !job.Result;
            const text = job.Result ? [words, job.Message].filter(Boolean).join(": ") : job.Progress ? percent(job.Progress) : _("running");
            if (message.dataset.text !== text) {
                message.dataset.text = text;
                message.replaceChildren(...withCommands(text));
            }
            put(item, "data-result", job.Result || null);
            put(item, "data-type", job.Type || null);
        };
        return item;
    }
}
