# shellcheck shell=bash disable=SC2154 # From lib.sh.
# Common to hostile-user and soak: a machine with a hostile user, and concurrent operations of root.

# For `prepare`: swap, a RAM disk that the user can write to, the user, and the service that runs the attacks.
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
    # An active session on a seat, which has the polkit permissions of a local user.
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

# Succeeds while the attacks run; otherwise prints which were in place.
attacked() { systemctl is-active hostile.service || { tail -n 8 "$LAB_OUT"/hostile.log; return 1; }; }

# Runs one operation of root; its duration and exit status go to operations.tsv.
operation() {
    local name=$1 status
    shift
    seconds_of timeout --kill-after=5 600 "$@" >/run/operation 2>&1 </dev/null
    status=$?
    printf '%s\t%s\t%s\n' "$name" "$SECONDS_TAKEN" "$status" >>"$LAB_OUT"/operations.tsv
    ((status == 0)) || { echo "$name: status $status: $*"; cat /run/operation; }
    return $status
}

# Runs zramdctl until it succeeds: work of the user on the same disk may be in progress.
repeated() {
    local name=$1
    shift
    # Expanded by the inner shell.
    operation "$name" bash -c 'until zramdctl "$@"; do sleep 0.5; done' zramdctl "$@"
}

# Changes root's data on the disk (a number, and a checksum of the rest) and saves them.
change_and_save() {
    local number=$(($(cat /data/root/number 2>/dev/null || echo 0) + 1))
    install -d -m 700 /data/root
    echo $number >/data/root/number
    head -c $((RANDOM * 8)) /dev/urandom >/data/root/noise
    (cd /data/root && sha256sum number noise >sums)
    repeated save ramdisk save data || return
    echo $number >/var/lib/saved.new && sync /var/lib/saved.new && mv /var/lib/saved.new /var/lib/saved && sync /var/lib
}

# Prints nothing if root's data on the disk are intact, and at least as new as the last reported save.
lost() {
    local saved loaded
    saved=$(cat /var/lib/saved 2>/dev/null || echo 0)
    loaded=$(cat /data/root/number 2>/dev/null || echo 0)
    ((loaded >= saved)) || echo "saved $saved, loaded $loaded"
    [[ ! -e /data/root/sums ]] || (cd /data/root && sha256sum --quiet -c sums 2>&1)
    find /var/lib/zramd/disks -name '*.bad'
}

# Quantities that must not grow: resident memory of the daemon in KiB, its descriptors, files of zramd in /run, files in the
# stores.
residue() {
    local pid
    pid=$(systemctl show -P MainPID zramd.service)
    printf '%s\t%s\t%s\t%s\n' "$(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status")" "$(find "/proc/$pid/fd" -type l | wc -l)" \
        "$(find /run/zramd -xdev -type f | wc -l)" "$(find /var/lib/zramd -type f | wc -l)"
}

# Units of zramd that reached their memory limit, according to the kernel.
killed_for_memory() { journalctl -b -k -o cat --no-pager | grep -E 'oom-kill:.*zramd'; }
