# shellcheck shell=bash disable=SC2034 # Variables set here are used by scenarios.
# Commands for scenarios. Sourced by the guest's init (which only runs `prepare`), by each stage and by the lab's shell.
#
# In `prepare`:
#   file PATH [MODE] <<'END' … END     writes a file
#   enable_zramd                       does what `systemctl enable zramd.service` does
# In a stage, each of these is one check; the first argument is its description:
#   ok DESCRIPTION COMMAND…            the command succeeds
#   not_ok DESCRIPTION COMMAND…        the command fails
#   is DESCRIPTION ACTUAL EXPECTED     two strings are equal
#   like DESCRIPTION ACTUAL REGEX      a string matches an extended regular expression
#   at_most DESCRIPTION ACTUAL LIMIT   a number is not above a limit
#   pass DESCRIPTION                   for a result of the scenario's own code
#   fail DESCRIPTION [DETAIL]
#   timed CHECK…                       one of the above that may fail on a busy host: then the scenario is repeated
#   eventually SECONDS COMMAND…        repeats a command until it succeeds; a command for `ok`, not a check
# Also:
#   record NAME VALUE [UNIT]           a figure for the report
#   note TEXT…                         a line for the stage's log
#   skip REASON                        ends the scenario as skipped
#   leave_by reboot|soft-reboot|poweroff
#                                      how this stage ends (before another stage: reboot by default)
#   leave_by suspend|hibernate         after `enable_sleep` in `prepare`: the next stage begins when the system resumes, which is after
#                                      /run/asleep-for seconds for suspend; it also begins if the system does not sleep
#   next_stage NUMBER                  which stage is next, instead of the one after this
#   next_kernel_args ARGUMENT…         further arguments of the kernel from the next boot on
#   swap_field DEVICE 3|4|5            size, used and priority in /proc/swaps
#   hold MIB, held_is_intact           fills that much memory in a process; whether its contents are unchanged
#   watch_swaps, swap_changes          what was switched on and off in between
#   seconds_of COMMAND…                runs a command and sets SECONDS_TAKEN
#   shutdown_seconds                   duration of the last reboot or poweroff, measured by the host
#   on_stock_kernel                    whether the kernel is Debian's own, which lacks recompression and some algorithms
#   mark NAME                          signals a moment to the host, for `# power-cuts:`

LAB_OUT=/lab/out
LAB_STATE=/lab/state

file() {
    mkdir -p "$(dirname "$1")"
    cat >"$1"
    chmod "${2:-644}" "$1"
}

on_stock_kernel() { [[ $(</proc/cmdline) =~ lab\.kernel=(stock|backports) ]]; }

enable_zramd() {
    mkdir -p /etc/systemd/system/multi-user.target.wants
    ln -sf /usr/lib/systemd/system/zramd.service /etc/systemd/system/multi-user.target.wants/zramd.service
}

pass() { _report ok "$1" ''; }
fail() { _report "${LAB_TIMED:-FAIL}" "$1" "${2:-}"; }
timed() { local LAB_TIMED=LATE && "$@"; }

ok() {
    local description=$1 output
    shift
    if output=$("$@" 2>&1 </dev/null); then pass "$description"; else fail "$description" "status $? of: $*"$'\n'"$output"; fi
}

not_ok() {
    local description=$1 output
    shift
    if output=$("$@" 2>&1 </dev/null); then fail "$description" "succeeded: $*"$'\n'"$output"; else pass "$description"; fi
}

is() {
    if [[ $2 == "$3" ]]; then pass "$1"; else fail "$1" "is:       $2"$'\n'"expected: $3"; fi
}

like() {
    if [[ $2 =~ $3 ]]; then pass "$1"; else fail "$1" "is:       $2"$'\n'"expected: a match of $3"; fi
}

at_most() {
    if awk -v actual="$2" -v limit="$3" 'BEGIN { exit !(actual != "" && actual + 0 <= limit + 0) }'; then
        pass "$1"
    else
        fail "$1" "is $2, expected at most $3"
    fi
}

eventually() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < end)) || return 1
        sleep 0.1
    done
}

record() { printf '%s\t%s\t%s\n' "$1" "$2" "${3:-}" >>$LAB_OUT/figures.tsv; }
note() { echo "$*"; }
mark() { date +%s.%N >"$LAB_STATE/mark-$1"; }

skip() {
    echo "$*" >$LAB_OUT/skipped
    exit 0
}

# Copied because the host's directory is unmounted while the system sleeps.
enable_sleep() { install -D /lab/guest/asleep /usr/lib/systemd/system-sleep/lab; }
# Whether all units have settled after sleep.
is_awake() { [[ -z $(systemctl list-jobs --no-legend) ]] && ! systemctl --quiet is-active sleep.target zramd-drain.service; }
# Total time asleep since boot, in seconds.
seconds_asleep() { python3 -c 'import time; print(f"{time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic():.2f}")'; }
next_stage() { echo $(($1 - 1)) >"$LAB_STATE/stage"; }
next_kernel_args() { echo "$*" >"$LAB_STATE/kernel-args"; }

leave_by() { echo "$1" >$LAB_STATE/leave-by; }
shutdown_seconds() { cat $LAB_STATE/shutdown-seconds; }

seconds_of() {
    local from=$EPOCHREALTIME
    "$@"
    local status=$?
    SECONDS_TAKEN=$(awk -v from="$from" -v to="$EPOCHREALTIME" 'BEGIN { printf "%.3f", to - from }')
    return $status
}

