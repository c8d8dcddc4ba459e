#!/usr/bin/env python3
"""Makes a tree with one of everything that archives get wrong: nasty.py DIRECTORY NUMBER-OF-SMALL-FILES."""
import os, struct, sys

root, count = os.fsencode(sys.argv[1]), int(sys.argv[2])
is_root = os.geteuid() == 0
os.umask(0)


def path(name):
    return os.path.join(root, name)


def write(name, data=b"", mode=0o644):
    with open(path(name), "wb") as file:
        file.write(data)
    os.chmod(path(name), mode)


# Names.
os.makedirs(path(b"d" * 255 + b"/" + b"e" * 255))
write(b"d" * 255 + b"/" + b"e" * 255 + b"/" + b"f" * 255, b"deep")
for name in [b"\xff\xfe not UTF-8", b"new\nline", b" ", b"-rf", b"quote'\"\\", b"%41", "ü".encode(), b"...", b"k=v", b"GNUSparseFile"]:
    write(name, name)
# A hundred levels: longer than PATH_MAX.
directory = os.open(root, os.O_RDONLY)
for level in range(100):
    name = b"%03d" % level + b"x" * 60
    os.mkdir(name, 0o755, dir_fd=directory)
    directory = os.open(name, os.O_RDONLY, dir_fd=directory)
os.close(os.open(b"bottom", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=directory))

# Modes, and directories that are not writable.
write(b"setuid", b"x", 0o4755)
os.mkdir(path(b"sticky"), 0o1777)
os.chmod(path(b"sticky"), 0o1777)
os.mkdir(path(b"setgid"))
write(b"setgid/inside", b"group")
os.chmod(path(b"setgid"), 0o2775)
os.mkdir(path(b"closed"))
if is_root:
    # Other users could not read or remove what they have made.
    write(b"nothing", b"", 0)
    write(b"closed/inside", b"closed")
    os.chmod(path(b"closed"), 0o555)

# Links.
write(b"first", b"the same")
for name in [b"second", b"sticky/third"]:
    os.link(path(b"first"), path(name))
os.symlink(b"nowhere/../../etc/passwd", path(b"dangling"))
try:
    os.symlink(b"t" * 3000, path(b"long target"))
except OSError:
    # xfs takes 1024 bytes at most.
    os.symlink(b"t" * 1000, path(b"long target"))
os.symlink(b"dangling", path(b"link to a link"))
os.link(path(b"dangling"), path(b"hard link to a symbolic one"), follow_symlinks=False)
os.mkfifo(path(b"fifo"), 0o620)
os.link(path(b"fifo"), path(b"fifo, second name"))

# Holes: at the start, in the middle, at the end, nothing else, many.
def sparse(name, size, pieces):
    with open(path(name), "wb") as file:
        for offset, data in pieces:
            file.seek(offset)
            file.write(data)
        file.truncate(size)


sparse(b"hole only", 10 << 20, [])
sparse(b"hole first", 1 << 20, [((1 << 20) - 4096, b"e" * 4096)])
sparse(b"hole last", 1 << 20, [(0, b"s" * 4096)])
sparse(b"hole in the middle", 3 << 20, [(0, b"s" * 8192), (2 << 20, b"e" * 100)])
sparse(b"many holes", 8 << 20, [(at * 8192, b"%d" % at) for at in range(1000)])
sparse(b"huge hole", 100 << 30, [(50 << 30, b"middle")])
sparse(b"large with holes", 40 << 20, [(0, os.urandom(1 << 20)), (20 << 20, os.urandom(18 << 20))])

# Contents near the limits of buffers.
for size in [1, 511, 512, 513, 4096, 262143, 262144, 262145, (16 << 20) - 1, 16 << 20, (16 << 20) + 1]:
    write(b"size %d" % size, os.urandom(size))

# Attributes.
def attribute(name, key, value):
    try:
        os.setxattr(path(name), key, value, follow_symlinks=False)
    except OSError as error:
        print("skipped:", key, error, file=sys.stderr)


attribute(b"first", "user.plain", b"value")
attribute(b"first", "user.with=equals%3D", b"\0\n binary \xff")
attribute(b"setgid", "user.on a directory", b"")
attribute(b"size 4096", "user.large", os.urandom(3000))
# ACL: user::rw-, user:1234:r--, group::r--, mask::r--, other::---.
entries = [(1, 6, 0xFFFFFFFF), (2, 4, 1234), (4, 4, 0xFFFFFFFF), (16, 4, 0xFFFFFFFF), (32, 0, 0xFFFFFFFF)]
acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
attribute(b"second", "system.posix_acl_access", acl)
attribute(b"sticky", "system.posix_acl_default", acl)
write(b"sticky/made below a default ACL", b"inherits it")
if is_root:
    # VFS_CAP_REVISION_2 with CAP_NET_RAW, effective.
    write(b"capable", b"#!", 0o755)
    attribute(b"capable", "security.capability", struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0))
    attribute(b"dangling", "trusted.on a link", b"yes")
    attribute(b"fifo", "trusted.on a pipe", b"yes")
    os.mknod(path(b"null"), 0o020666, os.makedev(1, 3))
    try:
        os.mknod(path(b"disk"), 0o060640, os.makedev(259, 1048575))
    except OSError:
        # xfs has 18 bits for it.
        os.mknod(path(b"disk"), 0o060640, os.makedev(259, 262143))
    for name, uid, gid in [(b"first", 1234, 4321), (b"setuid", 0xFFFFFFFE, 3000000000), (b"sticky", 65534, 65534), (b"dangling", 5, 6)]:
        os.chown(path(name), uid, gid, follow_symlinks=False)
    os.chmod(path(b"setuid"), 0o6755)

# Times, last, because creating files changes the time of their directory.
for level in range(count // 1000):
    os.mkdir(path(b"many%d" % level))
    for number in range(1000):
        write(b"many%d/file%d" % (level, number), b"%d" % number * (number % 50))
second = 1_000_000_000
times = [(b"empty times", 0), (b"1901", -2147483648 * second), (b"1969", -1), (b"1950", -600_000_000 * second + 123456789),
         (b"2039", 2177452800 * second + 999999999), (b"2200", 7258118400 * second), (b"2400", 13569465600 * second + 1)]
for name, _ in times:
    write(name)
for name, time in times + [(b"closed", -5 * second + 1), (b"sticky", 4102444800 * second), (b"dangling", 1), (b"fifo", 2)]:
    os.utime(path(name), ns=(time, time), follow_symlinks=False)
os.utime(root, ns=(3, 3))
