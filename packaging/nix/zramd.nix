# The package of zramd on NixOS, from this tree: `pkgs.callPackage ./zramd.nix { }`.
{ lib, rustPlatform, coreutils, systemd }:

rustPlatform.buildRustPackage {
  pname = "zramd";
  version = (builtins.fromTOML (builtins.readFile ../../Cargo.toml)).workspace.package.version;
  src = lib.cleanSource ../..;
  cargoLock.lockFile = ../../Cargo.lock;

  # Programs of zramd are in the output, others in their own ones, and mkfs in the profile of the system. `/usr/lib/zramd` itself stays
  # a directory of the configuration, which NixOS lacks.
  postPatch = ''
    patchShebangs packaging
    sed -i -E \
      -e "s,/usr/lib/zramd/(zramd|zramd-setup|zramd-worker)( |$),$out/lib/zramd/\1\2,g" \
      -e "s,/usr/bin/zramdctl,$out/bin/zramdctl,g" \
      -e "s,/usr/bin/mkdir,${coreutils}/bin/mkdir,g" \
      -e "s,/usr/bin/journalctl,${systemd}/bin/journalctl,g" \
      units/*.service
    substituteInPlace daemon/logic/unit/ramdisk.rs --replace-fail '"/usr/lib/zramd/zramd-worker' "\"$out/lib/zramd/zramd-worker"
    substituteInPlace daemon/host/linux/process.rs \
      --replace-fail 'Path::new("/usr/lib/zramd")' "Path::new(\"$out/lib/zramd\")" \
      --replace-fail '[&str; 4] = ["usr/sbin"' '[&str; 5] = ["run/current-system/sw/bin", "usr/sbin"'
    substituteInPlace daemon/host/linux/mkfs.rs --replace-fail '"/usr/sbin:' '"/run/current-system/sw/bin:/usr/sbin:'
  '';

  # The tests compare the tree with itself as it is without these paths.
  doCheck = false;

  installPhase = ''
    runHook preInstall
    mkdir -p target/release
    find target -path '*/release/*' -maxdepth 3 -type f -name 'zramd*' -perm -u+x -exec cp -n {} target/release \;
    packaging/install --destdir "$out"
    mv "$out"/usr/* "$out"
    rmdir "$out/usr"
    runHook postInstall
  '';

  meta = {
    description = "Compressed swap and RAM disks: a daemon, a generator and a command";
    license = [ lib.licenses.mit lib.licenses.asl20 ];
    mainProgram = "zramdctl";
    platforms = lib.platforms.linux;
  };
}
