// A real Cockpit and a real zramd on a private system bus, and a browser.

import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { chromium } from "playwright-core";

const REPOSITORY = path.resolve(import.meta.dirname, "../..");
const PROGRAMS = path.join(process.env.CARGO_TARGET_DIR || path.join(REPOSITORY, "target"), "release");
const BROWSER = process.env.CHROMIUM || "/usr/bin/chromium";
/** Another bridge than the installed one, and a directory with its packages, such as those of a newer Cockpit. */
const { COCKPIT_BRIDGE, COCKPIT_DATA } = process.env;
/** The user without privileges. */
const UNPRIVILEGED = 65534;

/** As the policy of a real system bus: names and calls are refused unless allowed. */
const RULES = `
  <policy context="default">
    <allow user="*"/>
    <deny own="*"/>
    <deny send_type="method_call"/>
    <allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
    <allow send_destination="org.freedesktop.DBus"/>
  </policy>`;

/** Milliseconds to wait for something, much longer than necessary because the machine may be busy. */
export const PATIENCE = 60000;

const children = new Set();

/** Starts a program that ends with this one. */
function start(program, words, options = {}) {
    const child = spawn("setpriv", ["--pdeathsig", "KILL", ...options.as ? [`--reuid=${options.as}`, `--regid=${options.as}`, "--clear-groups"] : [],
        program, ...words], { stdio: ["ignore", "pipe", "inherit"], ...options });
    children.add(child);
    child.ended = new Promise(resolve => child.on("exit", (code, signal) => {
        children.delete(child);
        resolve({ code, signal });
    }));
    return child;
}

async function end(child, signal = "SIGTERM") {
    if (child?.exitCode === null && child.signalCode === null) {
        child.kill(signal);
        await child.ended;
    }
}

function firstLine(child) {
    return new Promise((resolve, reject) => {
        let text = "";
        child.stdout.on("data", data => {
            text += data;
            if (text.includes("\n"))
                resolve(text.split("\n")[0]);
        });
        child.ended.then(({ code }) => reject(new Error(`it ended with ${code} before it was ready`)));
    });
}

