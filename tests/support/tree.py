#!/usr/bin/env python3
"""Prints all metadata and contents of a directory tree, one line per name, without code of zramd.

tree.py DIRECTORY [zeros]: with `zeros`, blocks of nothing but zeros count as holes. An xfs allocates ahead of what is written; what it
says of those blocks changes with what happens to be in the page cache.
"""
import hashlib, os, stat, sys

BLOCK = 4096
first_names = {}
zeros_are_holes = sys.argv[2:] == ["zeros"]


def holes(path, size):
    """The ranges of a file with data."""
    found, at = [], 0
    with open(path, "rb") as file:
        while at < size:
            try:
                start = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                break
            at = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            found.append((start, at))
        return without_zeros(file, found) if zeros_are_holes else found


def without_zeros(file, stretches):
    """The same without blocks of zeros."""
    found = []
    for start, end in stretches:
        for at in range(start, end, BLOCK):
            file.seek(at)
            to = min(at + BLOCK, end)
            if not any(file.read(to - at)):
                continue
            if found and found[-1][1] == at:
                at = found.pop()[0]
            found.append((at, to))
    return found


def digest(path, stretches):
    hash = hashlib.sha256()
    with open(path, "rb") as file:
        for start, end in stretches:
            file.seek(start)
            hash.update(file.read(end - start))
    return hash.hexdigest()


def look(path, name):
    seen = os.lstat(path)
    line = [name, oct(seen.st_mode), seen.st_uid, seen.st_gid, seen.st_mtime_ns]
    if not stat.S_ISDIR(seen.st_mode):
        line += [seen.st_nlink, first_names.setdefault(seen.st_ino, name)]
    if stat.S_ISREG(seen.st_mode):
        stretches = holes(path, seen.st_size)
        line += [seen.st_size, stretches, digest(path, stretches)]
    if stat.S_ISLNK(seen.st_mode):
        line.append(os.readlink(path))
    if stat.S_ISCHR(seen.st_mode) or stat.S_ISBLK(seen.st_mode):
        line.append(seen.st_rdev)
    # Including ACLs and capabilities, as bytes.
    for attribute in sorted(os.listxattr(path, follow_symlinks=False)):
        if attribute == "trusted.zramd.ramdisk":
            continue
        line.append((attribute, os.getxattr(path, attribute, follow_symlinks=False)))
    print(*map(repr, line))


def walk(name):
    # One directory at a time, because the path may be longer than PATH_MAX.
    look(b".", name)
    for entry in sorted(os.scandir(b"."), key=lambda entry: entry.name):
        below = os.path.join(name, entry.name)
        if entry.is_dir(follow_symlinks=False):
            os.chdir(entry.name)
            walk(below)
            os.chdir(b"..")
        else:
            look(entry.name, below)


os.chdir(os.fsencode(sys.argv[1]))
walk(b"")
