//! Exit statuses of the programs. Scripts depend on them, so their meaning never changes.

/// Exit status of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// Done, or nothing to do.
    Success,
    /// Failed, or the configuration has errors.
    Failure,
    /// Wrong usage.
    Usage,
    /// A named object is inactive, or there were only warnings.
    Inactive,
    /// There is no such device or RAM disk.
    NotFound,
    /// This kernel or machine lacks zram or a required feature.
    Unsupported,
    /// Some of several targets failed.
    Partly,
    /// Refused as unsafe.
    Refused,
    /// The daemon or the bus is not running.
    NotRunning,
    /// The command is complete, but its result could not be written.
    Unwritten,
    NotPermitted,
}

/// All exit statuses with descriptions, for documentation.
pub const STATUSES: [(ExitStatus, &str); 11] = [
    (ExitStatus::Success, "Done, or nothing to do."),
    (ExitStatus::Failure, "It failed, or the configuration has mistakes."),
    (ExitStatus::Usage, "Wrong usage."),
    (ExitStatus::Inactive, "A named object is inactive, or doctor found warnings only."),
    (ExitStatus::NotFound, "There is no such device or RAM disk."),
    (
        ExitStatus::Unsupported,
        "The kernel lacks zram or a feature that is needed, or the machine or its configuration does not allow it.",
    ),
    (ExitStatus::Partly, "Some of several targets failed."),
    (
        ExitStatus::Refused,
        "Refused because memory would run out, contents would be lost, or only root may change it.",
    ),
    (ExitStatus::NotRunning, "zramd.service, or the bus, is not running."),
    (ExitStatus::Unwritten, "Done, but the result could not be written."),
    (ExitStatus::NotPermitted, "Not permitted."),
];

impl ExitStatus {
    /// The number for exit(2).
    pub const fn code(self) -> u8 {
        match self {
            ExitStatus::Success => 0,
            ExitStatus::Failure => 1,
            ExitStatus::Usage => 2,
            ExitStatus::Inactive => 3,
            ExitStatus::NotFound => 4,
            ExitStatus::Unsupported => 5,
            ExitStatus::Partly => 6,
            ExitStatus::Refused => 7,
            // As in <sysexits.h>.
            ExitStatus::NotRunning => 69,
            ExitStatus::Unwritten => 74,
            ExitStatus::NotPermitted => 77,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_what_scripts_depend_on() {
        let table = [
            (ExitStatus::Success, 0),
            (ExitStatus::Failure, 1),
            (ExitStatus::Usage, 2),
            (ExitStatus::Inactive, 3),
            (ExitStatus::NotFound, 4),
            (ExitStatus::Unsupported, 5),
            (ExitStatus::Partly, 6),
            (ExitStatus::Refused, 7),
            (ExitStatus::NotRunning, 69),
            (ExitStatus::Unwritten, 74),
            (ExitStatus::NotPermitted, 77),
        ];
        for (status, code) in table {
            assert_eq!(status.code(), code);
        }
    }
}
