/* Reads every object of org.zramd1 with the bindings that gdbus-codegen(1) makes from packaging/interfaces.
 *
 * Prints `PATH INTERFACE` for each interface whose properties all have a value of the right type, then a few values by
 * their generated functions. */

#include "bindings.h"

static GMainLoop *loop;

static void fail(GError *error, const char *what) {
    if (error)
        g_error("%s: %s", what, error->message);
}

static void check(GDBusProxy *proxy) {
    const GDBusInterfaceInfo *info = g_dbus_proxy_get_interface_info(proxy);
    for (GDBusPropertyInfo **property = info->properties; property && *property; property++) {
        GVariant *value = g_dbus_proxy_get_cached_property(proxy, (*property)->name);
        if (!value || !g_variant_is_of_type(value, G_VARIANT_TYPE((*property)->signature)))
            g_error("%s has no value", (*property)->name);
        g_variant_unref(value);
    }
    g_print("%s %s\n", g_dbus_proxy_get_object_path(proxy), g_dbus_proxy_get_interface_name(proxy));
}

static void updated(ZramdDevice *device, GVariant *stats, gpointer data) {
    guint64 peak;
    (void)device, (void)data;
    if (!g_variant_lookup(stats, "MemoryPeakBytes", "t", &peak))
        g_error("no MemoryPeakBytes in StatsUpdated");
    g_main_loop_quit(loop);
}

static gboolean too_late(gpointer data) {
    (void)data;
    g_error("StatsUpdated does not come");
    return G_SOURCE_REMOVE;
}

int main(void) {
    GError *error = NULL;
    GVariant *devices = NULL, *stats = NULL;
    gchar *json = NULL;
    /* A warning, such as that of GDBus about a value of the wrong type, ends the program. */
    g_log_set_always_fatal(G_LOG_LEVEL_WARNING | G_LOG_LEVEL_CRITICAL | G_LOG_FATAL_MASK);
    ZramdManager *manager = zramd_manager_proxy_new_for_bus_sync(G_BUS_TYPE_SYSTEM, G_DBUS_PROXY_FLAGS_NONE, "org.zramd1",
                                                                 "/org/zramd1", NULL, &error);
    fail(error, "manager");
    check(G_DBUS_PROXY(manager));
    g_print("Version %s\n", zramd_manager_get_version(manager));
    zramd_manager_call_list_devices_sync(manager, &devices, NULL, &error);
    fail(error, "ListDevices");
    g_print("ListDevices %" G_GSIZE_FORMAT "\n", g_variant_n_children(devices));
    zramd_manager_call_describe_sync(manager, &json, NULL, &error);
    fail(error, "Describe");

    GDBusObjectManager *objects = zramd_object_manager_client_new_for_bus_sync(
        G_BUS_TYPE_SYSTEM, G_DBUS_OBJECT_MANAGER_CLIENT_FLAGS_NONE, "org.zramd1", "/org/zramd1", NULL, &error);
    fail(error, "objects");
    loop = g_main_loop_new(NULL, FALSE);
    int readable = 0;
    GList *list = g_dbus_object_manager_get_objects(objects);
    for (GList *object = list; object; object = object->next) {
        GList *interfaces = g_dbus_object_get_interfaces(object->data);
        for (GList *interface = interfaces; interface; interface = interface->next)
            if (g_str_has_prefix(g_dbus_proxy_get_interface_name(interface->data), "org.zramd1."))
                check(interface->data);
        g_list_free_full(interfaces, g_object_unref);
        ZramdDevice *device = zramd_object_peek_device(object->data);
        if (!device)
            continue;
        g_print("%s %" G_GUINT64_FORMAT "\n", zramd_device_get_name(device), zramd_device_get_disk_size_bytes(device));
        zramd_device_call_get_stats_sync(device, &stats, NULL, &error);
        fail(error, "GetStats");
        g_signal_connect(device, "stats-updated", G_CALLBACK(updated), NULL);
        readable++;
    }
    if (readable) {
        zramd_manager_call_subscribe_sync(manager, 100, NULL, &error);
        fail(error, "Subscribe");
        g_timeout_add_seconds(20, too_late, NULL);
        g_main_loop_run(loop);
        g_print("StatsUpdated\n");
    }
    return 0;
}
