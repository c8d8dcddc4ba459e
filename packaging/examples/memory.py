#!/usr/bin/python3
"""Prints what each zram device saves or loses, then each problem with its remedy. Needs PyGObject (Debian: python3-gi)."""

from gi.repository import Gio

objects = Gio.DBusObjectManagerClient.new_for_bus_sync(
    Gio.BusType.SYSTEM, Gio.DBusObjectManagerClientFlags.NONE, "org.zramd1", "/org/zramd1", None, None, None)
for found in objects.get_objects():
    device = found.get_interface("org.zramd1.Device")
    if device:
        # For a counter the proxy has the value of the time when it was made; ask again, or use Subscribe.
        name, saved, lost = (device.get_cached_property(key).unpack() for key in ("Name", "SavedBytes", "LossBytes"))
        print(f"{name}: {saved} bytes saved, {lost} lost")

manager = Gio.DBusProxy.new_for_bus_sync(
    Gio.BusType.SYSTEM, Gio.DBusProxyFlags.NONE, None, "org.zramd1", "/org/zramd1", "org.zramd1.Manager", None)
for level, _code, _object, message, remedy in manager.get_cached_property("ProblemDetails").unpack():
    print(f"{level}: {message} ({remedy})")
