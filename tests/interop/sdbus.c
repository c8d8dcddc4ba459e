/* A client of org.zramd1 that shares no code with the daemon: libsystemd's sd-bus, as most C programs use it.
 *
 * usage: sdbus ADDRESS [watch]
 *
 * Prints `ok NAME`, `absent NAME` (no object has it now) or `FAILED NAME: WHY`, one line per check. With `watch` it then
 * prints `watching`, and waits for a device that comes and goes. */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <time.h>
#include <unistd.h>

#define NAME "org.zramd1"
#define ROOT "/org/zramd1"
#define MANAGER "org.zramd1.Manager"
#define DEVICE "org.zramd1.Device"
#define PROPERTIES "org.freedesktop.DBus.Properties"
#define PATIENCE (20 * 1000000ULL)

static sd_bus *bus;
/* The first device and the first swap, or empty. */
static char device[256], swap[256];
/* The result of the latest check. */
static char why[512];

static int fail(const char *format, const char *detail) {
    snprintf(why, sizeof(why), format, detail ? detail : "?");
    return -1;
}

static void report(const char *name, int result) {
    if (result == 0)
        printf("absent %s\n", name);
    else if (result > 0)
        printf("ok %s\n", name);
    else
        printf("FAILED %s: %s\n", name, why[0] ? why : strerror(-result));
    why[0] = 0;
    fflush(stdout);
}

/* Reads a{sv} with values of type t or d, and returns the number of entries. */
static int amounts(sd_bus_message *message) {
    int entries = 0, result = sd_bus_message_enter_container(message, 'a', "{sv}");
    if (result < 0)
        return result;
    while ((result = sd_bus_message_enter_container(message, 'e', "sv")) > 0) {
        const char *name, *contents;
        char type;
        if (sd_bus_message_read(message, "s", &name) < 0 || sd_bus_message_peek_type(message, &type, &contents) < 0)
            return fail("cannot read %s", "an entry");
        if (strcmp(contents, "t") != 0 && strcmp(contents, "d") != 0)
            return fail("%s is no number", name);
        if (sd_bus_message_skip(message, "v") < 0 || sd_bus_message_exit_container(message) < 0)
            return fail("cannot read %s", name);
        entries++;
    }
    if (result < 0 || sd_bus_message_exit_container(message) < 0 || !sd_bus_message_at_end(message, true))
        return fail("%s", "there is something after the dictionary");
    return entries;
}

static int managed_objects(void) {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus_message *reply = NULL;
    const char *path, *interface;
    int result = sd_bus_call_method(bus, NAME, ROOT, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", &error,
                                    &reply, "");
    if (result < 0)
        return fail("%s", error.message);
    sd_bus_message_enter_container(reply, 'a', "{oa{sa{sv}}}");
    while (sd_bus_message_enter_container(reply, 'e', "oa{sa{sv}}") > 0) {
        if (sd_bus_message_read(reply, "o", &path) < 0 || sd_bus_message_enter_container(reply, 'a', "{sa{sv}}") < 0)
            return fail("cannot read %s", "an object");
        while (sd_bus_message_enter_container(reply, 'e', "sa{sv}") > 0) {
            if (sd_bus_message_read(reply, "s", &interface) < 0 || sd_bus_message_skip(reply, "a{sv}") < 0)
                return fail("cannot read %s", path);
            if (!strcmp(interface, DEVICE) && !device[0])
                snprintf(device, sizeof(device), "%s", path);
            if (!strcmp(interface, "org.zramd1.Swap") && !swap[0])
                snprintf(swap, sizeof(swap), "%s", path);
            sd_bus_message_exit_container(reply);
        }
        sd_bus_message_exit_container(reply);
        sd_bus_message_exit_container(reply);
    }
    if (sd_bus_message_exit_container(reply) < 0 || !sd_bus_message_at_end(reply, true))
        return fail("%s", "the reply is not used up");
    sd_bus_message_unref(reply);
    return 1;
}

