// Wake-ups and processor time of the daemon with the page visible, hidden and closed, as a table for packaging/docs/cockpit.md. Run by tests/cockpit/run --wake-ups.

import fs from "node:fs";
import { Rig, closeBrowser, open } from "./rig.js";

const SECONDS = 20;
const RUNS = 2;

const rig = await Rig.start(`[zram5]
zram-size = "64MiB"
[zram6]
zram-size = "96MiB"
mount-point = "/run/zramd-cockpit/cache"
`);

function switches() {
    const status = fs.readFileSync(`/proc/${rig.daemon.pid}/status`, "utf8");
    return Number(status.match(/^voluntary_ctxt_switches:\s+(\d+)/m)[1]);
}

/** Milliseconds of processor time of all its threads, also of those that have ended; in steps of the clock of the kernel. */
function busy() {
    const fields = fs.readFileSync(`/proc/${rig.daemon.pid}/stat`, "utf8").split(") ")[1].split(" ");
    return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** Context switches, processor time and figures of all runs, by the state of the page. */
const found = new Map();

async function measure(name) {
    const figures = await rig.count("TotalsUpdated");
    const [before, busyBefore] = [switches(), busy()];
    await new Promise(resolve => setTimeout(resolve, SECONDS * 1000));
    const [after, busyAfter] = [switches(), busy()];
    const columns = found.get(name) || [[], [], []];
    columns[0].push(after - before);
    columns[1].push(busyAfter - busyBefore);
    columns[2].push(await figures.end());
    found.set(name, columns);
}

async function run() {
    // One without a log-in ends with its last page.
    const cockpit = await rig.cockpit();
    await measure("not open");
    const page = await open(cockpit);
    await page.locator("#devices tbody tr").first().waitFor();
    await measure("visible");
    // As Cockpit's shell does when another page is chosen.
    const left = await rig.called("Unsubscribe");
    await page.evaluate(() => {
        Object.defineProperty(document, "hidden", { value: true });
        document.dispatchEvent(new Event("visibilitychange"));
    });
    await left.found;
    await measure("hidden");
    await page.reload();
    await page.locator("#devices tbody tr").first().waitFor();
    await page.close();
    await measure("just closed");
    await measure("closed");
    await cockpit.stop();
}

/** All values, the least first. */
function summary(values) {
    return values.toSorted((a, b) => a - b).join(", ");
}

try {
    rig.zramdctl("reload");
    for (let number = 0; number < RUNS; number++)
        await run();
    console.log(`${RUNS} runs\n| page | context switches | processor time, ms | figures |\n|---|---:|---:|---:|`);
    for (const [name, columns] of found)
        console.log(`| ${name} | ${columns.map(summary).join(" | ")} |`);
} finally {
    await closeBrowser();
    await rig.stop();
}
