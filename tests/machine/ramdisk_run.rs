//! Saves and stops of RAM disks while `/run` cannot be written to, or while another process has the store; and disks that
//! became too small. Each case runs the programs in a mount namespace with its own `/run`; no zram device is used.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::{eventually, has_program, may_mount, skip, texts};

/// A RAM disk `held`, with a store on a disk.
struct Apart {
    memory: tempfile::TempDir,
    disk: tempfile::TempDir,
}

impl Apart {
    fn new(keys: &str) -> Option<Apart> {
        if !may_mount() {
            return None;
        }
        if !["unshare", "flock", "setpriv"].into_iter().all(has_program) {
            skip("needs unshare, flock and setpriv");
            return None;
        }
        let disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let apart = Apart { memory: tempfile::tempdir().unwrap(), disk };
        fs::create_dir_all(apart.path("above/held")).unwrap();
        fs::create_dir(apart.store()).unwrap();
        apart.write(keys);
        Some(apart)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.memory.path().join(name)
    }

    fn store(&self) -> PathBuf {
        self.disk.path().join("store")
    }

    fn write(&self, keys: &str) {
        let text = format!(
            "[ramdisk.held]\nmount-point = \"{}\"\nstore = \"{}\"\npersist = \"snapshot\"\n{keys}\n",
            self.path("above/held").display(),
            self.store().display()
        );
        fs::write(self.path("c.toml"), text).unwrap();
    }

    /// `$D` is the disk, `$S` its store, `$W` a directory for other files.
    fn command(&self, script: &str) -> Command {
        let begin = r#"
            set -u
            mount -t tmpfs -o mode=755,nr_inodes=9999 run /run
            setup() { "$B/zramd-setup" --config "$W/c.toml" "$@"; }
            order() { printf '{"config":"%s/c.toml"%s}' "$W" "$1"; }
            save() { "$B/zramd-worker" save held "$(order "${1:+,\"reason\":\"$1\"}")"; }
            doctor() { "$B/zramdctl" --config "$W/c.toml" "$@"; }
            fail() { echo "failed: $*" >&2; exit 99; }
            # The newest snapshot has these contents.
            newest() {
                rm -rf "$W/to"
                "$B/zramd-worker" export held "$(order ",\"to\":\"$W/to\"")" >/dev/null 2>&1 || fail "export $1"
                [ "$(cat "$W/to/x")" = "$1" ] || fail "the newest snapshot has $(cat "$W/to/x") instead of $1"
            }
            mounted() { grep -c " /run/zramd/ramdisk/held " /proc/mounts; }
        "#;
        let programs = Path::new(env!("CARGO_BIN_EXE_zramd-worker")).parent().unwrap();
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", &format!("{begin}{script}")]);
        command.env("B", programs).env("W", self.memory.path()).env("D", self.path("above/held"));
        command.env("S", self.store()).stdin(Stdio::null());
        command
    }

    #[track_caller]
    fn ok(&self, script: &str) -> (String, String) {
        let output: Output = self.command(script).output().unwrap();
        let (text, messages) = texts(&output);
        assert!(output.status.success(), "{}:\n{text}\n{messages}", output.status);
        (text, messages)
    }
}

#[test]
fn a_save_succeeds_whichever_write_to_run_fails() {
    let Some(apart) = Apart::new("size = \"8MiB\"") else { return };
    // With room for no, one, two, … more inodes or pages, each write is the first to fail once.
    let (text, _) = apart.ok(r#"
        setup apply >/dev/null || fail apply
        for what in inodes size; do for more in 0 1 2 3 4 5 6 7 8; do
            mount -o remount,nr_inodes=9999,size=50% /run
            rm -rf /run/zramd/work /run/zramd/ramdisks
            case $what in
            inodes) mount -o "remount,nr_inodes=$(($(df --output=iused /run | tail -1) + more))" /run ;;
            size) mount -o "remount,size=$(($(df --output=used -k /run | tail -1) + 4 * more))k" /run ;;
            esac
            for reason in timer stop; do
                echo "$what $more $reason" >"$D/x"
                save $reason >/dev/null 2>"$W/messages" || fail "status $? with $what $more: $(cat "$W/messages")"
                [ "$more" -gt 0 ] || grep -q 'warning: held: its progress is not published' "$W/messages" ||
                    fail "no warning with $what $more"
                newest "$what $more $reason"
            done
        done; done
        grep -q '"dirty":false' "$S/state.json" || fail "not clean"
        echo all
    "#);
    assert_eq!(text, "all\n");
}

