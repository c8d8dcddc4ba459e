// A real Cockpit and a real zramd on a private system bus, and a browser.

import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { chromium } from "playwright-core";

export const REPOSITORY = path.resolve(import.meta.dirname, "../..");
const PROGRAMS = path.join(process.env.CARGO_TARGET_DIR || path.join(REPOSITORY, "target"), "release");
const BROWSER = process.env.CHROMIUM || "/usr/bin/chromium";
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

/** Starts a program that ends with this one, and is ended by this signal. */
function start(program, words, { signal = "SIGTERM", ...options } = {}) {
    const child = spawn("setpriv", ["--pdeathsig", "KILL", program, ...words], { stdio: ["ignore", "pipe", "inherit"], ...options });
    children.add(child);
    child.signal = signal;
    child.ended = new Promise(resolve => child.on("exit", (code, signal) => {
        children.delete(child);
        resolve({ code, signal });
    }));
    return child;
}

async function end(child, signal = child?.signal) {
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
        try {
            await rig.setUp(config);
        } catch (error) {
            for (const child of [...children])
                await end(child);
            throw error;
        }
        return rig;
    }

    async setUp(config) {
        this.directory = fs.mkdtempSync(path.join(os.tmpdir(), "zramd-cockpit-"));
        fs.chmodSync(this.directory, 0o755);
        fs.mkdirSync(path.join(this.directory, "etc"));
        fs.mkdirSync(path.join(this.directory, "var"));
        this.write(config);
        execFileSync(path.join(REPOSITORY, "packaging/install"), ["--cockpit", "--destdir", this.directory]);
        fs.mkdirSync(path.join(this.directory, "usr/share/zramd"));
        fs.copyFileSync(path.join(REPOSITORY, "config/zramd.schema.json"), path.join(this.directory, "usr/share/zramd/zramd.schema.json"));
        fs.mkdirSync(path.join(this.directory, "usr/bin"));
        fs.symlinkSync(path.join(PROGRAMS, "zramdctl"), path.join(this.directory, "usr/bin/zramdctl"));
        // Writes down what it is asked for, or refuses.
        fs.writeFileSync(path.join(this.directory, "usr/bin/systemctl"), `#!/bin/sh
[ "$(cat ${this.directory}/systemctl)" != refuse ] || { echo 'Failed to enable unit' >&2; exit 1; }
echo "$*" >${this.directory}/systemctl
`, { mode: 0o755 });
        await this.makePlace();
        await this.startBus();
        await this.startDaemon();
    }

    write(config) {
        fs.writeFileSync(path.join(this.directory, "etc/zramd.toml"), config);
    }

    /** What the page has asked systemctl for, while that is to accept it: there is no systemd here. */
    get systemctl() {
        return fs.readFileSync(path.join(this.directory, "systemctl"), "utf8");
    }

    set systemctl(text) {
        fs.writeFileSync(path.join(this.directory, "systemctl"), text);
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
        // It refuses users that it does not know.
        this.bus = this.startInside("dbus-daemon", ["--nofork", "--nopidfile", "--nosyslog", "--print-address=1", `--config-file=${file}`]);
        this.address = await firstLine(this.bus);
        this.environment = { ...process.env, DBUS_SYSTEM_BUS_ADDRESS: this.address };
    }

    async startDaemon() {
        this.daemon = this.startInside(path.join(PROGRAMS, "zramd"), [], { env: this.environment, stdio: ["ignore", "inherit", "inherit"] });
        execFileSync("gdbus", ["wait", "--address", this.address, "--timeout", "30", "org.zramd1"]);
    }

    /**
     * The mount namespace of bus and daemon, with directories of the test as /etc/zramd and /var/lib/zramd, and no systemd. It also
     * has the page where it is installed, the bus where programs look for it, and a user who may become administrator.
     */
    async makePlace() {
        this.user = { name: "zramd-visitor", password: crypto.randomUUID() };
        const own = path.join(this.directory, "place");
        const hide = fs.existsSync("/run/systemd/system") ? "mount -t tmpfs none /run/systemd" : "true";
        const bind = (from, to) => `mkdir -p ${to} && mount --bind ${this.directory}/${from} ${to}`;
        const script = `mkdir ${own} && mount -t tmpfs none ${own} && mkdir ${own}/etc ${own}/work
            mount -t overlay none -o lowerdir=/etc,upperdir=${own}/etc,workdir=${own}/work /etc
            mount -t tmpfs none /home
            useradd --create-home --shell /bin/sh --groups sudo ${this.user.name}
            echo "${this.user.name}:$PASSWORD" | chpasswd
            echo DBUS_SESSION_BUS_ADDRESS=unix:path=/home/${this.user.name}/bus >>/etc/environment
            mount -t overlay none -o lowerdir=${this.directory}/usr:/usr /usr
            mkdir -p /run/dbus && mount -t tmpfs none /run/dbus && ln -s ${this.directory}/socket /run/dbus/system_bus_socket
            mkdir -p /var/log/pcp && mount -t tmpfs none /var/log/pcp
            ${bind("etc", "/etc/zramd")} && ${bind("var", "/var/lib/zramd")} && ${hide}
            echo ready && exec env -u PASSWORD sleep infinity`;
        this.place = start("unshare", ["--mount", "--propagation", "private", "sh", "-ec", script],
                           { env: { ...process.env, PASSWORD: this.user.password } });
        await firstLine(this.place);
    }

    /** Starts a program in the mount namespace of the daemon. */
    startInside(program, words, options) {
        return start("nsenter", [`--mount=/proc/${this.place.pid}/ns/mnt`, program, ...words], options);
    }

    async stopDaemon(signal = "SIGTERM") {
        await end(this.daemon, signal);
    }

    /** Runs a program in the mount namespace of the daemon. */
    inside(program, ...words) {
        const namespace = `--mount=/proc/${this.place.pid}/ns/mnt`;
        return execFileSync("nsenter", [namespace, program, ...words], { env: this.environment, encoding: "utf8", stdio: "pipe" });
    }

    /** The file of lasting changes. */
    dropIn() {
        return fs.readFileSync(path.join(this.directory, "etc/zramd.toml.d/99-zramdctl.toml"), "utf8");
    }

    /** Whether Cockpit can show recordings of Performance Co-Pilot here: by a program of its own (Debian 12) or its bridge (Debian 13). */
    static hasHistory = ["/usr/lib/cockpit/cockpit-pcp", "/usr/lib/python3/dist-packages/cockpit/channels/pcp.py"].some(fs.existsSync) &&
        fs.existsSync("/usr/lib/python3/dist-packages/pcp");

    /** Has this many minutes recorded, as tests/cockpit/record-history says. */
    record(minutes) {
        this.inside("sh", "-ec", `ldconfig
            directory=/var/log/pcp/pmlogger/$(hostname)
            mkdir -p $directory
            /usr/bin/python3 ${import.meta.dirname}/record-history $directory/20200101 ${minutes}`);
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
        };
        const user = as ? [`--reuid=${as}`, `--regid=${as}`, "--clear-groups"] : [];
        const server = this.startInside("setpriv", ["--pdeathsig", "KILL", ...user, "/usr/lib/cockpit/cockpit-ws",
            "--local-session=cockpit-bridge", "--no-tls", "--address=127.0.0.1", `--port=${port}`], { env });
        await connects(port, server);
        return { url: `http://127.0.0.1:${port}`, stop: () => end(server) };
    }

    /** A Cockpit with its login page, PAM and sudo. All processes of its sessions end with it. */
    async login() {
        const port = await freePort();
        // The bus of the session, which systemd would start. Newer servers start sessions through another socket of systemd.
        const { name } = this.user;
        const script = `setpriv --reuid=${name} --regid=${name} --init-groups \
                dbus-daemon --session --fork --nosyslog --address=unix:path=/home/${name}/bus
            if grep -q /run/cockpit/session /usr/lib/cockpit/cockpit-ws; then
                mkdir -p /run/cockpit && mount -t tmpfs none /run/cockpit
                systemd-socket-activate --accept --inetd --listen=/run/cockpit/session /usr/lib/cockpit/cockpit-session &
            fi
            exec /usr/lib/cockpit/cockpit-ws --no-tls --address=127.0.0.1 --port=${port}`;
        const server = this.startInside("unshare", ["--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-ec", script],
                                        { signal: "SIGKILL" });
        await connects(port, server);
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
        fs.rmSync(this.directory, { recursive: true });
        for (const mountPoint of ["/etc/zramd", "/var/lib/zramd", "/var/log/pcp"]) {
            // It stays if it has files.
            if (fs.existsSync(mountPoint) && !fs.readdirSync(mountPoint).length)
                fs.rmdirSync(mountPoint);
        }
    }
}

/** Waits until this server listens. */
async function connects(port, server) {
    while (children.has(server)) {
        const done = await new Promise(resolve => {
            const socket = net.connect(port, "127.0.0.1", () => resolve(true));
            socket.on("error", () => resolve(false));
            socket.on("connect", () => socket.destroy());
        });
        if (done)
            return;
        await new Promise(resolve => setTimeout(resolve, 20));
    }
    throw new Error("the server has ended");
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
