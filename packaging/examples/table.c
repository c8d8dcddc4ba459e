/* Prints the table of zramctl from the bus: one line for each zram device that is set up. With --follow, prints it again
 * when something in it has changed.
 * Needs libsystemd: cc table.c $(pkg-config --cflags --libs libsystemd) */

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>

static const char *service = "org.zramd1", *root = "/org/zramd1";
static const char *const headings[] = {"NAME", "ALGORITHM", "DISKSIZE", "DATA", "COMPR", "TOTAL", "STREAMS", "MOUNTPOINT"};
enum { NAME, ALGORITHM, DISKSIZE, DATA, COMPR, TOTAL, STREAMS, MOUNTPOINT, COLUMNS };
enum { MOST = 64, WIDEST = 256 };

typedef struct {
    bool is_device;
    char cells[COLUMNS][WIDEST];
} row;

/* An amount as zramctl writes it: 83.7M, 256M, 68B. */
static void amount(char *cell, uint64_t bytes) {
    double units = (double)bytes;
    unsigned power = 0;
    for (; units >= 1023.95 && power < 6; power++)
        units /= 1024;
    unsigned tenths = (unsigned)(units * 10 + 0.5);
    if (tenths % 10)
        snprintf(cell, WIDEST, "%u.%u%c", tenths / 10, tenths % 10, "BKMGTPE"[power]);
    else
        snprintf(cell, WIDEST, "%u%c", tenths / 10, "BKMGTPE"[power]);
}

/* Reads the properties of an interface into the cells of a row. */
static int properties(sd_bus_message *reply, const char *interface, row *row) {
    static const struct { const char *interface, *name; int column; } wanted[] = {
        {"org.zramd1.Device", "Name", NAME},
        {"org.zramd1.Device", "Algorithm", ALGORITHM},
        {"org.zramd1.Device", "DiskSizeBytes", DISKSIZE},
        {"org.zramd1.Device", "OriginalDataBytes", DATA},
        {"org.zramd1.Device", "CompressedDataBytes", COMPR},
        {"org.zramd1.Device", "MemoryUsedBytes", TOTAL},
        {"org.zramd1.Device", "Streams", STREAMS},
        {"org.zramd1.Swap", "Active", MOUNTPOINT},
        {"org.zramd1.Filesystem", "MountPoint", MOUNTPOINT},
    };
    const char *name, *text;
    uint64_t bytes;
    uint32_t number;
    int result = sd_bus_message_enter_container(reply, 'a', "{sv}"), is_true;
    while (result >= 0 && (result = sd_bus_message_enter_container(reply, 'e', "sv")) > 0) {
        char *cell = NULL;
        if ((result = sd_bus_message_read(reply, "s", &name)) < 0)
            return result;
        for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
            if (!strcmp(wanted[i].interface, interface) && !strcmp(wanted[i].name, name))
                cell = row->cells[wanted[i].column];
        if (!cell)
            result = sd_bus_message_skip(reply, "v");
        else if (cell == row->cells[NAME]) {
            if ((result = sd_bus_message_read(reply, "v", "s", &text)) >= 0)
                snprintf(cell, WIDEST, "/dev/%s", text);
        } else if (cell == row->cells[STREAMS]) {
            /* 0 is no limit: Linux 6.15 and later. */
            if ((result = sd_bus_message_read(reply, "v", "u", &number)) >= 0 && number)
                snprintf(cell, WIDEST, "%" PRIu32, number);
        } else if (!strcmp(name, "Active")) {
            if ((result = sd_bus_message_read(reply, "v", "b", &is_true)) >= 0 && is_true)
                snprintf(cell, WIDEST, "[SWAP]");
        } else if (cell == row->cells[ALGORITHM] || cell == row->cells[MOUNTPOINT]) {
            if ((result = sd_bus_message_read(reply, "v", "s", &text)) >= 0)
                snprintf(cell, WIDEST, "%s", text);
        } else if ((result = sd_bus_message_read(reply, "v", "t", &bytes)) >= 0) {
            amount(cell, bytes);
            row->is_device |= cell == row->cells[DISKSIZE] && bytes;
        }
        if (result >= 0)
            result = sd_bus_message_exit_container(reply);
    }
    return result < 0 ? result : sd_bus_message_exit_container(reply);
}

