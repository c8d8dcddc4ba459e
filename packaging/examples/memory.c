/* Prints what each zram device saves or loses, then each problem with its remedy.
 * Needs libsystemd: cc memory.c $(pkg-config --cflags --libs libsystemd) */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-bus.h>

static const char *service = "org.zramd1", *root = "/org/zramd1", *manager = "org.zramd1.Manager";

static int devices(sd_bus *bus, sd_bus_error *error) {
    sd_bus_message *reply = NULL;
    const char *name, *path;
    uint64_t saved, lost;
    int result = sd_bus_call_method(bus, service, root, manager, "ListDevices", error, &reply, NULL);
    if (result >= 0)
        result = sd_bus_message_enter_container(reply, 'a', "(sos)");
    while (result >= 0 && (result = sd_bus_message_read(reply, "(sos)", &name, &path, NULL)) > 0) {
        result = sd_bus_get_property_trivial(bus, service, path, "org.zramd1.Device", "SavedBytes", error, 't', &saved);
        if (result >= 0)
            result = sd_bus_get_property_trivial(bus, service, path, "org.zramd1.Device", "LossBytes", error, 't', &lost);
        if (result >= 0)
            printf("%s: %" PRIu64 " bytes saved, %" PRIu64 " lost\n", name, saved, lost);
    }
    sd_bus_message_unref(reply);
    return result;
}

static int problems(sd_bus *bus, sd_bus_error *error) {
    sd_bus_message *reply = NULL;
    const char *level, *message, *remedy;
    int result = sd_bus_get_property(bus, service, root, manager, "ProblemDetails", error, &reply, "a(sssss)");
    if (result >= 0)
        result = sd_bus_message_enter_container(reply, 'a', "(sssss)");
    while (result >= 0 && (result = sd_bus_message_read(reply, "(sssss)", &level, NULL, NULL, &message, &remedy)) > 0)
        printf("%s: %s (%s)\n", level, message, remedy);
    sd_bus_message_unref(reply);
    return result;
}

int main(void) {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus *bus = NULL;
    int result = sd_bus_open_system(&bus);
    if (result >= 0)
        result = devices(bus, &error);
    if (result >= 0)
        result = problems(bus, &error);
    if (result < 0)
        fprintf(stderr, "%s\n", error.message ? error.message : strerror(-result));
    sd_bus_error_free(&error);
    sd_bus_flush_close_unref(bus);
    return result < 0;
}
