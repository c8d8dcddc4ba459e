// What Cockpit's own metrics have recorded, by Performance Co-Pilot.

/** Milliseconds between two samples. */
export const STEP = 30000;

const KIB = 1024;

/**
 * What is asked for. The recordings of a machine need not have all, and a request for one that they do not have fails as a whole, so each
 * row is one: values, rates, and what a sample of the charts has from them and the bytes of a page.
 */
const REQUESTS = [
    [["mem.physmem", "mem.util.available"], [], ([total, available]) => ({ memory: (total - available) * KIB })],
    [[], ["swap.pagesout"], ([out], page) => ({ out: out * page })],
    [[], ["swap.pagesin"], ([came], page) => ({ came: came * page })],
    [[], ["kernel.all.pressure.memory.some.total"], ([waited]) => ({ waited: waited / 1e6 })],
];

/** The samples of one request, from the time `start` on, in milliseconds since 1970. */
function ask([values, rates, read], start, limit, page) {
    const metrics = [...values.map(name => ({ name })), ...rates.map(name => ({ name, derive: "rate" }))];
    return new Promise(resolve => {
        const samples = [];
        let time = 0;
        let last = [];
        const channel = cockpit.channel({ payload: "metrics1", source: "pcp-archive", interval: STEP, timestamp: start, limit, metrics });
        channel.addEventListener("message", (_event, message) => {
            const data = JSON.parse(message);
            if (!Array.isArray(data)) {
                // What comes before the samples, and after each gap.
                time = data.timestamp;
                last = [];
                return;
            }
            for (const changes of data) {
                // What has not changed is left out.
                metrics.forEach((_metric, index) => {
                    const change = [changes[index]].flat()[0];
                    if (change !== null && change !== undefined)
                        last[index] = change;
                });
                if (last.length === metrics.length && last.every(Number.isFinite))
                    samples.push({ time, every: STEP, ...read(last, page) });
                time += STEP;
            }
        });
        // Without recordings, the reason is the same for all: none were made.
        channel.addEventListener("close", () => resolve(samples));
    });
}

/** The samples of this many milliseconds before now, the oldest first; none if nothing is recorded. */
export async function recorded(span) {
    const start = Date.now() - span;
    const page = Number(await cockpit.spawn(["getconf", "PAGESIZE"]));
    const found = await Promise.all(REQUESTS.map(request => ask(request, start, Math.ceil(span / STEP), page)));
    return found.flat().sort((one, other) => one.time - other.time);
}
