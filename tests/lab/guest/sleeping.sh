# shellcheck shell=bash
# For scenarios that sleep: a load, and what has to be true after each sleep. There is a swap zram0, and a RAM disk `work` with timer.

start_load() { # start_load MIB
    ok 'a program fills memory' hold "$1"
    # Appends numbers to a file of the RAM disk.
    systemd-run --quiet --unit=writer python3 -c '
import itertools, time
with open("/work/log", "w") as log:
    for number in itertools.count():
        print(number, file=log, flush=True)
        time.sleep(0.05)'
    ok 'another writes to the RAM disk' eventually 30 test -s /work/log
    ok 'which is saved' zramdctl ramdisk save work
}

# fall_asleep suspend|hibernate ROUND [PREFIX]: notes the state, and ends the stage.
fall_asleep() {
    echo "$2" >/run/round
    echo "${3-}round $2" >"$LAB_STATE/round"
    # More than there is: the rest cannot be swapped out.
    swap_out 1000 /sys/fs/cgroup/system.slice/holder.service 2>/dev/null || true
    note "$(awk 'NR > 1 { print $1, $4 }' /proc/swaps | xargs), $(awk '/^MemAvailable|^Active.anon/ { print $1, $2 }' /proc/meminfo | xargs)"
    lasting >/run/lasting
    newest generation >/run/generation
    wc -l </work/log >/run/written
    seconds_asleep >/run/asleep-before
    leave_by "$1"
}

# Checks that nothing was harmed, except the pages of the program; sets SLEPT to the seconds asleep.
wake_up() {
    ok 'units are as awake' eventually 120 is_awake
    SLEPT=$(awk -v now="$(seconds_asleep)" '{ printf "%.2f", now - $1 }' /run/asleep-before)
    note "slept for $SLEPT s"
    all_well
    is 'nor has the kernel' "$(journalctl -b -p err -o short-monotonic --no-pager --quiet SYSLOG_IDENTIFIER=kernel)" ''
    # PID 1 chooses another random delay of the other timer.
    is 'boot, swaps, device, mount and the timer of maintenance are as before' "$(lasting)" "$(</run/lasting)"
    is 'the RAM disk was saved before sleep' "$(newest reason)" sleep
    ok 'anew' test "$(newest generation)" -gt "$(</run/generation)"
    ok 'the writer goes on' eventually 30 more_is_written
    is 'nothing of it was lost' "$(awk '$1 != NR - 1 { print NR ": " $0 }' /work/log)" ''
    ok 'the figures of the kernel are shown' eventually 10 shown_as_is
    at_most 'seconds by which the next save is shown wrongly' "$(next_save_wrong)" 1
}

lasting() {
    cat /proc/sys/kernel/random/boot_id
    awk 'NR > 1 { print $1, $3, $5 }' /proc/swaps | sort
    grep . /sys/block/zram0/{disksize,comp_algorithm,backing_dev}
    findmnt --noheadings --output=SOURCE,FSTYPE,OPTIONS /work
    timer zramd_2dmaintenance
}
timer() { bus_property org.freedesktop.systemd1 "/org/freedesktop/systemd1/unit/$1_2etimer" org.freedesktop.systemd1.Timer NextElapseUSecMonotonic; }
bus_property() { busctl get-property "$@" | cut -d' ' -f2; }
newest() { python3 -c 'import json, sys; print(json.load(open("/run/zramd/ramdisks/work.json"))["snapshots"][0][sys.argv[1]])' "$1"; }
more_is_written() { (($(wc -l </work/log) > $(</run/written))); }
shown_as_is() {
    local stored
    stored=$(mm_stat zram0 1)
    [[ $(json "d['devices'][0]['stats']['memory']['original_data_bytes']" zramdctl status --json) == "$stored" ]] &&
        [[ $(bus_property org.zramd1 /org/zramd1/device/zram0 org.zramd1.Device OriginalDataBytes) == "$stored" ]]
}
next_save_wrong() {
    python3 -c 'import sys, time; shown, next = map(int, sys.argv[1:]); print(abs((shown - next) / 1e6 - (time.time() - time.monotonic())))' \
        "$(bus_property org.zramd1 /org/zramd1/ramdisk/work org.zramd1.RamDisk NextSaveTimestamp)" "$(timer zramd_2dramdisk_2dsave_40work)"
}