/* Reads all devices in one call, and returns their number. */
static int devices(sd_bus *bus, row *rows, sd_bus_error *error) {
    sd_bus_message *reply = NULL;
    const char *interface;
    int count = 0;
    int result = sd_bus_call_method(bus, service, root, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", error,
                                    &reply, NULL);
    if (result >= 0)
        result = sd_bus_message_enter_container(reply, 'a', "{oa{sa{sv}}}");
    while (result >= 0 && count < MOST && (result = sd_bus_message_enter_container(reply, 'e', "oa{sa{sv}}")) > 0) {
        row *row = memset(&rows[count], 0, sizeof(*rows));
        if ((result = sd_bus_message_skip(reply, "o")) >= 0)
            result = sd_bus_message_enter_container(reply, 'a', "{sa{sv}}");
        while (result >= 0 && (result = sd_bus_message_enter_container(reply, 'e', "sa{sv}")) > 0) {
            if ((result = sd_bus_message_read(reply, "s", &interface)) >= 0)
                result = properties(reply, interface, row);
            if (result >= 0)
                result = sd_bus_message_exit_container(reply);
        }
        if (result >= 0)
            result = sd_bus_message_exit_container(reply);
        if (result >= 0)
            result = sd_bus_message_exit_container(reply);
        count += row->is_device;
    }
    sd_bus_message_unref(reply);
    return result < 0 ? result : count;
}

static int by_number(const void *a, const void *b) {
    const row *first = a, *second = b;
    return atoi(first->cells[NAME] + strlen("/dev/zram")) - atoi(second->cells[NAME] + strlen("/dev/zram"));
}

static void print(const row *rows, int count) {
    int widths[COLUMNS];
    for (int column = 0; column < COLUMNS; column++) {
        widths[column] = (int)strlen(headings[column]);
        for (int i = 0; i < count; i++)
            if ((int)strlen(rows[i].cells[column]) > widths[column])
                widths[column] = (int)strlen(rows[i].cells[column]);
    }
    for (int i = -1; i < count; i++)
        for (int column = 0; column < COLUMNS; column++) {
            const char *cell = i < 0 ? headings[column] : rows[i].cells[column];
            /* Figures are aligned to the right. */
            int width = column == MOUNTPOINT ? 0 : column <= ALGORITHM ? -widths[column] : widths[column];
            printf("%*s%c", width, *cell ? cell : "-", column == MOUNTPOINT ? '\n' : ' ');
        }
    fflush(stdout);
}

static int on_signal(sd_bus_message *message, void *changed, sd_bus_error *error) {
    (void)message, (void)error;
    *(bool *)changed = true;
    return 0;
}

int main(int argc, char **argv) {
    static row rows[MOST], printed[MOST];
    bool follows = argc > 1 && !strcmp(argv[1], "--follow"), changed = false;
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus *bus = NULL;
    int before = -1, result = sd_bus_open_system(&bus);
    /* Objects that come and go, properties that change, and counters once a second. */
    if (result >= 0 && follows)
        result = sd_bus_add_match(bus, NULL, "type='signal',sender='org.zramd1',path_namespace='/org/zramd1'", on_signal,
                                  &changed);
    if (result >= 0 && follows)
        result = sd_bus_call_method(bus, service, root, "org.zramd1.Manager", "Subscribe", &error, NULL, "u", 1000);
    while (result >= 0) {
        int count = result = devices(bus, rows, &error);
        if (result < 0)
            break;
        qsort(rows, (size_t)count, sizeof(*rows), by_number);
        if (count != before || memcmp(rows, printed, (size_t)count * sizeof(*rows)))
            print(rows, count);
        memcpy(printed, rows, sizeof(rows));
        before = count;
        for (changed = false; follows && !changed && result >= 0;)
            if ((result = sd_bus_process(bus, NULL)) == 0)
                result = sd_bus_wait(bus, UINT64_MAX);
        if (!follows)
            break;
    }
    if (result < 0)
        fprintf(stderr, "%s\n", error.message ? error.message : strerror(-result));
    sd_bus_error_free(&error);
    sd_bus_flush_close_unref(bus);
    return result < 0;
}
