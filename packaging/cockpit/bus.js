// The daemon, as the bus shows it: all objects with their properties, and the figures that it streams to this page.

const NAME = "org.zramd1";
export const ROOT = "/org/zramd1";
export const MANAGER = "org.zramd1.Manager";
export const DEVICE = "org.zramd1.Device";
export const SWAP = "org.zramd1.Swap";
export const FILESYSTEM = "org.zramd1.Filesystem";
export const RAMDISK = "org.zramd1.RamDisk";
export const BENCHMARK = "org.zramd1.Benchmark";
export const JOB = "org.zramd1.Job";

/** Milliseconds between two figures. */
export const INTERVAL = 2000;
/** After this time without figures, the page asks for them again: the pages of a session share one connection to the bus. */
const SILENCE = 3 * INTERVAL;
/** Seconds after which the figures end by themselves: the daemon does not see that a page was closed. */
const LEASE = 20;

function plain(properties) {
    return Object.fromEntries(Object.entries(properties).map(([name, variant]) => [name, variant.v]));
}

/** Emits `changed` when anything changes, and `figures` with each sample. */
export class Daemon extends EventTarget {
    /** `connecting`, `there`, `gone` or `silent` (it does not answer). */
    state = "connecting";
    /** Why it is gone, if the reason is not that it does not run. */
    reason = "";
    /** Properties by path and interface. */
    objects = new Map();
    /** When the last figures came, in milliseconds since 1970. */
    heard = 0;

    #look = null;
    #change = null;
    #owner = null;
    #timer = null;
    #again = false;
    /** When the figures were last asked for, in milliseconds since 1970. */
    #asked = 0;

    start() {
        this.#connect();
        cockpit.addEventListener("visibilitychange", () => this.#follow());
    }

    /** Properties of an interface of an object; empty without them. */
    get(path, name) {
        return this.objects.get(path)?.[name] || {};
    }

    get manager() {
        return this.get(ROOT, MANAGER);
    }

    /** Objects that have an interface: their paths and all their interfaces, in the order of the numbers in their names. */
    having(name) {
        const found = [...this.objects].filter(([, interfaces]) => name in interfaces);
        return found.map(([path, interfaces]) => ({ path, ...interfaces }))
                .sort((a, b) => a.path.localeCompare(b.path, "en", { numeric: true }));
    }

    /** Calls a method with administrative access, if the user has it. */
    async call(path, name, method, type, ...values) {
        if (!this.#change) {
            const client = cockpit.dbus(NAME, { bus: "system", superuser: "try" });
            client.addEventListener("close", () => {
                this.#change = null;
            });
            this.#change = client;
        }
        return (await this.#change.call(path, name, method, values, { type }))[0];
    }

    /** Calls a method that only reads. */
    async ask(path, name, method, type = "", ...values) {
        return (await this.#look.call(path, name, method, values, { type }))[0];
    }

    /** What the configuration says of a section, by key: section, key, value, what follows, origin, file, line. Empty if the daemon does not tell. */
    async configured(section) {
        const { v: rows } = await this.ask(ROOT, "org.freedesktop.DBus.Properties", "Get", "ss", MANAGER, "Configuration").catch(() => ({ v: [] }));
        return new Map(rows.filter(([name]) => name === section).map(row => [row[1], row]));
    }

    /** Waits for the end of a job. Returns its properties. */
    async ended(path) {
        if (!this.get(path, JOB).Result)
            this.#store(path, JOB, plain(await this.ask(path, "org.freedesktop.DBus.Properties", "GetAll", "s", JOB)));
        return new Promise((resolve, reject) => {
            const look = () => {
                const job = this.get(path, JOB);
                if (job.Result) {
                    this.removeEventListener("changed", look);
                    resolve(job);
                } else if (this.state === "gone" || !("Result" in job)) {
                    this.removeEventListener("changed", look);
                    reject(new Error(cockpit.gettext("zramd has ended before it was done; what it has done stays done")));
                }
            };
            this.addEventListener("changed", look);
            look();
        });
    }

    #connect() {
        const client = cockpit.dbus(NAME, { bus: "system" });
        this.#look = client;
        client.subscribe({ path_namespace: ROOT }, (path, name, signal, values) => this.#receive(path, name, signal, values));
        client.addEventListener("owner", (event, owner) => {
            this.#owner = owner;
            if (owner)
                this.#load(owner);
            else
                this.#lose("");
        });
        client.addEventListener("close", (event, options) => {
            // Newer bridges close a channel to a service that does not run.
            this.#lose(options.problem === "not-found" ? "" : cockpit.message(options));
            this.#timer = setTimeout(() => this.#connect(), SILENCE);
        });
    }

    #lose(reason) {
        clearTimeout(this.#timer);
        this.#owner = null;
        this.objects.clear();
        this.#enter("gone", reason);
    }

    #enter(state, reason = "") {
        this.state = state;
        this.reason = reason;
        this.#emit("changed");
    }

    #emit(name) {
        this.dispatchEvent(new Event(name));
    }

    async #load(owner) {
        try {
            const [objects, manager] = await Promise.all([
                this.ask(ROOT, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects"),
                this.ask(ROOT, "org.freedesktop.DBus.Properties", "GetAll", "s", MANAGER),
            ]);
            if (this.#owner !== owner)
                return;
            this.objects.clear();
            this.#store(ROOT, MANAGER, plain(manager));
            for (const [path, interfaces] of Object.entries(objects))
                this.#add(path, interfaces);
            this.#enter("there");
            await this.#follow();
        } catch (error) {
            // A newer owner has its own call.
            if (this.#owner === owner) {
                this.#enter("silent", error.message);
                this.#listen();
            }
        }
    }

    #add(path, interfaces) {
        for (const [name, properties] of Object.entries(interfaces)) {
            if (name.startsWith(NAME + "."))
                this.#store(path, name, plain(properties));
        }
    }

    #store(path, name, properties) {
        const interfaces = this.objects.get(path) || {};
        interfaces[name] = { ...interfaces[name], ...properties };
        this.objects.set(path, interfaces);
    }

