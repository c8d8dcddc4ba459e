// The pictures of packaging/docs/cockpit.md. Run by tests/cockpit/run --screenshots [DIRECTORY]: all widths and styles go to DIRECTORY.

import path from "node:path";
import { Rig, closeBrowser, open } from "./rig.js";

const DOCS = path.resolve(import.meta.dirname, "../../packaging/docs");
const PLACE = "/run/zramd-cockpit";
const WIDTHS = [400, 800, 1400];
const [all] = process.argv.slice(2);
const rig = await Rig.start(`[zram0]
zram-size = "128MiB"
swap-priority = 100
[zram1]
zram-size = "192MiB"
mount-point = "${PLACE}/cache"
[ramdisk.notes]
mount-point = "${PLACE}/notes"
size = "64MiB"
persist = "snapshot"
`);

try {
    rig.zramdctl("reload");
    const cockpit = await rig.cockpit();
    const page = await open(cockpit);
    await page.locator("#devices tbody tr").first().waitFor();
    rig.zramdctl("set", "--runtime", "zram0", "swap-priority=90");
    rig.inside("sh", "-c", `cp /usr/share/doc/*/copyright ${PLACE}/notes/ 2>/dev/null; :`);
    await page.getByRole("button", { name: "Save notes" }).click();
    await page.getByRole("button", { name: "Measure now" }).click();
    for (let part = 1; part <= 8; part++) {
        rig.inside("sh", "-c", `cat /usr/bin/* 2>/dev/null | head -c ${part * 16}M | tail -c 16M >${PLACE}/cache/${part}; sync ${PLACE}/cache/${part}`);
        await page.waitForTimeout(6000);
    }
    rig.inside("swapoff", "/dev/zram0");
    await page.locator('[data-code="swap-off"]').waitFor();
    await page.locator('.jobs [data-result="done"]').waitFor({ timeout: 60000 });
    await page.getByRole("button", { name: "Dismiss" }).click();
    const shot = async (directory, name, width, colorScheme, more) => {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height: 900 });
        await page.evaluate(() => window.scrollTo(0, 0));
        // The charts follow the width.
        await page.waitForTimeout(300);
        await page.screenshot({ path: path.join(directory, `cockpit-${name}.png`), fullPage: true, ...more });
    };
    if (all) {
        for (const width of WIDTHS) {
            for (const style of ["light", "dark"])
                await shot(all, `${width}-${style}`, width, style);
        }
        await shot(all, "400-first", 400, "light", { fullPage: false });
        await page.getByRole("button", { name: "Details of notes" }).click();
        await page.locator("#snapshots-notes tbody tr").waitFor();
        await page.locator("summary").click();
        for (const width of WIDTHS)
            await shot(all, `${width}-open`, width, "light");
    } else {
        await shot(DOCS, "dark", 800, "dark");
        await shot(DOCS, "narrow", 400, "light");
        await page.getByRole("button", { name: "Details of notes" }).click();
        await page.locator("#snapshots-notes tbody tr").waitFor();
        await page.locator("summary").click();
        await shot(DOCS, "light", 1400, "light");
    }
    await page.setViewportSize({ width: 1000, height: 900 });
    await page.getByRole("button", { name: "Change zram1" }).click();
    await page.locator('[name="zram-size"]').fill("64MiB");
    await page.getByRole("button", { name: "Preview" }).click();
    await page.locator(".plan li").waitFor();
    await page.screenshot({ path: path.join(all || DOCS, "cockpit-dialog.png") });
    await page.keyboard.press("Escape");
    await rig.stopDaemon();
    await page.locator(".empty:visible").waitFor();
    await page.screenshot({ path: path.join(all || DOCS, "cockpit-off.png") });
} finally {
    await closeBrowser();
    await rig.stop();
}
