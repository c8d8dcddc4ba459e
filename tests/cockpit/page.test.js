// The page in a real Cockpit and a real browser, with a real zramd on the running kernel. Run by tests/cockpit/run.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import axe from "axe-core";
import { UNPRIVILEGED, PATIENCE, REPOSITORY, Rig, closeBrowser, open, window } from "./rig.js";

const MIB = 1 << 20;
const PLACE = "/run/zramd-cockpit";
const ZSWAP = "/sys/module/zswap/parameters";
const CONFIG = `
[zram5]
zram-size = "64MiB"
swap-priority = 5
[zram6]
zram-size = "96MiB"
compression-algorithm = "lz4"
mount-point = "${PLACE}/cache"
[ramdisk.notes]
mount-point = "${PLACE}/notes"
size = "16MiB"
persist = "snapshot"
`;

/** Repeats until a check passes; fails with its error after a time limit that is much longer than necessary. */
async function eventually(check) {
    const end = Date.now() + PATIENCE;
    for (;;) {
        try {
            return await check();
        } catch (error) {
            if (Date.now() > end)
                throw error;
            await new Promise(resolve => setTimeout(resolve, 50));
        }
    }
}

const text = locator => locator.innerText();
const row = (page, name) => page.locator("#devices tbody tr", { hasText: name });
const attribute = (device, name) => fs.readFileSync(`/sys/block/${device}/${name}`, "utf8").trim();
const exists = device => fs.existsSync(`/sys/block/${device}`);

/** Fills a dialog and presses Preview. Returns the dialog. */
async function preview(page, values) {
    const dialog = page.getByRole("dialog");
    await fill(dialog, values);
    await dialog.getByRole("button", { name: "Preview" }).click();
    return dialog;
}

async function fill(dialog, values) {
    for (const [name, value] of Object.entries(values)) {
        const control = dialog.locator(`[name="${name}"]`);
        // The unit of a size, or the text for what is not in a list.
        const beside = dialog.locator(`[data-for="${name}"]`);
        const isSelect = await control.evaluate(found => found.tagName) === "SELECT";
        if (typeof value === "boolean") {
            await control.setChecked(value);
        } else if (isSelect && await control.locator(`option[value="${value}"]`).count()) {
            await control.selectOption(value);
        } else if (isSelect) {
            await control.selectOption("other");
            await beside.fill(value);
        } else {
            const [, amount, unit] = /^(\d+)?([KMG]iB|none)$/.exec(value) || [];
            if (unit && await beside.count())
                await beside.selectOption(unit);
            if (unit !== "none")
                await control.fill(unit && await beside.count() ? amount : value);
        }
    }
}

/** The kind of remedy of each problem, as the page knows it. */
function remedies(page) {
    return page.evaluate(async () => (await import("./remedies.js")).REMEDIES);
}

async function press(dialog, name) {
    await dialog.getByRole("button", { name, exact: true }).click();
    await dialog.waitFor({ state: "detached" });
}

