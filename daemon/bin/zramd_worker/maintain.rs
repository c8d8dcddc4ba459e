//! `maintain`: one run of maintenance, or one action on one device.

use engine::maintain;
use host::linux::LinuxHost;
use logic::exit::ExitStatus;
use logic::maintain::Cause;
use logic::maintain_report::Report;
use logic::order::{MAINTENANCE, Maintain, Only};
use service::journal;

use super::{configured, frame};

pub fn run(mut order: Maintain) -> ExitStatus {
    if order.only.is_some() {
        // A single action is always a request of a user.
        order.cause = Cause::Request;
    }
    let loaded = configured::loaded(order.config.as_ref());
    // Until the end of the run, its file shows the previous report and the budget.
    frame::run_after(MAINTENANCE, "maintain", |reporter| {
        let mut host = LinuxHost::new("/");
        let (mut report, done) = maintain::run(&mut host, &loaded, &order, reporter);
        if order.only == Some(Only::Budget) {
            // Nothing was done, so the previous report is kept.
            report = Report { budget: report.budget, ..reporter.last() };
        }
        report.actions.iter().for_each(journal::maintained);
        for (device, policy, reason) in &report.skipped {
            let device = if device.is_empty() { String::new() } else { format!("{device}: ") };
            frame::note(&format!("{device}{policy}: not done: {reason}"));
        }
        for resize in &report.resizes {
            frame::note(&format!("zram{}: {}", resize.number, resize.reason));
        }
        reporter.detail(&report)?;
        done.map(|()| report.summary())
    })
}