/* Reads a property; sd-bus returns an error if the type differs. */
static int property(const char *path, const char *interface, const char *name, const char *type) {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus_message *reply = NULL;
    if (!path[0])
        return 0;
    int result = sd_bus_get_property(bus, NAME, path, interface, name, &error, &reply, type);
    if (result < 0)
        return fail("%s", error.message ? error.message : strerror(-result));
    if (sd_bus_message_skip(reply, type) < 0)
        return fail("%s cannot be read", name);
    sd_bus_message_unref(reply);
    return 1;
}

static int version(void) {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    char *text = NULL;
    if (sd_bus_get_property_string(bus, NAME, ROOT, MANAGER, "Version", &error, &text) < 0)
        return fail("%s", error.message);
    return strchr(text, '.') ? 1 : fail("%s is no version", text);
}

static int trivial(void) {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    uint64_t size;
    int managed;
    double ratio;
    if (!device[0])
        return 0;
    if (sd_bus_get_property_trivial(bus, NAME, device, DEVICE, "DiskSizeBytes", &error, 't', &size) < 0 ||
        sd_bus_get_property_trivial(bus, NAME, device, DEVICE, "Managed", &error, 'b', &managed) < 0 ||
        sd_bus_get_property_trivial(bus, NAME, device, DEVICE, "CompressionRatio", &error, 'd', &ratio) < 0)
        return fail("%s", error.message);
    return ratio >= 0 ? 1 : fail("%s", "the ratio is negative");
}

static int list(const char *method) {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus_message *reply = NULL;
    const char *name, *path, *state;
    if (sd_bus_call_method(bus, NAME, ROOT, MANAGER, method, &error, &reply, "") < 0)
        return fail("%s", error.message);
    if (!sd_bus_message_has_signature(reply, "a(sos)") || sd_bus_message_enter_container(reply, 'a', "(sos)") < 0)
        return fail("the type is %s", sd_bus_message_get_signature(reply, true));
    while (sd_bus_message_read(reply, "(sos)", &name, &path, &state) > 0)
        if (strncmp(path, ROOT "/", strlen(ROOT) + 1) || !name[0] || !state[0])
            return fail("%s is not below the root", path);
    sd_bus_message_unref(reply);
    return 1;
}

/* A reply that does not fit into one page. */
static int large(const char *interface, const char *method, const char *begin, size_t least) {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus_message *reply = NULL;
    const char *text;
    if (sd_bus_call_method(bus, NAME, ROOT, interface, method, &error, &reply, "") < 0)
        return fail("%s", error.message);
    if (sd_bus_message_read(reply, "s", &text) < 0 || !strstr(text, begin) || strlen(text) < least)
        return fail("it is not what was expected: %.200s", text);
    sd_bus_message_unref(reply);
    return 1;
}

static int stats(void) {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus_message *reply = NULL;
    if (!device[0])
        return 0;
    if (sd_bus_call_method(bus, NAME, device, DEVICE, "GetStats", &error, &reply, "") < 0)
        return fail("%s", error.message);
    int entries = amounts(reply);
    sd_bus_message_unref(reply);
    return entries < 0 || entries > 20 ? entries : fail("%s", "there are only a few");
}

/* Calls with these arguments, and expects an error with this name. `types` need not be those of the method. */
static int refused(const char *path, const char *interface, const char *method, const char *name, int number,
                   const char *types, ...) {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus_message *call = NULL, *reply = NULL;
    va_list arguments;
    if (sd_bus_message_new_method_call(bus, &call, NAME, path, interface, method) < 0)
        return fail("%s", "no message");
    va_start(arguments, types);
    int result = types[0] ? sd_bus_message_appendv(call, types, arguments) : 0;
    va_end(arguments);
    if (result < 0)
        return fail("%s", strerror(-result));
    result = sd_bus_call(bus, call, PATIENCE, &error, &reply);
    if (result >= 0)
        return fail("%s", "it is accepted");
    if (!sd_bus_error_has_name(&error, name))
        return fail("the error is %s", error.name);
    if (!error.message || !error.message[0])
        return fail("%s says nothing", error.name);
    if (number && sd_bus_error_get_errno(&error) != number)
        return fail("the error number is %s", strerror(sd_bus_error_get_errno(&error)));
    sd_bus_error_free(&error);
    sd_bus_message_unref(call);
    return 1;
}

