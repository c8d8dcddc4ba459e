# shellcheck shell=bash
# Common to init-openrc, init-runit and init-sysvinit: a Debian with another init than systemd, and zramd's scripts for it. Each has a
# function `starts_the_stage` for the end of its boot.

# For `prepare`: replaces systemd by these packages, in an order in which they can be configured, and installs the scripts with
# the first block of commands below this heading in other-inits.md.
other_init() {
    local heading=$1 package packages=() script excluded=()
    shift
    for package; do
        packages+=(/var/cache/lab/"$package"_*.deb)
    done
    # What no scenario is about and only costs time.
    for script in bootlogs brightness hwclock.sh killprocs kmod mount-configfs mountnfs.sh mountnfs-bootclean.sh rc.local rmnologin \
        single urandom; do
        excluded+=(--path-exclude="/etc/init.d/$script")
    done
    export PATH DEBIAN_FRONTEND=noninteractive
    dpkg --purge --force-depends --force-remove-protected libpam-systemd systemd-sysv systemd
    dpkg --install --force-depends --force-unsafe-io "${excluded[@]}" "${packages[@]}"
    sh -euxc "$(awk -v heading="$heading" -v number=1 -f /lab/guest/readme-block /usr/share/doc/zramd/other-inits.md)"
    file /etc/zramd/zramd.toml <<'END'
[zram0]
zram-size = "64MiB"
swap-priority = 42

[ramdisk.data]
mount-point = "/data"
size = "16MiB"
persist = "snapshot"
save-interval = "never"
store = "/store/data"
pre-save = "/usr/local/bin/before"
END
    file /usr/local/bin/before 755 <<'END'
#!/bin/sh
echo "lab: saving: $ZRAMD_REASON" >/dev/kmsg
END
    mkdir /store
    echo '/dev/ubdb /store ext4 defaults 0 0' >>/etc/fstab
    mkfs.ext4 -q /dev/ubdb
    starts_the_stage
}

# Two boots. In between, a program writes to the RAM disk on SIGTERM, and the store is on a disk of its own.
first_boot() {
    as_configured 42
    ok 'killed, the daemon is started again' revived
    ok 'it changes a device, and the configuration' zramdctl set zram0 swap-priority=43
    is 'the swap has the new priority' "$(swap_field zram0 5)" 43
    echo first >/data/file
    setsid python3 -c "$LAST_WORDS" &
    ok 'a program uses the RAM disk' eventually 10 test -e /run/writing
    echo 'lab: the last moments' >/dev/kmsg
}
LAST_WORDS='
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
file = open("/data/file", "a")
open("/run/writing", "w")
signal.sigwait([signal.SIGTERM])
file.write("last\n")
'

second_boot() {
    as_configured 43
    is 'the RAM disk has what was written before and while processes were ended' "$(xargs </data/file)" 'first last'
    is 'it was saved, then all was removed, then its store was unmounted' "$(last_moments)" \
        'saving: stop,zram0: detected capacity change from 131072 to 0,EXT4-fs (ubdb): unmounting filesystem'
}
last_moments() {
    sed -n '/lab: the last moments/,/reboot: Restarting/p' "$LAB_OUT/console.txt" |
        grep -aoE 'saving: .*|zram0: .* to 0|EXT4-fs \(ubdb\): unmounting filesystem' |
        # First in any case, and again after it is unmounted, with what was written in between.
        uniq | paste -sd,
}

as_configured() {
    not_ok 'systemd is not there' test -e /run/systemd/system -o -e /usr/lib/systemd/systemd
    is 'the swap is on' "$(swap_field zram0 5)" "$1"
    ok 'the RAM disk is mounted' mountpoint -q /data
    ok 'the daemon answers' eventually 10 answers
}
answers() {
    dbus-send --system --print-reply --dest=org.zramd1 /org/zramd1/device/zram0 org.freedesktop.DBus.Properties.Get \
        string:org.zramd1.Swap string:Active | grep 'boolean true'
}

revived() {
    local pid
    pid=$(pidof zramd) && kill -KILL "$pid" && eventually 10 others "$pid" && eventually 10 answers
}
others() { [[ $(pidof zramd || echo "$1") != "$1" ]]; }
