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
        if (typeof value === "boolean")
            await control.setChecked(value);
        else if (await control.evaluate(found => found.tagName) === "SELECT")
            await control.selectOption(value);
        else
            await control.fill(value);
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
            const cells = await row(page, "zram6").locator("th, td").allInnerTexts();
            const [name, use, state, algorithm, size, ...figures] = cells;
            assert.deepEqual([name, state, algorithm, size], ["zram6", "mounted", "lz4", "96.0 MiB"]);
            assert.match(use, new RegExp(`^${PLACE}/cache, [\\d.]+ MiB of [\\d.]+ MiB in use$`));
            assert.deepEqual(figures.slice(0, 2), [stored, used].map(bytes => `${(bytes / MIB).toFixed(1)} MiB`));
        });
        const gain = page.locator(".gain");
        await eventually(async () => assert.match(await text(gain), /^([\d.]+ [KM]iB of programs and )?[\d.]+ MiB of files are in [\d.]+ MiB of memory, which saves [\d.]+ MiB\.$/));
        // The same sentence as that of zramdctl.
        await eventually(async () => assert.equal(await text(gain), rig.zramdctl("status").split("\n")[0]));
        const chart = page.getByRole("img", { name: /Stored data/ });
        assert.match(await chart.locator("path.stored").getAttribute("d"), /^M[\d.]+ [\d.]+/);
        assert.match(await text(page.locator("main")), /Memory pressure: none/);
        assert.match(await text(page.locator("#ramdisks tbody tr").first()), /notes.*16\.0 MiB.*contents/s);
        assert.deepEqual(page.problems, []);
    });

    test("shows problems with their remedy, which a click applies", async () => {
        rig.inside("swapoff", "/dev/zram5");
        const problem = page.locator('[data-code="swap-off"]');
        await problem.waitFor();
        assert.match(await text(problem), /Warning zram5 is set up as swap but not switched on\s+run zramdctl swap on zram5/);
        await problem.getByRole("button", { name: "Switch on" }).click();
        await problem.waitFor({ state: "detached" });
        await eventually(async () => assert.match(await text(row(page, "zram5")), /swap, priority 5\s+active/));
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
        assert.equal(await dialog.locator('[name="compression-algorithm"]').inputValue(), "lz4(level=2)");
        assert.equal(await dialog.locator('[name="zram-resident-limit"]').inputValue(), "48MiB");
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

    test("has only fields that the daemon accepts, with the ranges of the schema", async () => {
        const schema = JSON.parse(fs.readFileSync(path.join(REPOSITORY, "config/zramd.schema.json"), "utf8"));
        const keys = Object.entries(schema.patternProperties).find(([pattern]) => pattern.startsWith("^zram"))[1].properties;
        await page.getByRole("button", { name: "Change zram5" }).click();
        const dialog = page.getByRole("dialog");
        const controls = await dialog.locator("input[type=text]").all();
        assert.ok(controls.length >= 5);
        for (const control of controls) {
            const name = await control.getAttribute("name");
            const hint = dialog.locator(".field", { has: page.locator(`[name="${name}"]`) }).locator(".hint");
            assert.equal(await text(hint), keys[name].description.split("\n").at(-1));
            // An empty text removes a key: what may be changed is refused as missing only.
            let said = "";
            try {
                rig.zramdctl("unset", "zram5", name);
            } catch (error) {
                said = error.stderr;
            }
            assert.doesNotMatch(said, /cannot be changed here/, name);
        }
        await press(dialog, "Cancel");
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
        let dialog = await preview(page, { "zram-size": "16MiB", "swap-priority": "3" });
        const plan = dialog.locator(".plan li");
        await plan.waitFor();
        const name = (await text(plan)).match(/^create (zram\d+): /)[1];
        await press(dialog, "Create");
        await eventually(async () => assert.match(await text(row(page, name)), /swap, priority 3\s+active\s+\S+\s+16\.0 MiB/));
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
        const list = page.getByRole("button", { name: /^Snapshots/ });
        await eventually(async () => assert.equal(await text(list), "Snapshots (1)"));
        await list.click();
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
        const result = page.locator("#benchmark tbody tr").first();
        const measured = page.locator(".jobs li", { hasText: "benchmark" });
        await eventually(async () => {
            // It is postponed while the machine is busy.
            const jobs = await measured.count();
            await page.getByRole("button", { name: "Measure now" }).click();
            await eventually(async () => assert.ok(await measured.count() > jobs && await measured.last().getAttribute("data-result")));
            assert.ok(await result.isVisible());
        });
        assert.match(await text(result), /^\S+\s+[\d.]+\s+[\d.]+ µs\s+[\d.]+ µs\s+[\d.]+ [GM]iB\/s\s+[\d.]+ [GM]iB\/s\s+chosen/);
        const rows = await page.locator("#benchmark tbody tr").count();
        assert.equal(await page.locator("table.bars").first().locator("tr").count(), rows);
    });

    test("is accessible, light and dark, wide and narrow, with an open dialog", async () => {
        for (const colorScheme of ["light", "dark"]) {
            for (const width of [1280, 400]) {
                await page.emulateMedia({ colorScheme });
                await page.setViewportSize({ width, height: 900 });
                await accessible(page, `${colorScheme} ${width}`);
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
        await page.emulateMedia({ colorScheme: null });
        await page.setViewportSize({ width: 1280, height: 900 });
    });

    test("says that the daemon is gone, and recovers", async () => {
        await rig.stopDaemon("SIGKILL");
        const notice = page.locator("main > .notice[role=alert]");
        await eventually(async () => assert.match(await text(notice), /^zramd does not run/));
        assert.ok(!await page.locator("#devices").isVisible() && !await page.locator(".gain").isVisible(), "nothing old is shown");
        await accessible(page, "without the daemon");
        await rig.startDaemon();
        await row(page, "zram5").waitFor();
        assert.ok(!await notice.isVisible());
        const time = () => page.evaluate(() => document.querySelector("path.stored").getAttribute("d"));
        const first = await time();
        await eventually(async () => assert.notEqual(await time(), first));
    });

    test("shows everything to a user without privileges, who changes nothing", async () => {
        const theirs = await rig.cockpit({ as: UNPRIVILEGED });
        const other = await open(theirs);
        await eventually(async () => assert.match(await text(row(other, "zram5")), /swap, priority \d\s+active/));
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

msgid "$0 zram device"
msgid_plural "$0 zram devices"
msgstr[0] "$0 zram-Gerät"
msgstr[1] "$0 zram-Geräte"
`);
        const loaded = path.join(rig.directory, "usr/share/cockpit/zramd/po.de.js");
        fs.writeFileSync(loaded, execFileSync(path.join(import.meta.dirname, "../../packaging/cockpit/po/convert"), [file]));
        const german = await rig.cockpit();
        const other = await window();
        await other.context().addCookies([{ name: "CockpitLang", value: "de", url: german.url }]);
        await other.goto(`${german.url}/cockpit/@localhost/zramd/index.html`);
        await other.getByRole("heading", { name: "Geräte" }).waitFor();
        await other.getByText("2 zram-Geräte").waitFor();
        fs.rmSync(loaded);
        await other.context().close();
        await german.stop();
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
        await eventually(async () => assert.match(await text(row(page, "zram119")), /2\.0 MiB/));
        rig.write(CONFIG);
        rig.zramdctl("reload");
        await eventually(async () => assert.equal(await page.locator("#devices tbody tr").count(), 2));
        assert.deepEqual(page.problems, []);
    });
});