# One line per check: outcome, description, details with line breaks written as \n.
_report() {
    local detail=${3//[$'\t\r']/ }
    printf '%s\t%s\t%s\n' "$1" "${LAB_PREFIX:+$LAB_PREFIX: }$2" "${detail//$'\n'/\\n}" | tee -a $LAB_OUT/checks.tsv
}

# Common conditions.

# The boot is complete and no unit failed; at the beginning of a stage also that zramd logged no errors.
all_well() {
    is "${1:-the system runs and no unit failed}" "$(systemctl is-system-running) $(systemctl --failed --plain --no-legend)" 'running '
    (($#)) || is 'zramd has said no error' "$(complaints)" ''
}

# Errors in the journal since boot.
complaints() { journalctl -b -p err -o short-monotonic --no-pager --quiet -t zramd -t zramd-setup -t zramd-worker -t zramd-generator -t zramdctl; }

# For `prepare`: keeps the journal over reboots.
keep_journal() { file /etc/systemd/journald.conf.d/persistent.conf <<<$'[Journal]\nStorage=persistent'; }
# A check of the last shutdown: the unit that set up a device ended before PID 1 killed remaining processes. The message ids are systemd's
# for a unit that was stopped, and for one that was started.
taken_down() {
    is "$1 was taken down before the machine" \
        "$(journalctl -b -1 -o cat --output-fields=UNIT --no-pager MESSAGE_ID=9d1aaa27d60140bd96365438aad20286 UNIT="zramd-setup@$1.service" \
            + MESSAGE_ID=39f53479d3a045ac8e11786248231fbf UNIT=shutdown.target | tr '\n' ' ')" \
        "zramd-setup@$1.service shutdown.target "
}

swap_is_on() { grep -q "^/dev/$1 " /proc/swaps; }
swap_field() { awk -v device="/dev/$1" -v field="$2" '$1 == device { print $field }' /proc/swaps; }
zram_devices() { (cd /sys/block && echo zram*); }

# Makes zram-generator appear installed and configured, without its functions.
seem_to_have_zram_generator() {
    file /etc/systemd/zram-generator.conf <<<'[zram0]'
    file /usr/lib/systemd/system-generators/zram-generator 755 <<<'#!/bin/sh'
}
no_zram_generator() { rm /etc/systemd/zram-generator.conf /usr/lib/systemd/system-generators/zram-generator; }

# `watch_swaps` and the function after it report every change of /proc/swaps in between.
watch_swaps() {
    rm -f /run/swap-changes
    systemd-run --quiet --collect --unit=watch-swaps python3 /lab/guest/watch-swaps /run/swap-changes
    eventually 30 test -s /run/swap-changes || fail 'the swaps can be watched'
}
swap_changes() {
    systemctl is-active --quiet watch-swaps.service || echo 'watch-swaps has ended'
    systemctl stop watch-swaps.service
    tail -n +2 /run/swap-changes
}

mm_stat() { awk -v field="$2" '{ print $field }' "/sys/block/$1/mm_stat"; } # 1 is the original size, 2 the compressed

# Lines of the journal of this boot, including the kernel's, that match a regular expression, ignoring case.
said() { journalctl -b -o short-monotonic --no-hostname --no-pager | grep -iE -- "$1"; }

# Those from programs of zramd.
zramd_said() { said ' zramd[a-z-]*(\[[0-9]+\])?: ' | grep -iE -- "$1"; }

# json EXPRESSION COMMAND…: value of a Python expression for `d`, the JSON document printed by the command.
json() {
    local expression=$1
    shift
    "$@" 2>/dev/null | python3 -c "import json, sys; d = json.load(sys.stdin); print($expression)"
}

# What doctor finds: a line `CODE OBJECT` for each.
findings() {
    zramdctl doctor --json=short | python3 -c '
import json, sys
for found in json.load(sys.stdin)["problems"]:
    print(found["code"], found["object"])'
}

# How many processes the kernel has killed for lack of memory in this boot.
oom_kills() { awk '$1 == "oom_kill" { print $2 }' /proc/vmstat; }

# files_but PATH…: all files of the disk except these, and those that the lab and the system write at every boot.
files_but() {
    local path prune=(-path /lab)
    for path in "$@" /etc/lab-installed /dev /proc /run /sys /tmp /var/tmp /var/log /var/lib/systemd/{linger,random-seed}; do
        prune+=(-o -path "$path")
    done
    find / -xdev \( "${prune[@]}" \) -prune -o -print | sort
}

# hold MIB: starts the service `holder`, which keeps this amount of memory in use, and swaps it out.
hold() {
    systemd-run --quiet --unit=holder --service-type=notify --property=NotifyAccess=all python3 /lab/guest/workload hold "$1" &&
        swap_out "$1" /sys/fs/cgroup/system.slice/holder.service
}
# Before Linux 5.19 there is no memory.reclaim: a limit does the same.
swap_out() {
    if [[ -e $2/memory.reclaim ]]; then
        echo "$1M" >"$2/memory.reclaim"
    else
        echo 1M >"$2/memory.high" && echo max >"$2/memory.high"
    fi
}

# Runs a command as the user whose service manager is user@1000.service.
of_user() { setpriv --reuid=1000 --regid=1000 --clear-groups env XDG_RUNTIME_DIR=/run/user/1000 "$@"; }

# Whether all pages of the holder are unchanged.
held_is_intact() {
    rm -f /run/held
    systemctl kill --signal=USR1 holder.service && eventually 300 test -s /run/held && [[ $(cat /run/held) == None ]]
}