    #receive(path, name, signal, values) {
        if (this.#owner === null)
            return;
        switch (signal) {
        case "InterfacesAdded":
            this.#add(values[0], values[1]);
            break;
        case "InterfacesRemoved": {
            const interfaces = this.objects.get(values[0]) || {};
            values[1].forEach(removed => delete interfaces[removed]);
            if (!Object.keys(interfaces).length)
                this.objects.delete(values[0]);
            break;
        }
        case "PropertiesChanged":
            this.#store(path, values[0], plain(values[1]));
            break;
        case "StatsUpdated":
            this.#figures(path, DEVICE, values[0]);
            return;
        case "UsageUpdated":
        case "SpaceUpdated":
            this.#figures(path, name, values[0]);
            return;
        case "TotalsUpdated":
            this.#figures(path, MANAGER, values[0]);
            this.heard = Date.now();
            this.#again = false;
            this.#listen();
            if (this.heard - this.#asked > LEASE / 3 * 1000)
                this.#follow();
            if (this.state === "silent")
                this.#enter("there");
            // The totals come last.
            this.#emit("figures");
            return;
        case "Finished":
            this.#store(path, JOB, { Result: values[0], Message: values[1], Error: values[2], Outcomes: values[3] });
            break;
        default:
            return;
        }
        this.#emit("changed");
    }

    #figures(path, name, stats) {
        // An object that is gone does not come back by late figures.
        if (this.objects.has(path))
            this.#store(path, name, plain(stats));
    }

    /** Subscribes while the page is visible, and only then. */
    async #follow() {
        if (this.#owner === null)
            return;
        if (cockpit.hidden) {
            this.#unsubscribe();
            return;
        }
        this.#again = false;
        this.#listen();
        try {
            this.#asked = Date.now();
            await this.ask(ROOT, MANAGER, "SubscribeFor", "uaou", INTERVAL, [], LEASE);
        } catch (error) {
            if (this.#owner !== null)
                this.#enter("silent", error.message);
        }
    }

    #unsubscribe() {
        clearTimeout(this.#timer);
        if (this.#owner !== null)
            this.ask(ROOT, MANAGER, "Unsubscribe").catch(() => {});
    }

    /** Notices that no figures come any more. */
    #listen() {
        clearTimeout(this.#timer);
        this.#timer = setTimeout(() => {
            if (this.#again)
                this.#enter("silent");
            if (this.manager.Version)
                this.#follow();
            else
                this.#load(this.#owner);
            this.#again = true;
        }, SILENCE);
    }
}
