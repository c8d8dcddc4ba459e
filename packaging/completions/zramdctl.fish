# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_zramdctl_global_optspecs
    string join \n color= no-ask-password c/config= h/help V/version
end

function __fish_zramdctl_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_zramdctl_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_zramdctl_using_subcommand
    set -l cmd (__fish_zramdctl_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c zramdctl -n "__fish_zramdctl_needs_command" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_needs_command" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_needs_command" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -s V -l version -d 'Print version'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -f -a "list" -d 'List devices and disks, one line each'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -f -a "ls" -d 'List devices and disks, one line each'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -f -a "status" -d 'Explain numbers, choices and problems'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -f -a "show" -d 'Print properties as Key=Value, for scripts'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -f -a "top" -d 'Watch ratio, memory saved, rates and pressure'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -f -a "stats" -d 'Print every counter once, for monitoring'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -f -a "monitor" -d 'Print what changes, until interrupted'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -f -a "doctor" -d 'Look for problems, and say how to mend each'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -f -a "check" -d 'Look for mistakes in the configuration, or in these files; what is otherwise ignored is one too'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -f -a "cat-config" -d 'Print the configuration with the origin of each key'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -f -a "plan" -d 'Show what `reload` would change'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -f -a "reload" -d 'Read the configuration again and bring the machine in line with it'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -f -a "overrides" -d 'Show what holds until the next boot instead of the configuration'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -f -a "unset" -d 'Remove what holds until the next boot, and follow the configuration again'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -f -a "create" -d 'Create a device that lasts until the next boot'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -f -a "remove" -d 'Take a device away'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -f -a "resize" -d 'Give a device another size, until the next boot'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -f -a "swap" -d 'Switch the swap on a device on or off'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -f -a "limit" -d 'Limit the memory that a device may use, until the next boot'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -f -a "adopt" -d 'Take over a device that is in use as configured, but whose record in /run/zramd is lost or damaged'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -f -a "compact" -d 'Give back memory that the allocator holds in half-empty pages'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -f -a "maintain" -d 'Do what [maintenance] asks for now, and say what came of it'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -f -a "bench" -d 'Measure this machine\'s own memory'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -f -a "disk" -d 'RAM disks that outlive a reboot, and their snapshots'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -f -a "import" -d 'Print the configuration of another program as one of zramd'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -f -a "completions" -d 'Print completions for a shell'
complete -c zramdctl -n "__fish_zramdctl_needs_command" -f -a "man" -d 'Print the man page of zramdctl(1)'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand list" -s o -l output -d 'Columns, separated by commas; +COLUMNS adds to those of the default' -r
complete -c zramdctl -n "__fish_zramdctl_using_subcommand list" -s J -l json -d 'JSON: pretty (when nothing is said) or short, on one line' -r -f -a "pretty\t'With line breaks'
short\t'On one line'
off\t'No JSON'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand list" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand list" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand list" -l output-all -d 'All columns'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand list" -s b -l bytes -d 'Amounts as plain numbers of bytes'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand list" -s n -l noheadings -l no-legend -d 'No heading'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand list" -l raw -d 'One blank between columns, blanks in names as \\x20'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand list" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand list" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand ls" -s o -l output -d 'Columns, separated by commas; +COLUMNS adds to those of the default' -r
complete -c zramdctl -n "__fish_zramdctl_using_subcommand ls" -s J -l json -d 'JSON: pretty (when nothing is said) or short, on one line' -r -f -a "pretty\t'With line breaks'
short\t'On one line'
off\t'No JSON'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand ls" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand ls" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand ls" -l output-all -d 'All columns'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand ls" -s b -l bytes -d 'Amounts as plain numbers of bytes'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand ls" -s n -l noheadings -l no-legend -d 'No heading'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand ls" -l raw -d 'One blank between columns, blanks in names as \\x20'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand ls" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand ls" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand status" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand status" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand status" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand status" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand show" -s p -l property -d 'Only these properties' -r
complete -c zramdctl -n "__fish_zramdctl_using_subcommand show" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand show" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand show" -l value -d 'Only the values'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand show" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand show" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand top" -s i -l interval -d 'Seconds between two looks' -r
complete -c zramdctl -n "__fish_zramdctl_using_subcommand top" -s n -l iterations -d 'Print this many looks as text, and end' -r
complete -c zramdctl -n "__fish_zramdctl_using_subcommand top" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand top" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand top" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand top" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand stats" -l format -d 'prometheus (also for the text-file collector of its node exporter), openmetrics or json' -r -f -a "prometheus\t'Prometheus\' text format 0.0.4, which the text-file collector of its node exporter reads'
openmetrics\t'OpenMetrics 1.0, with units'
json\t'One JSON document'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand stats" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand stats" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand stats" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand stats" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand monitor" -l stats -d 'Also print the counters, this often (milliseconds, at least 100)' -r
complete -c zramdctl -n "__fish_zramdctl_using_subcommand monitor" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand monitor" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand monitor" -l json -d 'One JSON object a line'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand monitor" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand monitor" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand doctor" -l json -d 'JSON: pretty (when nothing is said) or short, on one line' -r -f -a "pretty\t'With line breaks'
short\t'On one line'
off\t'No JSON'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand doctor" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand doctor" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand doctor" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand check" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand check" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand check" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand check" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand cat-config" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand cat-config" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand cat-config" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand cat-config" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand plan" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand plan" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand plan" -s f -l force -d 'Let go of contents that would be lost'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand plan" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand plan" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand reload" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand reload" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand reload" -s f -l force -d 'Let go of contents that would be lost'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand reload" -l no-block -d 'Do not wait for the end'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand reload" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand reload" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand overrides" -l json -d 'JSON: pretty (when nothing is said) or short, on one line' -r -f -a "pretty\t'With line breaks'
short\t'On one line'
off\t'No JSON'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand overrides" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand overrides" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand overrides" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand overrides" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand unset" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand unset" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand unset" -l runtime -d 'What `create`, `remove`, `resize`, `limit`, `swap off` and `disk resize` left'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand unset" -l all -d 'Of every device and RAM disk'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand unset" -s f -l force -d 'Let go of contents that would be lost'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand unset" -l no-block -d 'Do not wait for the end'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand unset" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand unset" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand create" -s s -l size -d 'Uncompressed size, for example 4GiB, or an expression as in the configuration' -r
complete -c zramdctl -n "__fish_zramdctl_using_subcommand create" -s a -l algorithm -d 'Compression algorithm, for example zstd(level=3)' -r
complete -c zramdctl -n "__fish_zramdctl_using_subcommand create" -s p -l priority -d 'Swap priority' -r
complete -c zramdctl -n "__fish_zramdctl_using_subcommand create" -s m -l mount-point -d 'Mount it here instead of using it as swap' -r
complete -c zramdctl -n "__fish_zramdctl_using_subcommand create" -s t -l fs-type -d 'Type of file system' -r
complete -c zramdctl -n "__fish_zramdctl_using_subcommand create" -l set -d 'Any other key of a [zramN] section' -r
complete -c zramdctl -n "__fish_zramdctl_using_subcommand create" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand create" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand create" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand create" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand remove" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand remove" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand remove" -s f -l force -d 'Let go of contents that would be lost'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand remove" -l no-block -d 'Do not wait for the end'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand remove" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand remove" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand resize" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand resize" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand resize" -s f -l force -d 'Let go of contents that would be lost'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand resize" -l no-block -d 'Do not wait for the end'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand resize" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand resize" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand swap; and not __fish_seen_subcommand_from on off" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand swap; and not __fish_seen_subcommand_from on off" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand swap; and not __fish_seen_subcommand_from on off" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand swap; and not __fish_seen_subcommand_from on off" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand swap; and not __fish_seen_subcommand_from on off" -f -a "on" -d 'Switch it on'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand swap; and not __fish_seen_subcommand_from on off" -f -a "off" -d 'Switch it off and give its memory back'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand swap; and __fish_seen_subcommand_from on" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand swap; and __fish_seen_subcommand_from on" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand swap; and __fish_seen_subcommand_from on" -l no-block -d 'Do not wait for the end'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand swap; and __fish_seen_subcommand_from on" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand swap; and __fish_seen_subcommand_from on" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand swap; and __fish_seen_subcommand_from off" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand swap; and __fish_seen_subcommand_from off" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand swap; and __fish_seen_subcommand_from off" -l no-block -d 'Do not wait for the end'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand swap; and __fish_seen_subcommand_from off" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand swap; and __fish_seen_subcommand_from off" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand limit" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand limit" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand limit" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand limit" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand adopt" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand adopt" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand adopt" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand adopt" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand compact" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand compact" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand compact" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand compact" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand maintain" -l json -d 'JSON: pretty (when nothing is said) or short, on one line' -r -f -a "pretty\t'With line breaks'
short\t'On one line'
off\t'No JSON'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand maintain" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand maintain" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand maintain" -s n -l dry-run -d 'Only say what would be done; needs no rights'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand maintain" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand maintain" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and not __fish_seen_subcommand_from run show forget adopt ramdisk swap" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and not __fish_seen_subcommand_from run show forget adopt ramdisk swap" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and not __fish_seen_subcommand_from run show forget adopt ramdisk swap" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and not __fish_seen_subcommand_from run show forget adopt ramdisk swap" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and not __fish_seen_subcommand_from run show forget adopt ramdisk swap" -f -a "run" -d 'Measure which compression algorithm is best here, and keep the verdict for "auto"'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and not __fish_seen_subcommand_from run show forget adopt ramdisk swap" -f -a "show" -d 'Show the verdict and its figures again'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and not __fish_seen_subcommand_from run show forget adopt ramdisk swap" -f -a "forget" -d 'Forget the verdict'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and not __fish_seen_subcommand_from run show forget adopt ramdisk swap" -f -a "adopt" -d 'Make swap anew in which next to nothing is stored, where the verdict is another algorithm'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and not __fish_seen_subcommand_from run show forget adopt ramdisk swap" -f -a "ramdisk" -d 'Compare tmpfs, compressed memory and disks as RAM disks'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and not __fish_seen_subcommand_from run show forget adopt ramdisk swap" -f -a "swap" -d 'Put a program under memory pressure, on private swap, and time its faults'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from run" -s a -l algorithms -d 'Only these, separated by semicolons, for example \'lz4;zstd(level=1)\'; the verdict is not kept then' -r
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from run" -l data -d 'Compress the pages of this file instead of those that the configuration says; the verdict is not kept then' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from run" -l page-cluster -d 'Read so many pages at once with every algorithm: 2 to the power of each, for example 0-3' -r
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from run" -l profile -d 'What counts: latency, balanced or capacity, instead of what the configuration says; the verdict is not kept if that is another' -r -f -a "latency\t''
balanced\t''
capacity\t''"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from run" -l threads -d 'Threads for the throughput, four for each CPU at most; otherwise one for each' -r
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from run" -l seconds -d 'How long to measure, 0.5 to 600; more is more exact' -r
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from run" -l chart -d 'Draw a chart into this file (SVG)' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from run" -l json -d 'JSON: pretty (when nothing is said) or short, on one line' -r -f -a "pretty\t'With line breaks'
short\t'On one line'
off\t'No JSON'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from run" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from run" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from run" -l generator -d 'Compress generated pages alone instead of those that the configuration says; the verdict is kept'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from run" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from run" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from show" -l chart -d 'Draw a chart into this file (SVG)' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from show" -l json -d 'JSON: pretty (when nothing is said) or short, on one line' -r -f -a "pretty\t'With line breaks'
short\t'On one line'
off\t'No JSON'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from show" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from show" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from show" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from forget" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from forget" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from forget" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from forget" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from adopt" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from adopt" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from adopt" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from adopt" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from ramdisk" -s s -l size -d 'Amount to write and read in each pass, for example 128MiB' -r
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from ramdisk" -l data -d 'Take the data from this file; otherwise from files below /usr' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from ramdisk" -s a -l algorithm -d 'Compression algorithms, separated by semicolons, for example \'lz4;zstd(level=1)\'; otherwise what the kernel selects' -r
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from ramdisk" -l json -d 'JSON: pretty (when nothing is said) or short, on one line' -r -f -a "pretty\t'With line breaks'
short\t'On one line'
off\t'No JSON'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from ramdisk" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from ramdisk" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from ramdisk" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from ramdisk" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from swap" -s m -l memory -d 'Memory of the program, for example 128MiB' -r
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from swap" -l data -d 'Take its contents from this file; otherwise from files below /usr' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from swap" -s a -l algorithm -d 'Compression algorithms, separated by semicolons, for example \'lz4;zstd(level=1)\'; otherwise those that are worth trying' -r
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from swap" -l page-cluster -d 'Values of vm.page-cluster, for example 0-3 or 0,3; otherwise all of them' -r
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from swap" -l json -d 'JSON: pretty (when nothing is said) or short, on one line' -r -f -a "pretty\t'With line breaks'
short\t'On one line'
off\t'No JSON'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from swap" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from swap" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from swap" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand bench; and __fish_seen_subcommand_from swap" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and not __fish_seen_subcommand_from list status save restore verify snapshots pin delete export resize" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and not __fish_seen_subcommand_from list status save restore verify snapshots pin delete export resize" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and not __fish_seen_subcommand_from list status save restore verify snapshots pin delete export resize" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and not __fish_seen_subcommand_from list status save restore verify snapshots pin delete export resize" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and not __fish_seen_subcommand_from list status save restore verify snapshots pin delete export resize" -f -a "list" -d 'List RAM disks with what is kept of them'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and not __fish_seen_subcommand_from list status save restore verify snapshots pin delete export resize" -f -a "status" -d 'Explain how keeping them goes'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and not __fish_seen_subcommand_from list status save restore verify snapshots pin delete export resize" -f -a "save" -d 'Save them now'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and not __fish_seen_subcommand_from list status save restore verify snapshots pin delete export resize" -f -a "restore" -d 'Save a disk, then bring it back filled from a snapshot'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and not __fish_seen_subcommand_from list status save restore verify snapshots pin delete export resize" -f -a "verify" -d 'Read a snapshot to its end and compare it with its manifest'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and not __fish_seen_subcommand_from list status save restore verify snapshots pin delete export resize" -f -a "snapshots" -d 'List the snapshots of a disk, newest first'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and not __fish_seen_subcommand_from list status save restore verify snapshots pin delete export resize" -f -a "pin" -d 'Keep a snapshot from being pruned'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and not __fish_seen_subcommand_from list status save restore verify snapshots pin delete export resize" -f -a "delete" -d 'Delete a snapshot, but never the only good one'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and not __fish_seen_subcommand_from list status save restore verify snapshots pin delete export resize" -f -a "export" -d 'Copy a snapshot into an empty or new folder, as root'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and not __fish_seen_subcommand_from list status save restore verify snapshots pin delete export resize" -f -a "resize" -d 'Give a disk another size, until the next boot'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from list" -s J -l json -d 'JSON: pretty (when nothing is said) or short, on one line' -r -f -a "pretty\t'With line breaks'
short\t'On one line'
off\t'No JSON'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from list" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from list" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from list" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from status" -s J -l json -d 'JSON: pretty (when nothing is said) or short, on one line' -r -f -a "pretty\t'With line breaks'
short\t'On one line'
off\t'No JSON'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from status" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from status" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from status" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from save" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from save" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from save" -l no-block -d 'Do not wait for the end'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from save" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from save" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from restore" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from restore" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from restore" -l no-block -d 'Do not wait for the end'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from restore" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from restore" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from verify" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from verify" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from verify" -l no-block -d 'Do not wait for the end'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from verify" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from snapshots" -s J -l json -d 'JSON: pretty (when nothing is said) or short, on one line' -r -f -a "pretty\t'With line breaks'
short\t'On one line'
off\t'No JSON'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from snapshots" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from snapshots" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from snapshots" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from snapshots" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from pin" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from pin" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from pin" -l off -d 'Let it be pruned again'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from pin" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from pin" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from delete" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from delete" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from delete" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from delete" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from export" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from export" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from export" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from resize" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from resize" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from resize" -l no-block -d 'Do not wait for the end'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from resize" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand disk; and __fish_seen_subcommand_from resize" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand import" -l root -d 'Read, and write, below this folder' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand import" -l set -d 'What a variable is worth for which zram-generator would run a program (its set! lines)' -r
complete -c zramdctl -n "__fish_zramdctl_using_subcommand import" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand import" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand import" -l write -d 'Write /etc/zramd/zramd.toml, unless it is there already'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand import" -l run-programs -d 'Run these programs once, by /bin/sh as zram-generator does, and put in what they print'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand import" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand import" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand completions" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand completions" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand completions" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand completions" -s h -l help -d 'Print help'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand man" -l color -d 'Colours: always, never, or auto (the default): on a terminal unless NO_COLOR is set' -r -f -a "auto\t'On a terminal'
always\t'Always'
never\t'Never'"
complete -c zramdctl -n "__fish_zramdctl_using_subcommand man" -s c -l config -d 'Read this file instead of those below /usr/lib, /etc and /run' -r -F
complete -c zramdctl -n "__fish_zramdctl_using_subcommand man" -l no-ask-password -d 'Never ask for a password'
complete -c zramdctl -n "__fish_zramdctl_using_subcommand man" -s h -l help -d 'Print help'
