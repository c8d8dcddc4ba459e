// What is shown instead of the page where there is nothing to show: the daemon does not run, or nothing is configured. A button changes that.

import { BENCHMARK, MANAGER, ROOT } from "./bus.js";
import * as dialogs from "./dialogs.js";
import { h, withCommands } from "./dom.js";
import { icon } from "./icons.js";

const _ = cockpit.gettext;

/** The line of a proposal that asks for the verdict of the benchmark. */
const MEASURES = /^compression-algorithm = "auto"$/m;

/** Enables and starts the daemon. */
function enable() {
    return cockpit.spawn(["systemctl", "enable", "--now", "zramd.service"], { superuser: "require", err: "message" });
}

function empty(title, text, ...more) {
    return h("section", { class: "empty" }, icon("off"), h("h2", null, title), h("p", null, text), ...more);
}

/** The state without the daemon. */
export function absent(page) {
    const error = h("p", { class: "error", role: "alert" });
    const begin = page.button(_("Start zramd"), async () => {
        begin.disabled = true;
        error.replaceChildren();
        try {
            await enable();
        } catch (problem) {
            error.replaceChildren(...withCommands(problem.message || String(problem)));
        }
        page.allow();
    });
    begin.classList.add("primary");
    return empty(_("zramd does not run"),
                 _("Nothing is known about compressed memory without it. Devices that are set up keep working. The button also has it start at boot."), begin, error);
}

/** The state without a configuration. */
export function unconfigured(page) {
    const begin = page.button(_("Propose a configuration…"), () => propose(page));
    begin.classList.add("primary");
    return empty(_("Nothing is configured"), _("zramd looks at this machine, proposes a configuration, and says why. Nothing changes before you agree."), begin);
}

/** Shows what `zramdctl init` proposes and why; writes it, uses it and measures after a yes. */
function propose({ daemon, jobs }) {
    const reasons = h("ul", { class: "reasons" });
    const proposal = h("pre", { tabindex: 0, "aria-label": _("Configuration") });
    dialogs.ask({
        title: _("Configuration for this machine"),
        content: [reasons, h("details", { open: true }, h("summary", null, "/etc/zramd/zramd.toml"), proposal)],
        button: _("Use this"),
        ready: Promise.all([
            cockpit.spawn(["zramdctl", "init", "--dry-run", "--color", "never"], { superuser: "try", err: "message" }),
            cockpit.script("zramdctl init --dry-run --color never 2>&1 >/dev/null", [], { superuser: "try" }),
        ]).then(([toml, remarks]) => {
            proposal.textContent = toml;
            reasons.replaceChildren(...remarks.trim().split("\n").filter(Boolean).map(remark => h("li", null, withCommands(remark))));
        }),
        apply: async () => {
            await cockpit.spawn(["zramdctl", "init", "--yes"], { superuser: "require", err: "message" });
            await enable();
            const { path } = daemon.having(BENCHMARK)[0];
            const used = await jobs.follow(await daemon.call(ROOT, MANAGER, "Reload", "a{sv}", {}), { failures: false });
            if (used.Result === "done" && MEASURES.test(proposal.textContent))
                jobs.follow(await daemon.call(path, BENCHMARK, "Run", "a{sv}", {})).catch(() => {});
            return used;
        },
    });
}