struct seen {
    const char *path;
    int count;
    int bad;
};

static int on_stats(sd_bus_message *message, void *data, sd_bus_error *error) {
    struct seen *seen = data;
    const char *own;
    (void)error;
    sd_bus_get_unique_name(bus, &own);
    const char *destination = sd_bus_message_get_destination(message);
    if (!destination || strcmp(destination, own) || amounts(message) < 20)
        seen->bad++;
    seen->count++;
    return 0;
}

static int on_object(sd_bus_message *message, void *data, sd_bus_error *error) {
    struct seen *seen = data;
    const char *path;
    (void)error;
    if (sd_bus_message_read(message, "o", &path) < 0)
        seen->bad++;
    else if (!strcmp(sd_bus_message_get_member(message), "InterfacesAdded") &&
             sd_bus_message_skip(message, "a{sa{sv}}") < 0)
        seen->bad++;
    if (!strncmp(path, ROOT "/device/zram", strlen(ROOT "/device/zram")))
        seen->count++;
    return 0;
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

/* Processes messages until `count` have been seen. */
static int wait_for(struct seen *seen, int count) {
    for (uint64_t end = now() + PATIENCE; seen->count < count && now() < end;) {
        int result = sd_bus_process(bus, NULL);
        if (result < 0)
            return fail("%s", strerror(-result));
        if (result == 0)
            sd_bus_wait(bus, 100000);
    }
    if (seen->bad)
        return fail("%s", "what came is not what was promised");
    return seen->count >= count ? 1 : fail("%s", "nothing came");
}

static int subscription(void) {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    struct seen seen = {0};
    sd_bus_slot *slot = NULL;
    if (!device[0])
        return 0;
    if (sd_bus_match_signal(bus, &slot, NAME, NULL, DEVICE, "StatsUpdated", on_stats, &seen) < 0)
        return fail("%s", "no match");
    if (sd_bus_call_method(bus, NAME, ROOT, MANAGER, "Subscribe", &error, NULL, "u", 100) < 0)
        return fail("%s", error.message);
    int result = wait_for(&seen, 3);
    if (sd_bus_call_method(bus, NAME, ROOT, MANAGER, "Unsubscribe", &error, NULL, "") < 0)
        return fail("%s", error.message);
    sd_bus_slot_unref(slot);
    return result;
}

static void watch(void) {
    struct seen added = {0}, removed = {0};
    const char *manager = "org.freedesktop.DBus.ObjectManager";
    if (sd_bus_match_signal(bus, NULL, NAME, ROOT, manager, "InterfacesAdded", on_object, &added) < 0 ||
        sd_bus_match_signal(bus, NULL, NAME, ROOT, manager, "InterfacesRemoved", on_object, &removed) < 0)
        exit(1);
    printf("watching\n");
    fflush(stdout);
    report("InterfacesAdded", wait_for(&added, 1));
    report("InterfacesRemoved", wait_for(&removed, 1));
}

int main(int argc, char **argv) {
    if (argc < 2 || sd_bus_new(&bus) < 0 || sd_bus_set_address(bus, argv[1]) < 0 ||
        sd_bus_set_bus_client(bus, true) < 0 || sd_bus_start(bus) < 0) {
        fprintf(stderr, "cannot reach the bus\n");
        return 1;
    }
    const char *invalid = "org.freedesktop.DBus.Error.InvalidArgs";
    report("GetManagedObjects a{oa{sa{sv}}}", managed_objects());
    report("Version s", version());
    report("trivial t b d", trivial());
    report("State s", property(ROOT, MANAGER, "State", "s"));
    report("Capabilities as", property(ROOT, MANAGER, "Capabilities", "as"));
    report("Problems a(sss)", property(ROOT, MANAGER, "Problems", "a(sss)"));
    report("ProblemDetails a(sssss)", property(ROOT, MANAGER, "ProblemDetails", "a(sssss)"));
    report("DiskSizeBytes t", property(device, DEVICE, "DiskSizeBytes", "t"));
    report("Managed b", property(device, DEVICE, "Managed", "b"));
    report("CompressionRatio d", property(device, DEVICE, "CompressionRatio", "d"));
    report("AlgorithmParameters a{ss}", property(device, DEVICE, "AlgorithmParameters", "a{ss}"));
    report("RecompressionAlgorithms a(us)", property(device, DEVICE, "RecompressionAlgorithms", "a(us)"));
    report("Priority i", property(swap, "org.zramd1.Swap", "Priority", "i"));
    report("ListDevices a(sos)", list("ListDevices"));
    report("ListRamDisks a(sos)", list("ListRamDisks"));
    report("Describe", large(MANAGER, "Describe", "\"schema_version\":1", 200));
    report("Introspect", large("org.freedesktop.DBus.Introspectable", "Introspect", "<interface name=\"" MANAGER, 4096));
    report("GetStats a{sv}", stats());
    report("NotFound", refused(ROOT, MANAGER, "GetDevice", "org.zramd1.Error.NotFound", 0, "s", "zram4000000"));
    report("InvalidArgument", refused(ROOT, MANAGER, "Subscribe", "org.zramd1.Error.InvalidArgument", 0, "u", 0));
    report("unknown option", refused(ROOT, MANAGER, "Plan", "org.zramd1.Error.InvalidArgument", 0, "a{sv}", 1, "x", "b", 1));
    report("UnknownMethod", refused(ROOT, MANAGER, "Nothing", SD_BUS_ERROR_UNKNOWN_METHOD, EBADR, ""));
    report("UnknownObject", refused(ROOT "/device/zram4000000", DEVICE, "GetStats", SD_BUS_ERROR_UNKNOWN_OBJECT, EBADR, ""));
    report("UnknownInterface", refused(ROOT, DEVICE, "GetStats", SD_BUS_ERROR_UNKNOWN_INTERFACE, EBADR, ""));
    report("UnknownProperty", refused(ROOT, PROPERTIES, "Get", SD_BUS_ERROR_UNKNOWN_PROPERTY, EBADR, "ss", MANAGER, "Nothing"));
    /* Without root, the bus policy refuses the call. */
    int root = geteuid() == 0;
    report("a property is set", refused(ROOT, PROPERTIES, "Set", root ? SD_BUS_ERROR_PROPERTY_READ_ONLY : SD_BUS_ERROR_ACCESS_DENIED,
                                        root ? EROFS : EACCES, "ssv", MANAGER, "State", "s", "x"));
    report("a string for a number", refused(ROOT, MANAGER, "Subscribe", invalid, EINVAL, "s", "100"));
    report("too few arguments", refused(ROOT, MANAGER, "GetDevice", invalid, EINVAL, ""));
    report("a number for a string", refused(ROOT, MANAGER, "GetDevice", invalid, EINVAL, "t", (uint64_t)1));
    report("a string for options", refused(ROOT, MANAGER, "Plan", invalid, EINVAL, "s", "force"));
    report("too many arguments", refused(ROOT, MANAGER, "GetDevice", invalid, EINVAL, "ss", "zram0", "zram1"));
    /* zbus ignores arguments of methods that take none. */
    report("arguments for nothing", sd_bus_call_method(bus, NAME, ROOT, MANAGER, "Describe", NULL, NULL, "s", "x"));
    report("a number for an interface", refused(ROOT, PROPERTIES, "GetAll", invalid, EINVAL, "u", 1));
    report("StatsUpdated", subscription());
    if (argc > 2)
        watch();
    sd_bus_flush_close_unref(bus);
    return 0;
}
