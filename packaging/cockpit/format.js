// Amounts and times for people.

const _ = cockpit.gettext;

const UNITS = [_("$0 KiB"), _("$0 MiB"), _("$0 GiB"), _("$0 TiB"), _("$0 PiB"), _("$0 EiB")];

const language = () => cockpit.language?.replace("_", "-") || "en";

/** A number with this many digits after the point, without separators of thousands, as the daemon writes it. */
export function number(value, digits) {
    return value.toLocaleString(language(), { minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping: false });
}

/** Bytes, as the other programs of zramd write them. */
export function bytes(value) {
    if (value < 1024)
        return cockpit.format(_("$0 B"), Math.round(value));
    let power = 0;
    let amount = value / 1024;
    while (amount >= 1023.95 && power < UNITS.length - 1) {
        amount /= 1024;
        power += 1;
    }
    return cockpit.format(UNITS[power], number(amount, 1));
}

/** Bytes a second. */
export function rate(value) {
    return cockpit.format(_("$0/s"), bytes(value));
}

/** A share, 0 to 1. */
export function percent(share) {
    return cockpit.format(_("$0 %"), number(share * 100, 0));
}

/** A ratio. */
export function ratio(value) {
    return value > 0 ? number(value, 2) : "–";
}

/** Nanoseconds as microseconds. */
export function microseconds(nanoseconds) {
    return cockpit.format(_("$0 µs"), number(nanoseconds / 1000, 1));
}

/** The time of day and date of microseconds since 1970. */
export function time(microsecondsSince1970) {
    const date = new Date(microsecondsSince1970 / 1000);
    return date.toLocaleString(language(), { dateStyle: "medium", timeStyle: "short" });
}

/** The time of day of milliseconds since 1970. */
export function clock(millisecondsSince1970) {
    return new Date(millisecondsSince1970).toLocaleTimeString(language(), { timeStyle: "short" });
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
