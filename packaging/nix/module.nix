# zramd on NixOS: an example of a module. It needs a package of zramd with the paths of the Nix store, see packagers.md.
{ config, lib, pkgs, ... }:

let
  cfg = config.services.zramd;
  toml = pkgs.formats.toml { };
  file = toml.generate "zramd.toml" cfg.settings;
in
{
  options.services.zramd = {
    enable = lib.mkEnableOption "zramd: compressed swap and RAM disks";

    package = lib.mkOption {
      type = lib.types.package;
      description = "The package of zramd.";
    };

    settings = lib.mkOption {
      type = toml.type;
      default = { };
      example = lib.literalExpression ''
        {
          zram0 = {
            zram-size = "min(ram / 2, 4GiB)";
            compression-algorithm = "zstd";
            swap-priority = 100;
          };
          ramdisk.scratch = {
            mount-point = "/scratch";
            size = "20%";
          };
        }
      '';
      description = "The contents of /etc/zramd/zramd.toml, see zramd.toml(5).";
    };
  };

  config = lib.mkIf cfg.enable {
    assertions = [
      {
        assertion = !config.zramSwap.enable && !config.services.zram-generator.enable;
        message = "services.zramd, zramSwap and services.zram-generator set up the same devices: enable one of them.";
      }
    ];

    environment.etc."zramd/zramd.toml".source = file;
    # Commands, manual pages, completions, and the polkit actions.
    environment.systemPackages = [ cfg.package ];
    security.polkit.enable = true;
    services.dbus.packages = [ cfg.package ];
    services.udev.packages = [ cfg.package ];

    # The units and the generator. NixOS ignores [Install] in the units of packages.
    systemd.packages = [ cfg.package ];
    systemd.services.zramd = {
      wantedBy = [ "multi-user.target" ];
      # ExecReload= applies the new file; devices that did not change stay in use.
      reloadTriggers = [ file ];
    };
    # They are started by systemd, as the generator decides; a switch to a new configuration must not stop swap in use.
    systemd.services."zramd-setup@".restartIfChanged = false;
    systemd.services."zramd-ramdisk@".restartIfChanged = false;
  };
}
