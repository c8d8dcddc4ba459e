#!/bin/sh
# Prints what each zram device saves or loses, then each problem with its remedy. Needs busctl(1) and jq.
set -eu

busctl --json=short call org.zramd1 /org/zramd1 org.freedesktop.DBus.ObjectManager GetManagedObjects |
    jq -r '.data[0][]["org.zramd1.Device"] // empty | "\(.Name.data): \(.SavedBytes.data) bytes saved, \(.LossBytes.data) lost"'
busctl --json=short get-property org.zramd1 /org/zramd1 org.zramd1.Manager ProblemDetails |
    jq -r '.data[] | "\(.[0]): \(.[3]) (\(.[4]))"'
