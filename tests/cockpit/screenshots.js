// The pictures of packaging/docs/cockpit.md. Run by tests/cockpit/run --screenshots.

import path from "node:path";
import { Rig, closeBrowser, open } from "./rig.js";

const DOCS = path.resolve(import.meta.dirname, "../../packaging/docs");
const PLACE = "/run/zramd-cockpit";
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
    await page.getByRole("button", { name: /^Snapshots/ }).click();
    await page.locator("#snapshots-notes tbody tr").waitFor();
    rig.inside("swapoff", "/dev/zram0");
    await page.locator('[data-code="swap-off"]').waitFor();
    // Until the jobs are gone.
    await page.locator(".jobs li").first().waitFor({ state: "detached", timeout: 60000 });
    const shot = name => page.screenshot({ path: path.join(DOCS, `cockpit-${name}.png`), fullPage: true });
    await page.emulateMedia({ colorScheme: "light" });
    await shot("light");
    await page.emulateMedia({ colorScheme: "dark" });
    await shot("dark");
    await page.emulateMedia({ colorScheme: "light" });
    await page.getByRole("button", { name: "Change zram1" }).click();
    await page.locator('[name="zram-size"]').fill("64MiB");
    await page.getByRole("button", { name: "Preview" }).click();
    await page.locator(".plan li").waitFor();
    await page.screenshot({ path: path.join(DOCS, "cockpit-dialog.png") });
    await page.keyboard.press("Escape");
    await page.setViewportSize({ width: 420, height: 900 });
    await shot("narrow");
} finally {
    await closeBrowser();
    await rig.stop();
}