async function accessible(page, where) {
    await page.evaluate(axe.source);
    const { violations } = await page.evaluate(() => window.axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
    const found = violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(node => node.html).join(" ")}`);
    assert.deepEqual(found, [], where);
}

describe("the page", () => {
    let rig, cockpit, page;

    before(async () => {
        rig = await Rig.start(CONFIG);
        rig.zramdctl("reload");
        cockpit = await rig.cockpit();
        page = await open(cockpit);
        await row(page, "zram5").waitFor();
    });

    after(async () => {
        await closeBrowser();
        await rig?.stop();
    });

    /** With more configuration for a while. */
    async function configured(more, run) {
        rig.write(CONFIG + more);
        rig.zramdctl("reload");
        try {
            await run();
        } finally {
            rig.write(CONFIG);
            rig.zramdctl("reload", "--force");
        }
    }

    afterEach(async () => {
        // A failed test leaves nothing in the way of the next.
        await page?.evaluate(() => document.querySelector("dialog")?.close());
    });

    test("looks", async () => {
        // Programs compress; the page says what that has saved.
        rig.inside("sh", "-c", `cat /usr/bin/* 2>/dev/null | head -c 30M >${PLACE}/cache/programs; sync ${PLACE}/cache/programs`);
        await eventually(async () => {
            const [stored, , used] = attribute("zram6", "mm_stat").split(/\s+/).map(Number);
            assert.ok(stored > 20 * MIB);
            const cells = await row(page, "zram6").locator("th .name, td").allInnerTexts();
            const [name, use, full, inside, memory, , , algorithm] = cells;
            assert.deepEqual([name, use, algorithm], ["zram6", `${PLACE}/cache, mounted`, "lz4"]);
            assert.deepEqual([inside, memory], [stored, used].map(bytes => `${(bytes / MIB).toFixed(1)} MiB`));
            // The bar is as long as the words say.
            const [taken, size] = rig.inside("df", "-B1", "--output=used,size", `${PLACE}/cache`).split("\n")[1].trim().split(/\s+/).map(Number);
            assert.equal(full, `${(taken / MIB).toFixed(1)} MiB of ${(size / MIB).toFixed(1)} MiB`);
            const bar = row(page, "zram6").getByRole("meter");
            assert.equal(await bar.getAttribute("aria-valuenow"), String(Math.round(taken / size * 100)));
            const [part, whole] = await bar.evaluate(found => [found.firstChild.offsetWidth, found.offsetWidth]);
            assert.ok(Math.abs(part / whole - taken / size) < 0.02);
        });
        // Memory and swap, as the kernel counts them.
        const meminfo = name => Number(fs.readFileSync("/proc/meminfo", "utf8").match(new RegExp(`^${name}: +(\\d+)`, "m"))[1]) / 1024;
        const [total, available] = [meminfo("MemTotal"), meminfo("MemAvailable")];
        const overview = page.locator(".overview");
        assert.match(await text(overview), /^Memory is fine\./);
        await eventually(async () => {
            const shown = Number(await overview.getByRole("meter", { name: "Memory in use" }).getAttribute("aria-valuenow"));
            assert.ok(Math.abs(shown - (total - available) / total * 100) < 10, `${shown}`);
        });
        assert.match(await overview.getByRole("meter", { name: "Swap in use" }).getAttribute("aria-valuetext"), /^[\d.]+ [KMG]?i?B of [\d.]+ [MG]iB \(\d+ %\)$/);
        const gain = page.locator(".gain");
        await eventually(async () => assert.match(await text(gain), /^([\d.]+ [KM]iB of programs and )?[\d.]+ MiB of files are in [\d.]+ MiB of memory, which saves [\d.]+ MiB\.$/));
        // The same sentence as that of zramdctl.
        await eventually(async () => assert.equal(await text(gain), rig.zramdctl("status").split("\n")[0]));
        for (const [name, line] of [["Memory", "memory"], ["Compressed", "stored"], ["Compressed", "used"], ["Swap traffic", "came"],
            ["Swap traffic", "out"], ["Waiting for memory", "waited"]]) {
            const chart = page.getByRole("img", { name: new RegExp(`^${name}, over \\d+ minutes`) });
            await eventually(async () => assert.match(await chart.locator(`path.${line}`).getAttribute("d"), /^M[\d.]+ [\d.]+/));
        }
        // There is no Performance Co-Pilot here.
        await page.getByText("Cockpit has no history of this machine").waitFor();
        assert.match(await text(page.locator("main")), /Memory pressure: none/);
        assert.match(await text(page.locator("#ramdisks tbody tr").first()), /notes.*contents are saved.*16\.0 MiB/s);
        assert.deepEqual(page.problems, []);
    });

    test("shows problems with their remedy, which a click applies", async () => {
        rig.inside("swapoff", "/dev/zram5");
        const problem = page.locator('[data-code="swap-off"]');
        await problem.waitFor();
        assert.equal((await text(problem)).trim(), "Warning zram5 is set up as swap but not switched on\nSwitch on");
        assert.match(await text(page.locator(".overview")), /1 problem needs attention\./);
        await eventually(async () => assert.match(await text(row(page, "zram5")), /swap, off/));
        await problem.getByRole("button", { name: "Switch on" }).click();
        await problem.waitFor({ state: "detached" });
        await eventually(async () => assert.match(await text(row(page, "zram5")), /swap, priority 5, active/));
        assert.match(fs.readFileSync("/proc/swaps", "utf8"), /^\/dev\/zram5/m);
    });

    test("changes a size until the next boot, and takes it back", async () => {
        await page.getByRole("button", { name: "Change zram5" }).click();
        const dialog = await preview(page, { "zram-size": "80MiB", duration: "boot" });
        const plan = dialog.locator(".plan li");
        await plan.waitFor();
        assert.match(await text(plan), /^recreate zram5: /);
        assert.equal(attribute("zram5", "disksize"), String(64 * MIB), "a preview changes nothing");
        await press(dialog, "Apply");
        assert.equal(attribute("zram5", "disksize"), String(80 * MIB));
        await eventually(async () => assert.match(await text(row(page, "zram5")), /80\.0 MiB/));

        const override = page.locator(".overrides li", { hasText: "zram5" });
        assert.match(await text(override), /zram-size = "80MiB" instead of "64MiB"/);
        await override.getByRole("button").click();
        await override.waitFor({ state: "detached" });
        assert.equal(attribute("zram5", "disksize"), String(64 * MIB));
    });

    test("changes the configuration", async () => {
        await page.getByRole("button", { name: "Change zram5" }).click();
        const dialog = await preview(page, { "swap-priority": "7", duration: "always" });
        await dialog.locator(".plan li").waitFor();
        await press(dialog, "Apply");
        assert.match(rig.dropIn(), /\[zram5\]\nswap-priority = 7\n/);
        await eventually(async () => assert.match(await text(row(page, "zram5")), /swap, priority 7/));
    });

    test("says what is allowed, and why a change is refused", async () => {
        await page.getByRole("button", { name: "Change zram5" }).click();
        let dialog = await preview(page, { "swap-priority": "40000" });
        const field = page.locator('[name="swap-priority"]');
        assert.equal(await field.getAttribute("aria-invalid"), "true");
        assert.equal(await text(dialog.locator(".field", { has: field }).locator(".error")), "Allowed: -1 to 32767");
        assert.equal(await dialog.locator(".plan li").count(), 0);

        // What only the daemon can tell, in its words.
        await preview(page, { "swap-priority": "7", "zram-size": "ram *", duration: "boot" });
        const refusal = dialog.getByRole("alert");
        await eventually(async () => assert.notEqual(await text(refusal), ""));
        let said;
        try {
            said = rig.zramdctl("set", "--runtime", "zram5", "zram-size=ram *");
        } catch (error) {
            said = error.stderr;
        }
        assert.ok(said.includes((await text(refusal)).split("\n")[0]), `${said}: ${await text(refusal)}`);
        assert.ok(await dialog.getByRole("button", { name: "Apply" }).isDisabled());
        await page.keyboard.press("Escape");
        await dialog.waitFor({ state: "detached" });

        // The contents of a file system would be lost.
        await page.getByRole("button", { name: "Change zram6" }).click();
        dialog = await preview(page, { "zram-size": "32MiB", duration: "boot" });
        const plan = dialog.locator('.plan li[data-action="refuse"]');
        await plan.waitFor();
        assert.match(await text(plan), /^refuse zram6: .*lose its contents/);
        assert.ok(await dialog.getByRole("button", { name: "Apply" }).isDisabled());
        await press(dialog, "Cancel");
        assert.equal(attribute("zram6", "disksize"), String(96 * MIB));
    });

    test("changes algorithms, with parameters and for recompression", async () => {
        await page.getByRole("button", { name: "Change zram5" }).click();
        let dialog = await preview(page, { "recompression-algorithm": "zstd, lz4hc, deflate, 842" });
        const field = dialog.locator(".field", { has: page.locator('[name="recompression-algorithm"]') });
        assert.equal(await text(field.locator(".error")), "Allowed: at most 3");
        assert.equal(await dialog.locator(".plan li").count(), 0);
        await preview(page, { "compression-algorithm": "lz4(level=2)", "zram-resident-limit": "48MiB", "recompression-algorithm": "", duration: "boot" });
        await dialog.locator(".plan li").waitFor();
        await press(dialog, "Apply");
        await eventually(async () => assert.match(await text(row(page, "zram5")), /of 48\.0 MiB/));
        const override = page.locator(".overrides li", { hasText: "zram5" });
        assert.match(await text(override), /compression-algorithm = "lz4\(level=2\)"/);

        // The form has what the device has now.
        await page.getByRole("button", { name: "Change zram5" }).click();
        dialog = page.getByRole("dialog");
        assert.equal(await dialog.locator('[name="compression-algorithm"]').inputValue(), "other");
        assert.equal(await dialog.locator('[data-for="compression-algorithm"]').inputValue(), "lz4(level=2)");
        assert.equal(await dialog.locator('[name="zram-resident-limit"]').inputValue(), "48");
        assert.equal(await dialog.locator('[data-for="zram-resident-limit"]').inputValue(), "MiB");
        await press(dialog, "Cancel");
        await override.getByRole("button").click();
        await override.waitFor({ state: "detached" });

        // Kernels that cannot recompress say so among the problems; the configuration is the same.
        await page.getByRole("button", { name: "Change zram5" }).click();
        await preview(page, { "recompression-algorithm": "zstd(level=3), lz4hc", duration: "always" });
        await press(dialog, "Apply");
        assert.match(rig.dropIn(), /\nrecompression-algorithm = \["zstd\(level=3\)", "lz4hc"\]\n/);
        rig.zramdctl("unset", "zram5", "recompression-algorithm");
    });

    test("has only fields that the daemon accepts, with algorithms of the kernel to choose from", async () => {
        const schema = JSON.parse(fs.readFileSync(path.join(REPOSITORY, "config/zramd.schema.json"), "utf8"));
        const keys = Object.entries(schema.patternProperties).find(([pattern]) => pattern.startsWith("^zram"))[1].properties;
        await page.getByRole("button", { name: "Change zram5" }).click();
        const dialog = page.getByRole("dialog");
        await dialog.locator("[name=zram-size]").waitFor();
        const controls = await dialog.locator("input[type=text][name], select[name]:not([name=duration])").all();
        assert.ok(controls.length >= 5);
        for (const control of controls) {
            const name = await control.getAttribute("name");
            assert.ok(name in keys, name);
            assert.notEqual(await text(dialog.locator(".field", { has: page.locator(`[name="${name}"]`) }).locator(".hint").first()), "", name);
            // An empty text removes a key: what may be changed is refused as missing only.
            let said = "";
            try {
                rig.zramdctl("unset", "zram5", name);
            } catch (error) {
                said = error.stderr;
            }
            assert.doesNotMatch(said, /cannot be changed here/, name);
        }
        const offered = await dialog.locator('[name="compression-algorithm"] option').evaluateAll(options => options.map(option => option.value));
        assert.deepEqual(offered, ["", "auto", ...attribute("zram5", "comp_algorithm").replace(/[[\]]/g, "").split(" "), "other"]);
        await press(dialog, "Cancel");
    });

    test("keeps formulas, and says what they come to", async () => {
        await configured(`[zram7]\nzram-size = "min(ram / 400, 48MiB)"\nswap-priority = 2\n`, async () => {
            await row(page, "zram7").waitFor();
            await page.getByRole("button", { name: "Change zram7" }).click();
            let dialog = page.getByRole("dialog");
            const size = dialog.locator('[name="zram-size"]');
            assert.equal(await size.inputValue(), "min(ram / 400, 48MiB)");
            const shown = (Number(attribute("zram7", "disksize")) / MIB).toFixed(1);
            const outcome = key => dialog.locator(".field", { has: page.locator(`[name="${key}"]`) }).locator(".outcome");
            assert.equal(await text(outcome("zram-size")), `That is ${shown} MiB here. It is in /etc/zramd/zramd.toml, line ${CONFIG.split("\n").length + 1}.`);
            // What has been changed is no longer that of the file.
            await size.fill("ram / 300");
            assert.equal(await text(outcome("zram-size")), "");
            await size.fill("min(ram / 400, 48MiB)");
            dialog = await preview(page, { "swap-priority": "4", duration: "always" });
            await dialog.locator(".plan li").waitFor();
            await press(dialog, "Apply");
            assert.match(rig.dropIn(), /\[zram7\]\nswap-priority = 4\n/);
            assert.doesNotMatch(rig.dropIn(), /\[zram7\][^[]*zram-size/);
            rig.zramdctl("unset", "zram7", "swap-priority");
        });
    });

    test("shows zswap while it is on", { skip: !fs.existsSync(ZSWAP) && "needs a kernel with zswap" }, async () => {
        const section = page.locator(".zswap");
        const before = fs.readFileSync(`${ZSWAP}/enabled`, "utf8").trim();
        const compressor = fs.readFileSync(`${ZSWAP}/compressor`, "utf8").trim();
        const percent = Number(fs.readFileSync(`${ZSWAP}/max_pool_percent`, "utf8"));
        fs.writeFileSync(`${ZSWAP}/enabled`, "Y");
        try {
            await eventually(async () => {
                const shown = await text(section);
                assert.match(shown, /It was switched on by another program, or with the kernel\./);
                assert.match(shown, new RegExp(`Algorithm\\s+${compressor}`));
            });
            const total = Number(fs.readFileSync("/proc/meminfo", "utf8").match(/^MemTotal: +(\d+)/m)[1]) * 1024;
            const limit = await section.getByRole("meter").getAttribute("aria-valuetext");
            assert.match(limit, new RegExp(`of ${(total * percent / 100 / 1024 ** 3).toFixed(1)} GiB`));
        } finally {
            fs.writeFileSync(`${ZSWAP}/enabled`, before);
        }
        // It may have taken pages.
        if (before === "N")
            await eventually(async () => assert.ok(await section.isHidden() || /It is off, and still holds pages\./.test(await text(section))));
    });

    test("follows file systems on zram, and changes a RAM disk there", async () => {
        await configured(`[ramdisk.held]\nmount-point = "${PLACE}/held"\nsize = "24MiB"\nbackend = "zram"\nfs-type = "ext4"\n`, async () => {
            const disk = page.locator("#ramdisks tbody tr", { hasText: "held" });
            await disk.waitFor();
            for (const [place, shown] of [["held", disk], ["cache", row(page, "zram6")]]) {
                rig.inside("sh", "-c", `head -c 7M /dev/urandom >${PLACE}/${place}/new`);
                await eventually(async () => {
                    const [size, used] = rig.inside("df", "-B1", "--output=size,used", `${PLACE}/${place}`).split("\n")[1].trim().split(" ").map(Number);
                    const found = await text(shown);
                    for (const bytes of [used, size])
                        assert.ok(found.includes(`${(bytes / MIB).toFixed(1)} MiB`), `${found}: ${bytes}`);
                });
                rig.inside("rm", `${PLACE}/${place}/new`);
            }
            await page.locator("#ramdisks").getByRole("button", { name: "Change held" }).click();
            const dialog = await preview(page, { "compression-algorithm": "lzo", duration: "always" });
            // Its device is in use.
            await dialog.getByText("Nothing changes on the running machine.").waitFor();
            await press(dialog, "Apply");
            assert.match(rig.dropIn(), /\[ramdisk\.held\]\ncompression-algorithm = "lzo"\n/);
            rig.zramdctl("unset", "ramdisk.held", "compression-algorithm");
        });
    });

    test("has a remedy of a known kind for each problem", async () => {
        const schema = JSON.parse(fs.readFileSync(path.join(REPOSITORY, "config/zramdctl.schema.json"), "utf8"));
        const codes = schema.definitions.FindingCode.oneOf.map(code => code.const);
        assert.deepEqual(Object.keys(await remedies(page)).sort(), codes.sort());
    });

    test("creates a device and removes it", async () => {
        await page.getByRole("button", { name: "Create device…" }).click();
        // The size is that of `zramdctl init`.
        const [, size] = rig.zramdctl("init", "--dry-run").match(/^zram-size = "(.*)"$/m);
        const field = page.locator('[name="zram-size"]');
        await eventually(async () => assert.equal(await field.inputValue(), size));
        let dialog = await preview(page, { "zram-size": "16MiB", "swap-priority": "3" });
        const plan = dialog.locator(".plan li");
        await plan.waitFor();
        const name = (await text(plan)).match(/^create (zram\d+): /)[1];
        await press(dialog, "Create");
        await eventually(async () => assert.match(await text(row(page, name)), /swap, priority 3, active\s+.* of 16\.0 MiB/));
        assert.equal(attribute(name, "disksize"), String(16 * MIB));

        await page.getByRole("button", { name: `Remove ${name}` }).click();
        dialog = await preview(page, {});
        await plan.waitFor();
        assert.match(await text(plan), new RegExp(`^remove ${name}`));
        await press(dialog, "Remove");
        await row(page, name).waitFor({ state: "detached" });
        assert.ok(!exists(name) || attribute(name, "disksize") === "0");
    });

    test("saves a RAM disk, and handles its snapshots", async () => {
        rig.inside("sh", "-c", `echo kept >${PLACE}/notes/file`);
        await page.getByRole("button", { name: "Save notes" }).click();
        const job = page.locator(".jobs li");
        await eventually(async () => assert.match(await text(job), /^Saving notes\s+done: notes: snapshot 1/));
        await job.getByRole("button", { name: "Dismiss" }).click();
        await job.waitFor({ state: "detached" });
        await page.getByRole("button", { name: "Details of notes" }).click();
        const fact = name => page.locator("#ramdisks dl > div", { hasText: name }).locator("dd");
        await eventually(async () => assert.match(await text(fact("Snapshots")), /^1 snapshot, in [\d.]+ KiB$/));
        assert.match(await text(fact("Written in the day")), /^[\d.]+ KiB$/);
        assert.equal(await text(fact("Result of the last save")), "done");
        const snapshot = page.locator("#snapshots-notes tbody tr");
        await snapshot.waitFor();
        assert.match(await text(snapshot), /good/);

        await snapshot.getByRole("button", { name: /^Pin/ }).click();
        await eventually(async () => assert.match(await text(snapshot), /good, pinned/));
        await snapshot.getByRole("button", { name: /^Unpin/ }).click();
        await eventually(async () => assert.doesNotMatch(await text(snapshot), /pinned/));

        // The only good one is not deleted.
        await snapshot.getByRole("button", { name: /^Delete/ }).click();
        const dialog = page.getByRole("dialog");
        await dialog.getByRole("button", { name: "Delete" }).click();
        await eventually(async () => assert.match(await text(dialog.getByRole("alert")), /only/));
        await press(dialog, "Cancel");

        rig.inside("sh", "-c", `echo changed >${PLACE}/notes/file`);
        await snapshot.getByRole("button", { name: /^Restore/ }).click();
        await press(page.getByRole("dialog"), "Restore");
        assert.equal(rig.inside("cat", `${PLACE}/notes/file`), "kept\n");
    });

    test("applies remedies of each kind", async t => {
        const kinds = await remedies(page);
        const tested = new Set(["text"]);
        // Makes a problem, follows its remedy, and waits until the problem is gone.
        const remedy = (code, button, make, follow) => t.test(code, async () => {
            await make();
            const problem = page.locator(`[data-code="${code}"]`);
            await problem.waitFor({ timeout: PATIENCE });
            await problem.getByRole("button", { name: button }).click();
            await follow(problem);
            await problem.waitFor({ state: "detached", timeout: PATIENCE });
            tested.add(kinds[code]);
        });
        const change = async values => {
            const dialog = await preview(page, values);
            await dialog.locator(".plan li").waitFor();
            await press(dialog, "Apply");
        };

        await remedy("device-lost", "Apply configuration…", () => {
            rig.inside("swapoff", "/dev/zram5");
            fs.writeFileSync("/sys/block/zram5/reset", "1");
        }, () => change({}));

        await remedy("swap-off", "Switch on", () => rig.inside("swapoff", "/dev/zram5"), () => {});

        await configured(`[zram7]\nzram-size = "ram / 200"\n[maintenance]\non-memory-change = "report"\n`, async () => {
            // There is no memory to add, so the daemon sees another amount.
            const file = path.join(rig.directory, "meminfo");
            const memory = fs.readFileSync("/proc/meminfo", "utf8").replace(/^MemTotal: +(\d+)/m, (_, amount) => `MemTotal: ${2 * amount}`);
            const size = Number(attribute("zram7", "disksize"));
            await remedy("memory-changed", "Apply configuration…", () => {
                // Remembers how much memory there was.
                rig.zramdctl("maintain");
                fs.writeFileSync(file, memory);
                rig.inside("mount", "--bind", file, "/proc/meminfo");
                rig.zramdctl("maintain");
            }, () => change({}));
            assert.ok(Number(attribute("zram7", "disksize")) > 1.9 * size);
            rig.inside("umount", "/proc/meminfo");
        });

        await remedy("memory-limit-near", "Change…", () => rig.zramdctl("limit", "zram5", `${attribute("zram5", "mm_stat").split(/\s+/)[2]}B`),
                     () => change({ "zram-resident-limit": "none", duration: "boot" }));
        assert.equal(attribute("zram5", "mm_stat").split(/\s+/)[3], "0");

        await remedy("ramdisk-nearly-full", "Change…", () => rig.inside("sh", "-c", `head -c 15900K /dev/zero >${PLACE}/notes/big`),
                     () => change({ size: "32MiB", duration: "boot" }));
        assert.match(await text(page.locator("#ramdisks tbody tr").first()), /32\.0 MiB/);
        rig.inside("rm", `${PLACE}/notes/big`);
        rig.zramdctl("unset", "--runtime", "ramdisk.notes");

        const store = "/var/lib/zramd";
        await remedy("save-failed", "Save", async () => {
            rig.inside("mount", "-o", "bind,ro", store, store);
            rig.inside("sh", "-c", `echo new >${PLACE}/notes/file`);
            await page.getByRole("button", { name: "Save notes", exact: true }).click();
            await page.locator('[data-code="save-failed"]').waitFor();
            // It stays until it is dismissed, whatever follows.
            await page.locator('.jobs [data-result="failed"]').waitFor();
            rig.inside("umount", store);
        }, () => {});

        await remedy("snapshot-broken", "Snapshots", () => {
            const snapshots = rig.inside("find", store, "-regex", ".*/gen-[0-9]+").trim().split("\n");
            const [oldest] = snapshots.sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
            assert.match(oldest, /gen-\d+$/);
            rig.inside("sh", "-c", `echo {} >${oldest}`);
            // A save looks at the others, too.
            rig.inside("sh", "-c", `echo newest >${PLACE}/notes/file`);
            rig.zramdctl("ramdisk", "save", "notes");
        }, async () => {
            await page.locator("#snapshots-notes tbody tr", { hasText: "damaged" }).getByRole("button", { name: /^Delete/ }).click();
            await press(page.getByRole("dialog"), "Delete");
        });
        assert.deepEqual([...tested].sort(), [...new Set(Object.values(kinds))].sort(), "each kind");
    });

    test("measures the algorithms", async () => {
        const measured = page.locator('.jobs [data-type="benchmark"][data-result="done"]');
        await eventually(async () => {
            // It is postponed while the machine is busy.
            await page.getByRole("button", { name: "Measure now" }).click();
            await page.locator('.jobs [data-type="benchmark"][data-result]').waitFor({ timeout: PATIENCE });
            assert.ok(await measured.isVisible());
        });
        const section = page.locator("section", { has: page.locator("#benchmark") });
        await section.locator("summary").click();
        const verdict = JSON.parse(fs.readFileSync(path.join(rig.directory, "var/benchmark.json"), "utf8"));
        const rows = page.locator("#benchmark tbody tr");
        await eventually(async () => assert.equal(await rows.count(), verdict.report.results.length));
        const us = nanoseconds => (nanoseconds / 1000).toFixed(1);
        const [best] = verdict.report.results;
        const chosen = page.locator("#benchmark tr.chosen");
        assert.equal(await chosen.count(), 1);
        assert.match(await text(chosen), /chosen$/);
        assert.ok((await text(chosen)).includes(`${us(best.score)} µs ±`), await text(chosen));
        // The sentence, the table and the bars have the same figure.
        const sentence = await text(section.locator("p").first());
        assert.ok(sentence.includes(`a page in swap costs ${us(best.score)} µs`), sentence);
        const bar = page.locator("table.bars").first().locator("tr.chosen");
        assert.ok((await text(bar)).includes(`${us(best.score)} µs`));
        assert.equal(await bar.locator("line.range").count(), 1);
        assert.equal(await page.locator("table.bars").first().locator("tr").count(), verdict.report.results.filter(row => row.score !== null).length);
    });

    test("is accessible, light and dark, wide and narrow, with an open dialog", async () => {
        for (const colorScheme of ["light", "dark"]) {
            for (const width of [1400, 800, 400]) {
                await page.emulateMedia({ colorScheme });
                await page.setViewportSize({ width, height: 900 });
                await accessible(page, `${colorScheme} ${width}`);
                // On narrow screens, the rest of a row is shown on demand.
                const details = page.getByRole("button", { name: "Details of zram5" });
                assert.equal(await details.isVisible(), width < 960);
                if (width < 960 && await details.getAttribute("aria-expanded") === "false") {
                    assert.ok(!await page.getByRole("button", { name: "Change zram5" }).isVisible());
                    await details.press("Enter");
                }
                await page.getByRole("button", { name: "Change zram5" }).click();
                await preview(page, { "zram-size": "80MiB" });
                await page.getByRole("dialog").locator(".plan li").waitFor();
                await accessible(page, `${colorScheme} ${width} dialog`);
                await page.keyboard.press("Escape");
                // The focus returns to where it was.
                assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Change zram5");
                const wide = await page.evaluate(() => document.documentElement.scrollWidth);
                assert.ok(wide <= width, `${wide} pixels do not fit in ${width}`);
            }
        }
        // The style of Cockpit's shell takes precedence.
        await page.evaluate(() => window.dispatchEvent(new CustomEvent("cockpit-style", { detail: { style: "light" } })));
        assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "light");
        // Nothing moves for those who do not want it.
        await page.emulateMedia({ colorScheme: null, reducedMotion: "reduce" });
        assert.equal(await page.evaluate(() => {
            const bar = document.createElement("progress");
            document.body.append(bar);
            const { display } = getComputedStyle(bar);
            bar.remove();
            return display;
        }), "none");
        await page.emulateMedia({ reducedMotion: null });
        await page.setViewportSize({ width: 1280, height: 900 });
    });

    test("says that the daemon is gone, and recovers", async () => {
        await rig.stopDaemon("SIGKILL");
        const empty = page.locator(".empty", { hasText: "zramd does not run" });
        await empty.waitFor();
        assert.ok(!await page.locator("#devices").isVisible() && !await page.locator(".gain").isVisible(), "nothing old is shown");
        await accessible(page, "without the daemon");
        // What systemctl says is shown.
        rig.systemctl = "refuse";
        const begin = empty.getByRole("button", { name: "Start zramd" });
        await begin.click();
        await eventually(async () => assert.equal(await text(empty.getByRole("alert")), "Failed to enable unit"));
        // There is no systemd here: the test starts the daemon when systemd is asked to.
        rig.systemctl = "accept";
        await begin.click();
        await eventually(async () => assert.equal(rig.systemctl, "enable --now zramd.service\n"));
        await rig.startDaemon();
        await row(page, "zram5").waitFor();
        assert.ok(!await empty.isVisible());
        const time = () => page.evaluate(() => document.querySelector("path.stored").getAttribute("d"));
        const first = await time();
        await eventually(async () => assert.notEqual(await time(), first));
    });

    test("has sentence, bars and problems on the first screen of a phone, and nothing twice", async () => {
        rig.inside("swapoff", "/dev/zram5");
        await page.locator('[data-code="swap-off"]').waitFor();
        const phone = await open(cockpit, { viewport: { width: 400, height: 800 } });
        await row(phone, "zram6").waitFor();
        for (const part of [".overview .verdict", ".gain", '[data-code="swap-off"]', '[aria-label="Memory in use"]', '[aria-label="Swap in use"]',
            '[aria-label="How full zram5 is"]', '[aria-label="How full zram6 is"]']) {
            const { y, height } = await phone.locator(part).boundingBox();
            assert.ok(y >= 0 && y + height <= 800, `${part} is at ${y}`);
        }
        assert.equal(await phone.getByText("zram5 is set up as swap but not switched on").count(), 1);
        await phone.context().close();
        rig.zramdctl("swap", "on", "zram5");
    });

    test("shows own jobs only", async () => {
        const job = page.locator(".jobs li");
        const close = job.getByRole("button", { name: "Dismiss" }).first();
        while (await close.isVisible())
            await close.click();
        rig.zramdctl("maintain");
        await page.getByRole("button", { name: "Save notes" }).click();
        await eventually(async () => assert.match(await text(job), /^Saving notes\s+done/));
    });

    test("proposes a configuration where there is none, and uses it after a yes", async () => {
        const file = path.join(rig.directory, "etc/zramd.toml");
        fs.rmSync(file);
        fs.rmSync(path.join(rig.directory, "etc/zramd.toml.d"), { recursive: true, force: true });
        try {
            rig.zramdctl("reload", "--force");
            const empty = page.locator(".empty", { hasText: "Nothing is configured" });
            await empty.waitFor();
            assert.ok(!await page.locator("#devices").isVisible());
            await accessible(page, "without a configuration");
            await empty.getByRole("button", { name: "Propose" }).click();
            const dialog = page.getByRole("dialog");
            const use = dialog.getByRole("button", { name: "Use this" });
            await eventually(async () => assert.ok(await use.isEnabled()));
            const proposal = rig.zramdctl("init", "--dry-run");
            assert.equal(await dialog.locator("pre").evaluate(found => found.textContent), proposal);
            assert.match(await text(dialog.locator(".reasons")), /^This machine has /);
            await accessible(page, "a proposal");
            assert.ok(!fs.existsSync(file), "nothing is written before a yes");
            rig.systemctl = "accept";
            await use.click();
            await dialog.waitFor({ state: "detached", timeout: PATIENCE });
            assert.equal(fs.readFileSync(file, "utf8"), proposal);
            assert.equal(rig.systemctl, "enable --now zramd.service\n");
            await eventually(async () => assert.match(await text(row(page, "zram0")), /swap, priority \d+, active/));
            await page.locator('.jobs [data-type="benchmark"][data-result]').waitFor({ timeout: PATIENCE });
        } finally {
            rig.write(CONFIG);
            rig.zramdctl("reload", "--force");
            await row(page, "zram5").waitFor();
        }
    });

    test("shows everything to a user without privileges, who changes nothing", async () => {
        const theirs = await rig.cockpit({ as: UNPRIVILEGED });
        const other = await open(theirs);
        await eventually(async () => assert.match(await text(row(other, "zram5")), /swap, priority \d, active/));
        await other.getByText("changes need administrative access").waitFor();
        const changes = other.locator("button[data-change]");
        assert.ok(await changes.count() > 4);
        assert.deepEqual(await changes.evaluateAll(buttons => buttons.filter(button => !button.disabled).map(button => button.textContent)), []);
        await accessible(other, "without privileges");
        // It is the daemon that refuses, whatever the page does.
        const refused = await other.evaluate(() => new Promise(resolve => {
            window.cockpit.dbus("org.zramd1", { bus: "system", superuser: "try" })
                    .call("/org/zramd1", "org.zramd1.Manager", "Reload", [{}], { type: "a{sv}" })
                    .then(() => resolve("done"), error => resolve(error.name || error.problem));
        }));
        assert.equal(refused, "org.freedesktop.DBus.Error.AccessDenied");
        await other.context().close();
        await theirs.stop();
    });

    test("is open to a user who has logged in, and changes with administrative access", async () => {
        const server = await rig.login();
        const shell = await window();
        await shell.goto(`${server.url}/zramd`);
        await shell.locator("#login-user-input").fill(rig.user.name);
        await shell.locator("#login-password-input").fill(rig.user.password);
        await shell.locator("#login-button").click();
        const frame = shell.frameLocator('iframe[name="cockpit1:localhost/zramd"]');
        await row(frame, "zram5").waitFor();
        await frame.getByText("changes need administrative access").waitFor();
        const change = frame.getByRole("button", { name: "Change zram5" });
        assert.ok(await change.isDisabled());

        // By its place: the shell hides it from screen readers after its own dialog.
        const access = shell.locator("#super-user-indicator button");
        assert.equal(await text(access), "Limited access");
        await access.click();
        const question = shell.getByRole("dialog");
        await question.locator("input[type=password]").fill(rig.user.password);
        await question.getByRole("button", { name: "Authenticate" }).click();
        await access.filter({ hasText: "Administrative access" }).waitFor();
        await change.click();
        const dialog = await preview(frame, { "zram-size": "72MiB", duration: "boot" });
        await dialog.locator(".plan li").waitFor();
        await press(dialog, "Apply");
        assert.equal(attribute("zram5", "disksize"), String(72 * MIB));

        // Without it again.
        await access.click();
        await shell.getByRole("dialog").getByRole("button", { name: "Limit access" }).click();
        await frame.getByText("changes need administrative access").waitFor();
        assert.ok(await change.isDisabled());
        await shell.context().close();
        await server.stop();
    });

    test("unsubscribes when it is hidden in the shell, and no longer subscribes when it is closed", async () => {
        // Without others that subscribe.
        await page.context().close();
        const own = await rig.cockpit();
        const shell = await window();
        await shell.goto(`${own.url}/zramd`);
        const frame = shell.frameLocator('iframe[name="cockpit1:localhost/zramd"]');
        await frame.locator("#devices tbody tr").first().waitFor();
        const show = async where => {
            await shell.evaluate(path => window.history.pushState(null, "", path), where);
            await shell.evaluate(() => window.dispatchEvent(new PopStateEvent("popstate")));
        };

        const left = await rig.called("Unsubscribe");
        await show("/system/services");
        await left.found;
        let asked = await rig.called("SubscribeFor");
        await show("/zramd");
        await asked.found;

        await rig.silence(() => shell.context().close());
        await own.stop();

        // Two tabs of a session share a connection to the bus. When one is hidden, it ends the figures of both, and the other asks
        // for them again.
        const both = await rig.cockpit();
        const first = await open(both);
        await row(first, "zram5").waitFor();
        const tab = await first.context().newPage();
        await tab.goto(first.url());
        await row(tab, "zram5").waitFor();
        asked = await rig.called("SubscribeFor");
        await tab.evaluate(() => {
            Object.defineProperty(document, "hidden", { value: true });
            document.dispatchEvent(new Event("visibilitychange"));
        });
        await asked.found;
        // The connection stays when the other is closed, so the figures end by their time.
        await rig.silence(() => first.close());
        await tab.context().close();
        await both.stop();

        page = await open(await rig.cockpit());
        await row(page, "zram5").waitFor();
    });

    test("can be translated", async () => {
        const file = path.join(rig.directory, "de.po");
        fs.writeFileSync(file, `msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Language: de\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"

msgid "Devices"
msgstr "Geräte"

msgid "$0 problem needs attention."
msgid_plural "$0 problems need attention."
msgstr[0] "$0 Problem braucht Aufmerksamkeit."
msgstr[1] "$0 Probleme brauchen Aufmerksamkeit."
`);
        const loaded = path.join(rig.directory, "usr/share/cockpit/zramd/po.de.js");
        fs.writeFileSync(loaded, execFileSync(path.join(import.meta.dirname, "../../packaging/cockpit/po/convert"), [file]));
        const german = await rig.cockpit();
        const other = await window();
        await other.context().addCookies([{ name: "CockpitLang", value: "de", url: german.url }]);
        await other.goto(`${german.url}/cockpit/@localhost/zramd/index.html`);
        await other.getByRole("heading", { name: "Geräte" }).waitFor();
        rig.inside("swapoff", "/dev/zram5");
        await other.getByText("1 Problem braucht Aufmerksamkeit.").waitFor();
        rig.zramdctl("swap", "on", "zram5");
        fs.rmSync(loaded);
        await other.context().close();
        await german.stop();
    });

    test("has room for texts that are half as long again, and no other texts", async () => {
        const directory = path.join(import.meta.dirname, "../../packaging/cockpit/po");
        const filled = execFileSync("msgen", ["--no-wrap", "--lang=eo", path.join(directory, "cockpit-zramd.pot")], { encoding: "utf8" });
        const more = text => " ~~~~~~~~".repeat(Math.ceil(text.length / 18)).slice(0, Math.ceil(text.length / 2));
        const long = filled.replace(/^msgstr(\[\d\])? "(.+)"$/gm, (_, index, text) => `msgstr${index || ""} "[${text}${more(text)}]"`)
                .replace(/^"Plural-Forms: .*$/m, '"Plural-Forms: nplurals=2; plural=(n != 1);\\n"');
        const file = path.join(rig.directory, "eo.po");
        fs.writeFileSync(file, long);
        const loaded = path.join(rig.directory, "usr/share/cockpit/zramd/po.eo.js");
        fs.writeFileSync(loaded, execFileSync(path.join(directory, "convert"), [file]));
        const server = await rig.cockpit();
        const other = await window();
        await other.context().addCookies([{ name: "CockpitLang", value: "eo", url: server.url }]);
        await other.goto(`${server.url}/cockpit/@localhost/zramd/index.html`);
        await row(other, "zram5").waitFor();
        await other.locator("#ramdisks button[aria-expanded]").first().click();
        await other.locator("#snapshots-notes tbody tr").first().waitFor();
        await other.locator("summary").click();
        for (const width of [1400, 800, 400]) {
            await other.setViewportSize({ width, height: 900 });
            const outside = await other.evaluate(() => [...document.querySelectorAll("body *")]
                    .filter(found => found.getBoundingClientRect().right > document.documentElement.clientWidth && !found.closest(".scroll, .hidden"))
                    .map(found => found.outerHTML.slice(0, 200)));
            assert.deepEqual(outside, [], `${width}`);
            const cut = await other.evaluate(() => [...document.querySelectorAll("button, h1, h2, h3, p, dt, dd, td, th, span, b")]
                    .filter(found => found.checkVisibility() && !found.matches(".hidden *") && found.scrollWidth > found.clientWidth + 1 && getComputedStyle(found).overflowX !== "visible")
                    .map(found => found.textContent));
            assert.deepEqual(cut, [], `${width}`);
        }
        const own = "h1, h2, h3, button, dt, thead th, summary, label, .verdict, .gain, .amount, .key, .source, .axes text, .pressure";
        const untranslated = () => other.evaluate(selector => [...document.querySelectorAll(selector)].filter(found => found.checkVisibility())
                .map(found => found.textContent.trim()).filter(text => text && text !== "✕" && !text.startsWith("[") && text !== "/etc/zramd/zramd.toml"), own);
        assert.deepEqual(await untranslated(), []);
        await other.setViewportSize({ width: 400, height: 900 });
        await other.locator("#devices button.details").first().click();
        await other.locator("#devices td button").first().click();
        const dialog = other.getByRole("dialog");
        await dialog.waitFor();
        assert.ok(await dialog.evaluate(found => found.scrollWidth <= found.clientWidth));
        assert.deepEqual(await untranslated(), []);
        fs.rmSync(loaded);
        await other.context().close();
        await server.stop();
    });

    test("begins the charts with what Cockpit's metrics have recorded", { skip: !Rig.hasHistory && "needs Performance Co-Pilot" }, async () => {
        rig.record(30);
        const server = await rig.cockpit();
        const other = await open(server);
        await other.getByText(/^What was before this page was opened, from .* on, was recorded by Performance Co-Pilot/).waitFor();
        const line = async (name, key) => {
            const chart = other.getByRole("img", { name: new RegExp(`^${name}, over 60 minutes`) });
            const points = (await chart.locator(`path.${key}`).getAttribute("d")).split(/[ML]/).slice(1).map(point => point.split(" ").map(Number));
            const [amount, unit] = (await chart.locator(".axes text").nth(2).textContent()).split(" ");
            const most = amount * { "GiB": 2 ** 30, "MiB": 2 ** 20, "KiB/s": 2 ** 10, "MiB/s": 2 ** 20 }[unit];
            return points.map(([x, y]) => [x, (108 - y) / 100 * most]);
        };
        await eventually(async () => {
            const memory = await line("Memory", "memory");
            assert.ok(memory.length > 50, `${memory.length}`);
            assert.ok(Math.abs(memory[5][1] - 3 * 2 ** 30) < 2 ** 27, `${memory[5]}`);
            const out = await line("Swap traffic", "out");
            assert.ok(out.length > 50, `${out.length}`);
            assert.ok(Math.abs(out[5][1] - 100 * 4096) < 2 ** 15, `${out[5]}`);
            // What is not recorded begins now.
            const came = await line("Swap traffic", "came");
            assert.ok(came.length >= 1 && came[0][0] > out[40][0], `${came}`);
        });
        await other.context().close();
        await server.stop();
    });

    test("shows a hundred devices", async () => {
        // Real ones that hold nothing. The kernel has room for 28 swaps, so they are neither swap nor formatted.
        const many = Array.from({ length: 100 }, (_, index) => `[zram${index + 20}]\nzram-size = "1MiB"\nfs-type = "none"\n`);
        rig.write(CONFIG + many.join(""));
        rig.zramdctl("reload");
        await eventually(async () => assert.equal(await page.locator("#devices tbody tr").count(), 102));
        const names = await page.locator("#devices tbody th").allInnerTexts();
        assert.deepEqual([names[0], names[2], names[101]], ["zram5", "zram20", "zram119"]);
        // It still follows changes.
        rig.zramdctl("resize", "--force", "zram119", "2MiB");
        await eventually(async () => assert.match(await text(row(page, "zram119")), / of 2\.0 MiB/));
        rig.write(CONFIG);
        rig.zramdctl("reload");
        await eventually(async () => assert.equal(await page.locator("#devices tbody tr").count(), 2));
        assert.deepEqual(page.problems, []);
    });
});
