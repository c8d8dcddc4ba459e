//! Spans of log messages, and messages about plans.

use logic::plan::{Decision, Plan};
use logic::record::Target;
use tracing::Span;

/// The span of work on a target.
pub(super) fn span(target: &Target) -> Span {
    let name = target.to_string();
    match target {
        Target::Device(_) => tracing::error_span!("device", ZRAMD_DEVICE = name),
        Target::Ramdisk(disk) => tracing::error_span!("ramdisk", ZRAMD_RAMDISK = disk),
        Target::Vm | Target::Zswap => tracing::error_span!("settings", ZRAMD_OBJECT = name),
    }
}

fn decision(decision: Decision) -> &'static str {
    match decision {
        Decision::Planned => "planned",
        Decision::Skipped => "skipped",
        Decision::Refused => "refused",
    }
}

/// Logs what was decided.
pub(super) fn planned(plan: Plan) -> Plan {
    if !tracing::enabled!(tracing::Level::DEBUG) {
        return plan;
    }
    for item in &plan.items {
        let _span = span(&item.target).entered();
        tracing::debug!("{}: {}: {}", item.target, decision(item.decision), item.reason);
    }
    for group in &plan.groups {
        let _span = span(&group.target).entered();
        for step in &group.before {
            tracing::trace!("{}: planned: {step}", group.target);
        }
    }
    plan
}
