// Amounts and times for people.

const _ = cockpit.gettext;

const UNITS = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
/** "The largest number" on the bus, which JavaScript rounds. */
const LARGEST = 2 ** 64 - 2 ** 12;

function number(value, digits) {
    return value.toLocaleString(cockpit.language?.replace("_", "-") || "en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** Bytes, as the other programs of zramd write them. */
export function bytes(value) {
    if (value < 1024)
        return `${value} B`;
    let power = 0;
    let amount = value / 1024;
    while (amount >= 1023.95 && power < UNITS.length - 1) {
        amount /= 1024;
        power += 1;
    }
    return `${number(amount, 1)} ${UNITS[power]}`;
}

/** Bytes, or a word for "no limit". */
export function limit(value) {
    return value === 0 || value >= LARGEST ? _("none") : bytes(value);
}

/** A ratio. */
export function ratio(value) {
    return value > 0 ? number(value, 2) : "–";
}

/** Nanoseconds as microseconds. */
export function microseconds(nanoseconds) {
    return `${number(nanoseconds / 1000, 1)} µs`;
}

/** The time of day and date of microseconds since 1970. */
export function time(microsecondsSince1970) {
    const date = new Date(microsecondsSince1970 / 1000);
    return date.toLocaleString(cockpit.language?.replace("_", "-") || "en", { dateStyle: "medium", timeStyle: "short" });
}

/** The same as an element of a table; never is "–". */
export function timeOrNever(microsecondsSince1970) {
    return microsecondsSince1970 ? time(microsecondsSince1970) : "–";
}

/** Bytes as a configuration file has them, without rounding. */
export function exactly(value) {
    for (const [power, unit] of [[4, "TiB"], [3, "GiB"], [2, "MiB"], [1, "KiB"]]) {
        if (value > 0 && value % 1024 ** power === 0)
            return `${value / 1024 ** power}${unit}`;
    }
    return `${value}B`;
}
