// Light or dark, as Cockpit's own pages choose: what the user has set in the shell, otherwise what the browser prefers.

const preferred = window.matchMedia("(prefers-color-scheme: dark)");

function choose(style) {
    const wanted = style || localStorage.getItem("shell:style") || "auto";
    const dark = wanted === "dark" || (wanted === "auto" && preferred.matches);
    document.documentElement.dataset.theme = dark ? "dark" : "light";
}

/** Follows the style of the shell. */
export function followTheme() {
    window.addEventListener("storage", event => event.key === "shell:style" && choose());
    // The shell sends this to its frames.
    window.addEventListener("cockpit-style", event => choose(event.detail?.style));
    preferred.addEventListener("change", () => choose());
    choose();
}
