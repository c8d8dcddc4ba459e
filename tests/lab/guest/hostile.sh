# shellcheck shell=bash disable=SC2154 # From lib.sh.
# What hostile-user and soak share: a machine with a hostile user on it, and the operations of root beside that user.

# For `prepare`: swap, a RAM disk that the user can write to, the user, and the service in which the user attacks.
hostile_machine() {
    enable_zramd
    file /etc/zramd/zramd.toml <<'END'
[zram0]
zram-size = "96MiB"
compression-algorithm = "lz4"
swap-priority = 100

[ramdisk.data]
mount-point = "/data"
size = "48MiB"
mode = "1777"
persist = "snapshot"
save-interval = "never"
keep = 2
END
    echo 'mallory:x:1000:1000::/home/mallory:/bin/bash' >>/etc/passwd
    echo 'mallory:*:20000:0:99999:7:::' >>/etc/shadow
    echo 'mallory:x:1000:' >>/etc/group
    mkdir -p /home/mallory
    chown 1000:1000 /home/mallory
    # An active session on a seat: polkit allows it what a user at the machine may do.
    file /etc/systemd/system/hostile.service <<'END'
[Service]
Type=notify
NotifyAccess=all
User=mallory
PAMName=login
Environment=XDG_SEAT=seat0 XDG_SESSION_TYPE=tty
WorkingDirectory=/home/mallory
ExecStart=/usr/bin/python3 /lab/guest/hostile /data/mallory
StandardOutput=append:/lab/out/hostile.log
StandardError=append:/lab/out/hostile.log
TimeoutStartSec=120s
TasksMax=60
MemoryMax=200M
[Install]
WantedBy=multi-user.target
END
}

# The attack lasts. Otherwise prints which attacks were in place.
attacked() { systemctl is-active hostile.service || { tail -n 8 "$LAB_OUT"/hostile.log; return 1; }; }

# One operation of root. How long it took, and its exit status, go to operations.tsv.
operation() {
    local name=$1 status
    shift
    seconds_of timeout --kill-after=5 90 "$@" >/run/operation 2>&1 </dev/null
    status=$?
    printf '%s\t%s\t%s\n' "$name" "$SECONDS_TAKEN" "$status" >>"$LAB_OUT"/operations.tsv
    ((status == 0)) || { echo "$name: status $status: $*"; cat /run/operation; }
    return $status
}

# zramdctl, repeated while it fails: the user may have asked for work on the same disk, which is done one after the other.
repeated() {
    local name=$1
    shift
    # shellcheck disable=SC2016 # Expanded by the inner shell.
    operation "$name" bash -c 'until zramdctl "$@"; do sleep 0.5; done' zramdctl "$@"
}

# Root's own data on the disk, changed and saved: a number, and a checksum of the rest.
change_and_save() {
    local number=$(($(cat /data/root/number 2>/dev/null || echo 0) + 1))
    install -d -m 700 /data/root
    echo $number >/data/root/number
    head -c $((RANDOM * 8)) /dev/urandom >/data/root/noise
    (cd /data/root && sha256sum number noise >sums)
    repeated save disk save data || return
    echo $number >/var/lib/saved.new && sync /var/lib/saved.new && mv /var/lib/saved.new /var/lib/saved && sync /var/lib
}

# Prints nothing when root's data on the disk are whole, and as new as the last save that was reported.
lost() {
    local saved loaded
    saved=$(cat /var/lib/saved 2>/dev/null || echo 0)
    loaded=$(cat /data/root/number 2>/dev/null || echo 0)
    ((loaded >= saved)) || echo "saved $saved, loaded $loaded"
    [[ ! -e /data/root/sums ]] || (cd /data/root && sha256sum --quiet -c sums 2>&1)
    find /var/lib/zramd/disks -name '*.bad'
}

# What must not grow: resident memory of the daemon in KiB, its descriptors, files of zramd in /run, files in the stores.
residue() {
    local pid
    pid=$(systemctl show -P MainPID zramd.service)
    printf '%s\t%s\t%s\t%s\n' "$(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status")" "$(find "/proc/$pid/fd" -type l | wc -l)" \
        "$(find /run/zramd -xdev -type f | wc -l)" "$(find /var/lib/zramd -type f | wc -l)"
}

# Units of zramd that reached their memory limit, as the kernel reports them.
killed_for_memory() { journalctl -b -k -o cat --no-pager | grep -E 'oom-kill:.*zramd'; }