async function freePort() {
    const server = net.createServer();
    await new Promise(resolve => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address();
    await new Promise(resolve => server.close(resolve));
    return port;
}

/** A bus, a daemon with this configuration, and the page as it is installed. */
export class Rig {
    static async start(config) {
        const rig = new Rig();
        rig.directory = fs.mkdtempSync(path.join(os.tmpdir(), "zramd-cockpit-"));
        fs.chmodSync(rig.directory, 0o755);
        fs.mkdirSync(path.join(rig.directory, "etc"));
        fs.mkdirSync(path.join(rig.directory, "var"));
        rig.write(config);
        execFileSync(path.join(REPOSITORY, "packaging/install"), ["--cockpit", "--destdir", rig.directory]);
        rig.schema();
        await rig.startBus();
        await rig.startDaemon();
        return rig;
    }

    write(config) {
        fs.writeFileSync(path.join(this.directory, "etc/zramd.toml"), config);
    }

    /** The schema is read where the package of zramd has it. */
    schema() {
        const there = "/usr/share/zramd/zramd.schema.json";
        if (fs.existsSync(there))
            return;
        fs.mkdirSync(path.dirname(there), { recursive: true });
        fs.copyFileSync(path.join(REPOSITORY, "config/zramd.schema.json"), there);
        this.planted = there;
    }

    async startBus() {
        const file = path.join(this.directory, "bus.conf");
        fs.writeFileSync(file, `<busconfig>
  <type>system</type>
  <auth>EXTERNAL</auth>
  <listen>unix:path=${this.directory}/socket</listen>
  ${RULES}
  <include>${REPOSITORY}/units/org.zramd1.conf</include>
</busconfig>\n`);
        this.bus = start("dbus-daemon", ["--nofork", "--nopidfile", "--nosyslog", "--print-address=1", `--config-file=${file}`]);
        this.address = await firstLine(this.bus);
        this.environment = { ...process.env, DBUS_SYSTEM_BUS_ADDRESS: this.address };
    }

    async startDaemon() {
        if (!this.place)
            await this.makePlace();
        this.daemon = start("nsenter", [`--mount=/proc/${this.place.pid}/ns/mnt`, path.join(PROGRAMS, "zramd")],
                            { env: this.environment, stdio: ["ignore", "inherit", "inherit"] });
        execFileSync("gdbus", ["wait", "--address", this.address, "--timeout", "30", "org.zramd1"]);
    }

    /** The mount namespace of the daemon, with directories of the test as /etc/zramd and /var/lib/zramd, and no systemd. */
    async makePlace() {
        const hide = fs.existsSync("/run/systemd/system") ? "mount -t tmpfs none /run/systemd" : "true";
        const bind = (from, to) => `mkdir -p ${to} && mount --bind ${this.directory}/${from} ${to}`;
        const script = `${bind("etc", "/etc/zramd")} && ${bind("var", "/var/lib/zramd")} && ${hide} && echo ready && exec sleep infinity`;
        this.place = start("unshare", ["--mount", "--propagation", "private", "sh", "-c", script]);
        await firstLine(this.place);
    }

    async stopDaemon(signal = "SIGTERM") {
        await end(this.daemon, signal);
    }

    /** Runs a program in the mount namespace of the daemon. */
    inside(program, ...words) {
        const namespace = `--mount=/proc/${this.place.pid}/ns/mnt`;
        return execFileSync("nsenter", [namespace, program, ...words], { env: this.environment, encoding: "utf8", stdio: "pipe" });
    }

    /** Runs `zramdctl`. */
    zramdctl(...words) {
        return this.inside(path.join(PROGRAMS, "zramdctl"), ...words);
    }

    /** Waits for a call of this method of the daemon; first for the monitor that sees it. */
    async called(member) {
        const monitor = start("dbus-monitor", ["--address", this.address, `type='method_call',member='${member}'`]);
        let text = "";
        let told;
        const found = new Promise((resolve, reject) => {
            told = resolve;
            monitor.ended.then(() => reject(new Error("the monitor has ended")));
            setTimeout(() => reject(new Error(`nobody has called ${member}`)), PATIENCE).unref();
        });
        monitor.stdout.on("data", data => {
            text += data;
            if (text.includes(`member=${member}`))
                told();
        });
        // It prints that it has acquired and lost its own name.
        await firstLine(monitor);
        return { found: found.then(() => end(monitor)) };
    }

    /** A Cockpit without a login: its bridge runs as this user. Returns the address of the server. */
    async cockpit({ as } = {}) {
        const port = await freePort();
        const home = fs.mkdtempSync(path.join(this.directory, "home-"));
        if (as)
            fs.chownSync(home, as, as);
        const env = {
            ...this.environment, HOME: home, XDG_RUNTIME_DIR: home, XDG_CONFIG_DIRS: home,
            // The bridge would start one that does not end.
            DBUS_SESSION_BUS_ADDRESS: "unix:path=/nonexistent",
            XDG_DATA_DIRS: [`${this.directory}/usr/share`, ...COCKPIT_DATA ? [COCKPIT_DATA] : [], "/usr/share"].join(":"),
        };
        const server = start("/usr/lib/cockpit/cockpit-ws",
                             [`--local-session=${COCKPIT_BRIDGE || "cockpit-bridge"}`, "--no-tls", "--address=127.0.0.1", `--port=${port}`], { as, env });
        await connects(port);
        return { url: `http://127.0.0.1:${port}`, stop: () => end(server) };
    }

    /** Counts signals of this name from now on, until `end`. */
    async count(member) {
        const monitor = start("dbus-monitor", ["--address", this.address, `type='signal',member='${member}'`]);
        let text = "";
        monitor.stdout.on("data", data => {
            text += data;
        });
        return {
            end: async () => {
                await end(monitor);
                return text.split(`member=${member}`).length - 1;
            },
        };
    }

    /** Waits until the daemon, which sends figures now, sends none for three of their intervals after this action. */
    async silence(action) {
        const monitor = start("dbus-monitor", ["--address", this.address, "type='signal',member='TotalsUpdated'"]);
        const figure = () => new Promise(resolve => {
            const look = data => {
                if (data.includes("member=TotalsUpdated")) {
                    monitor.stdout.off("data", look);
                    resolve("figures are still sent");
                }
            };
            monitor.stdout.on("data", look);
        });
        await figure();
        await action();
        const limit = Date.now() + PATIENCE;
        while (await Promise.race([figure(), new Promise(resolve => setTimeout(resolve, 6000))])) {
            if (Date.now() > limit)
                throw new Error("figures are still sent");
        }
        await end(monitor);
    }

    async stop() {
        await end(this.daemon);
        this.inside(path.join(PROGRAMS, "zramd-setup"), "revert");
        for (const child of [...children])
            await end(child);
        if (this.planted) {
            fs.rmSync(this.planted);
            fs.rmdirSync(path.dirname(this.planted));
        }
        fs.rmSync(this.directory, { recursive: true });
        for (const mountPoint of ["/etc/zramd", "/var/lib/zramd"]) {
            // It stays if it has files.
            if (fs.existsSync(mountPoint) && !fs.readdirSync(mountPoint).length)
                fs.rmdirSync(mountPoint);
        }
    }
}

/** Waits until a server listens. */
async function connects(port) {
    for (;;) {
        const done = await new Promise(resolve => {
            const socket = net.connect(port, "127.0.0.1", () => resolve(true));
            socket.on("error", () => resolve(false));
            socket.on("connect", () => socket.destroy());
        });
        if (done)
            return;
        await new Promise(resolve => setTimeout(resolve, 20));
    }
}

export { UNPRIVILEGED };

let browser;

/** A new browser window. */
export async function window(options = {}) {
    browser ||= await chromium.launch({
        executablePath: BROWSER,
        args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync"],
    });
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(15000);
    page.problems = [];
    page.on("pageerror", error => page.problems.push(error.message));
    page.on("console", message => message.type() === "error" && page.problems.push(message.text()));
    return page;
}

/** Opens the page by itself, without the shell around it. */
export async function open(cockpit, options) {
    const page = await window(options);
    await page.goto(`${cockpit.url}/cockpit/@localhost/zramd/index.html`);
    return page;
}

export async function closeBrowser() {
    await browser?.close();
    browser = null;
}
