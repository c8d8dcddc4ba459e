// The JSON schema of the configuration: which values a key can have.

const _ = cockpit.gettext;
const PATH = "/usr/share/zramd/zramd.schema.json";

/** The schemas of the keys of devices and RAM disks; empty if the file cannot be read: the daemon checks in any case. */
export async function load() {
    const text = await cockpit.file(PATH).read().catch(() => null);
    const schema = text ? JSON.parse(text) : {};
    const device = Object.entries(schema.patternProperties || {}).find(([pattern]) => pattern.startsWith("^zram"));
    return {
        device: device?.[1].properties || {},
        ramdisk: schema.properties?.ramdisk?.additionalProperties?.properties || {},
    };
}

/** The values that a key can have, for people. */
function allowed(schema) {
    return schema?.description?.split("\n").at(-1) || "";
}

function range({ minimum, maximum }) {
    if (minimum !== undefined && maximum !== undefined)
        return cockpit.format(_("Allowed: $0 to $1"), minimum, maximum);
    return minimum !== undefined ? cockpit.format(_("Allowed: $0 or more"), minimum) : cockpit.format(_("Allowed: $0 or less"), maximum);
}

/** Why a text is not a value of this schema; empty if it is one, or if only the daemon can tell. */
export function mistake(schema, text) {
    if (!schema || text === "")
        return "";
    const kinds = schema.anyOf || [schema];
    const number = Number(text);
    const isNumber = Number.isFinite(number);
    const wrong = kinds.map(kind => {
        if (kind.enum)
            return kind.enum.includes(text) ? "" : cockpit.format(_("Allowed: $0"), kind.enum.join(", "));
        if (kind.type === "integer" || kind.type === "number") {
            if (!isNumber || (kind.type === "integer" && !Number.isInteger(number)))
                return "minimum" in kind || "maximum" in kind ? range(kind) : _("This is not a number");
            return number < (kind.minimum ?? -Infinity) || number > (kind.maximum ?? Infinity) ? range(kind) : "";
        }
        // A number is no text here.
        if (kind.type === "string" && !isNumber)
            return !kind.pattern || new RegExp(kind.pattern).test(text) ? "" : allowed(schema);
        return allowed(schema);
    });
    return wrong.includes("") ? "" : wrong[0];
}

/** Why a list has too many items for this schema; empty if it has not. */
export function tooMany(schema, items) {
    const most = schema?.anyOf?.find(kind => kind.type === "array")?.maxItems ?? Infinity;
    return items.length > most ? cockpit.format(_("Allowed: at most $0"), most) : "";
}