#[test]
fn a_save_succeeds_without_permission_to_write_to_run() {
    let Some(apart) = Apart::new("size = \"8MiB\"") else { return };
    apart.ok(r#"
        setup apply >/dev/null || fail apply
        echo one >"$D/x"
        mount -o remount,ro /run
        save stop 2>/dev/null || fail "status $? on a read-only file system"
        newest one
        mount -o remount,rw /run
        chown -R 65534 /run/zramd/work /run/zramd/ramdisks; chown 65534 /run/zramd
        echo two >"$D/x"
        setpriv --bounding-set -dac_override,-dac_read_search sh -c '! touch /run/zramd/work/x 2>/dev/null &&
            "$B/zramd-worker" save held "$0"' "$(order ',"reason":"stop"')" || fail "status $? without permission"
        chown -R 0 /run/zramd/work /run/zramd/ramdisks; chown 0 /run/zramd
        newest two
        # What is known only from files in /run is not needed either.
        echo three >"$D/x"
        rm -rf /run/zramd/ramdisks /run/zramd/work /run/zramd/*.json
        save stop || fail "status $? without notes"
        newest three
    "#);
}

#[test]
fn a_removal_in_a_full_run_saves_or_leaves_the_disk() {
    let Some(apart) = Apart::new("size = \"8MiB\"") else { return };
    apart.ok(r#"
        removed=0
        for more in 0 1 2 3 4 5 6; do
            setup apply >/dev/null 2>&1 || fail apply
            echo "$more" >"$D/x"
            rm -rf /run/zramd/work /run/zramd/ramdisks
            mount -o "remount,nr_inodes=$(($(df --output=iused /run | tail -1) + more))" /run
            if "$B/zramd-setup" revert >/dev/null 2>&1; then
                removed=$((removed + 1)); [ "$(mounted)" = 0 ] || fail "still mounted with $more"
                newest "$more"
            else
                [ "$(mounted)" = 1 ] && [ "$(cat "$D/x")" = "$more" ] || fail "neither there nor removed with $more"
            fi
            mount -o remount,nr_inodes=9999 /run
            "$B/zramd-setup" revert >/dev/null 2>&1 || fail "revert with room"
            newest "$more"
        done
        [ "$removed" -gt 3 ] || fail "removed only $removed times"
    "#);
}

#[test]
fn only_another_save_is_waited_for_and_it_is_named() {
    let Some(apart) = Apart::new("size = \"8MiB\"\ntime-limit = \"10s\"") else { return };
    apart.ok(r#"
        setup apply >/dev/null || fail apply
        # Another program that publishes its progress, such as a verification that does not end.
        echo one >"$D/x"
        mkdir -p /run/zramd/work; : >/run/zramd/work/.ramdisk-held.lock; chmod 600 /run/zramd/work/.ramdisk-held.lock
        flock /run/zramd/work/.ramdisk-held.lock "$B/zramd-worker" save held "$(order ',"reason":"stop"')" ||
            fail "status $? beside other work"
        newest one
        # Another process that has the store, and does not end.
        echo two >"$D/x"
        hold() { flock --no-fork "$S" sleep 300 & holder=$!; while flock --nonblock "$S" true; do sleep 0.01; done; }
        hold
        save stop 2>"$W/messages" && fail "saved beside a save"
        grep -q "waits for sleep (pid $holder)" "$W/messages" || fail "$(cat "$W/messages")"
        grep -q "sleep (pid $holder) saves or loads it, and has not ended within 10 s" "$W/messages" || fail "$(cat "$W/messages")"
        # One that ends.
        save stop 2>"$W/messages" & saving=$!
        until grep -q "waits for" "$W/messages"; do sleep 0.1; done
        kill $holder
        wait $saving || fail "status $? after another save"
        newest two
    "#);
}

#[test]
fn a_disk_is_saved_although_the_path_to_its_mount_point_was_renamed() {
    let Some(apart) = Apart::new("size = \"8MiB\"") else { return };
    apart.ok(r#"
        setup apply >/dev/null || fail apply
        echo one >"$D/x"
        mv "$W/above" "$W/elsewhere"
        save stop || fail "status $?"
        newest one
        mkdir -p "$D"
        echo two >"$W/elsewhere/held/x"
        save stop || fail "status $? with another directory there"
        newest two
    "#);
}

#[test]
fn a_snapshot_that_does_not_fit_any_more_is_kept_named_and_loaded_once_it_fits() {
    let size = "size = \"8MiB\"";
    for (small, named) in [
        ("size = \"4MiB\"", "it needs 6.0 MiB, `size` is 4.0 MiB"),
        ("size = \"8MiB\"\ninodes = 20", "it needs 42 inodes, `inodes` is 20"),
    ] {
        let Some(apart) = Apart::new(size) else { return };
        apart.ok(r#"
            setup apply >/dev/null || fail apply
            echo old >"$D/x"; save >/dev/null || fail save
            echo new >"$D/x"; head -c 6M /dev/urandom >"$D/big"; seq 39 | (cd "$D" && xargs touch)
            save >/dev/null || fail save
            "$B/zramd-setup" revert >/dev/null || fail revert
            cp -a "$S" "$W/before"
        "#);
        apart.write(small);
        let (text, _) = apart.ok(r#"
            setup apply >/dev/null 2>&1 || fail apply
            [ "$(cat "$D/x")" = old ] || fail "loaded $(cat "$D/x")"
            for number in 1 2 3; do echo $number >"$D/y"; save >/dev/null || fail save; done
            [ -e "$S/gen-2" ] || fail "the newest snapshot is pruned"
            setup check 2>&1
            for what in "ramdisk list" "ramdisk status" doctor; do doctor $what; done
            "$B/zramd-setup" revert >/dev/null || fail revert
        "#);
        assert!(text.matches(named).count() >= 3, "{text}");
        assert!(text.contains("] to at least ") && !text.contains("which may be failing"), "{text}");
        apart.write(size);
        // The newest is loaded as usual, and the other one can be restored.
        apart.ok(r#"
            setup apply >/dev/null 2>&1 || fail apply
            [ "$(cat "$D/y")" = 3 ] || fail "loaded $(cat "$D/y")"
            "$B/zramd-worker" verify held "$(order ',"snapshot":2')" >/dev/null || fail verify
            "$B/zramd-setup" revert >/dev/null || fail revert
            # Without a save in between it is the newest.
            rm -rf "$S"; cp -a "$W/before" "$S"; sed -i 's/"dirty":true/"dirty":false/' "$S/state.json"
        "#);
        apart.write(small);
        apart.ok("setup apply >/dev/null 2>&1 || fail apply; umount \"$D\"; umount /run/zramd/ramdisk/held");
        apart.write(size);
        apart.ok(r#"
            [ -e "$S/gen-2.held" ] || fail "not held"
            setup apply >/dev/null 2>&1 || fail apply
            [ "$(cat "$D/x")" = new ] || fail "loaded $(cat "$D/x")"
            [ ! -e "$S/gen-2.held" ] || fail "still held"
        "#);
    }
}

#[test]
fn a_store_that_others_have_filled_is_named_before_it_is_needed() {
    let Some(apart) = Apart::new("size = \"16MiB\"") else { return };
    if !has_program("mkfs.ext4") {
        return skip("needs mkfs.ext4");
    }
    apart.ok(r#"
        head -c 12M /dev/zero >"$S.image"; mkfs.ext4 -q -m 0 "$S.image"; mount -o loop "$S.image" "$S" || fail mount
        setup apply >/dev/null || fail apply
        head -c 4M /dev/urandom >"$D/big"; echo one >"$D/x"; save >/dev/null || fail save
        doctor doctor | grep -q "the store of held has" && fail "warned too early"
        dd if=/dev/zero of="$S/filler" bs=64k 2>/dev/null
        doctor doctor | grep -q "the store of held has" || fail "no warning: $(doctor doctor)"
        echo two >"$D/x"
        save timer 2>"$W/messages" && fail "saved by timer"
        grep -q "zramdctl ramdisk delete held" "$W/messages" || fail "$(cat "$W/messages")"
        newest one
        rm "$S/filler"; save stop || fail "status $?"; newest two
        "$B/zramd-setup" revert >/dev/null || fail revert
        umount "$S"
    "#);
}

#[test]
fn saves_above_the_daily_budget_are_made_and_reported() {
    let Some(apart) = Apart::new("size = \"16MiB\"\ndaily-budget = \"2MiB\"") else { return };
    apart.ok(r#"
        setup apply >/dev/null || fail apply
        head -c 1M /dev/urandom >"$D/big"; echo one >"$D/x"; save timer >/dev/null || fail save
        doctor ramdisk status | grep -q '1.0 MiB written in 24 hours (budget 2.0 MiB), 1.0 MiB in all' || fail "$(doctor ramdisk status)"
        doctor doctor | grep -q 'saves of held wrote' && fail "warned too early"
        for more in 1 2; do head -c 1M /dev/urandom >"$D/big"; echo $more >"$D/x"; save timer >/dev/null || fail save; done
        newest 2
        doctor doctor | grep -q 'saves of held wrote 3.0 MiB in 24 hours, and daily-budget is 2.0 MiB' || fail "$(doctor doctor)"
        # What was written counts over a reboot.
        "$B/zramd-setup" revert >/dev/null || fail revert
        rm -r /run/zramd; setup apply >/dev/null || fail "apply again"
        doctor ramdisk status | grep -q '3.0 MiB written in 24 hours (budget 2.0 MiB), 3.0 MiB in all' || fail "$(doctor ramdisk status)"
        "$B/zramd-setup" revert >/dev/null || fail revert
    "#);
}

#[test]
fn the_newest_snapshot_is_verified_once_a_week_after_a_save_of_the_timer() {
    let Some(apart) = Apart::new("size = \"16MiB\"") else { return };
    apart.ok(r#"
        damage='the newest snapshot is damaged: held, snapshot 1: '
        setup apply >/dev/null || fail apply
        head -c 1M /dev/urandom >"$D/big"; echo one >"$D/x"; save timer >/dev/null || fail save
        printf '?damage?' | dd of="$S/gen-1" bs=1 seek=300000 conv=notrunc 2>/dev/null
        save timer >/dev/null || fail "save again"
        doctor doctor | grep -q "$damage" && fail "verified too early"
        sed -i 's/"verified_usec":[0-9]*/"verified_usec":1/' /run/zramd/ramdisks/store-*.json
        save timer >/dev/null 2>"$W/messages" || fail "$(cat "$W/messages")"
        grep -q 'the newest snapshot: held, snapshot 1: .*big' "$W/messages" || fail "not named: $(cat "$W/messages")"
        doctor doctor | grep -q "$damage" || fail "not reported: $(doctor doctor)"
        # Although nothing has changed since.
        save timer | grep -q 'snapshot 2: ' || fail "not saved"
        doctor doctor | grep -q "$damage" && fail "still reported"
        newest one
        "$B/zramd-setup" revert >/dev/null || fail revert
    "#);
}

#[test]
fn a_load_without_a_writable_run_fails_before_anything_is_mounted() {
    let Some(apart) = Apart::new("size = \"8MiB\"") else { return };
    apart.ok(r#"
        mount -o remount,ro /run
        setup apply >/dev/null 2>"$W/messages" && fail "applied"
        [ "$(mounted)" = 0 ] && grep -q "/run/zramd" "$W/messages" || fail "$(cat "$W/messages")"
    "#);
}

#[test]
fn a_set_up_whose_reader_has_gone_is_complete() {
    let Some(apart) = Apart::new("size = \"8MiB\"") else { return };
    apart.ok(r#"
        setup apply >/dev/null || fail apply
        echo old >"$D/x"; save >/dev/null || fail save
        head -c 6M /dev/urandom >"$D/big"; save >/dev/null || fail save
        "$B/zramd-setup" revert >/dev/null || fail revert
    "#);
    apart.write("size = \"4MiB\"");
    // A pipe without a reader.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = apart.command("setup apply; echo \"$? $(mounted)\" >\"$W/ended\"");
    command.stdout(writer.try_clone().unwrap()).stderr(writer);
    command.status().unwrap();
    eventually("it has ended", || apart.path("ended").exists());
    assert_eq!(fs::read_to_string(apart.path("ended")).unwrap(), "0 1\n");
}
