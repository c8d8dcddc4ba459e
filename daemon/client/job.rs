//! Waiting for a job: progress on a terminal; Ctrl-C cancels.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::signal::unix::{Signal, SignalKind, signal};
use zbus::fdo::NameOwnerChangedStream;
use zbus::message::Type;
use zbus::{MatchRule, Message, MessageStream, OwnedObjectPath};

use super::connect::of_call;
use super::connect::{Bus, answered};
use super::out;
use logic::error::{Error, ErrorKind};
use logic::outcome::OnTheBus;
use service::reply::{THE_BUS, ZRAMD};
use service::{NAME, ROOT, stream};

/// Interval of progress updates.
const LOOK: Duration = Duration::from_millis(120);
/// Updates before the progress bar is drawn: short jobs need none.
const PATIENCE: u32 = 4;
/// Steps of the progress bar.
const STEPS: u64 = 1000;

/// Signals of all jobs. Subscribed before a job is started, so that no signal is missed.
#[derive(Debug)]
pub struct Jobs<'a> {
    bus: &'a Bus,
    signals: MessageStream,
    owners: NameOwnerChangedStream,
}

/// Why waiting ended.
enum Event {
    Signal(Option<Message>),
    Left,
    Interrupt,
    Look,
    Silent(Error),
}

impl<'a> Jobs<'a> {
    /// Subscribes.
    pub async fn listen(bus: &'a Bus) -> Result<Jobs<'a>, Error> {
        let rule = MatchRule::builder()
            .msg_type(Type::Signal)
            .sender(NAME)
            .path_namespace(format!("{ROOT}/job"))
            .build()
            .map_err(of_call)?;
        let subscribe = async {
            let signals = MessageStream::for_match_rule(rule, bus.connection(), None).await?;
            let daemon = zbus::fdo::DBusProxy::new(bus.connection()).await?;
            let owners = daemon.receive_name_owner_changed_with_args(&[(0, NAME)]).await?;
            Ok(Jobs { bus, signals, owners })
        };
        THE_BUS.within(subscribe).await.map_err(|silent| silent.0)?.map_err(of_call)
    }

    /// Waits for the end of a job, and returns a line for each target. `doing` is shown meanwhile.
    pub async fn wait(&mut self, path: &OwnedObjectPath, doing: &str) -> Result<Vec<String>, Error> {
        let mut interrupt = signal(SignalKind::interrupt())
            .map_err(|error| Error::failed(format!("cannot wait for Ctrl-C: {error}")))?;
        let mut meter = Meter::new(doing);
        let mut ticks = tokio::time::interval(LOOK);
        let mut cancelled = false;
        // A job takes as long as it makes progress.
        let silence = ZRAMD.silence(self.bus.connection());
        let mut silence = std::pin::pin!(silence);
        loop {
            let event = tokio::select! {
                biased;
                event = self.event(&mut interrupt, &mut ticks) => event,
                error = &mut silence => Event::Silent(error.0),
            };
            match event {
                Event::Silent(error) => {
                    meter.clear();
                    return Err(error.join(Error::failed(format!("no longer waiting for {}", path.as_str()))));
                }
                Event::Signal(Some(message)) => match read(&message, path) {
                    Some(News::Progress(share)) => meter.share(share),
                    Some(News::Finished(finished)) => {
                        meter.clear();
                        return finished.lines();
                    }
                    None => {}
                },
                Event::Signal(None) => return Err(Error::failed("the system bus is gone")),
                Event::Left => {
                    return Err(Error::failed(
                        "zramd.service stopped meanwhile; it completes the change when it starts again",
                    ));
                }
                Event::Interrupt if cancelled => {
                    meter.clear();
                    return Err(Error::failed(format!("no longer waiting; {} continues", path.as_str())));
                }
                Event::Interrupt => {
                    cancelled = true;
                    meter.say("cancelling; press Ctrl-C again to stop waiting");
                    let asked = tokio::select! {
                        asked = self.cancel(path) => asked,
                        error = &mut silence => Err(error.0),
                    };
                    if let Err(failure) = asked {
                        meter.clear();
                        return Err(failure);
                    }
                }
                Event::Look => meter.draw(),
            }
        }
    }

    async fn event(&mut self, interrupt: &mut Signal, ticks: &mut tokio::time::Interval) -> Event {
        tokio::select! {
            // In this order: the end of a job is sent before the daemon leaves the bus.
            biased;
            message = stream::next(&mut self.signals) => Event::Signal(message.and_then(Result::ok)),
            _ = interrupt.recv() => Event::Interrupt,
            () = left(&mut self.owners) => Event::Left,
            _ = ticks.tick() => Event::Look,
        }
    }

    async fn cancel(&self, path: &OwnedObjectPath) -> Result<(), Error> {
        self.bus.call(path.as_str(), "org.zramd1.Job", "Cancel", &()).await
    }
}

/// Ends when the daemon has left the bus.
async fn left(owners: &mut NameOwnerChangedStream) {
    while let Some(change) = stream::next(owners).await {
        if change.args().is_ok_and(|args| args.new_owner().is_none()) {
            return;
        }
    }
}

/// The content of a signal about a job.
#[derive(Debug, PartialEq)]
enum News {
    Progress(f64),
    Finished(Finished),
}

/// The content of a signal, if it is about the job at this path.
fn read(message: &Message, path: &OwnedObjectPath) -> Option<News> {
    let header = message.header();
    if header.path()?.as_str() != path.as_str() {
        return None;
    }
    let body = message.body();
    match header.member()?.as_str() {
        "Finished" => Some(News::Finished(Finished::read(&body)?)),
        "PropertiesChanged" => {
            let (_, changed, _): Changed<'_> = body.deserialize().ok()?;
            Some(News::Progress(f64::try_from(changed.get("Progress")?).ok()?))
        }
        _ => None,
    }
}

/// Arguments of `PropertiesChanged`.
type Changed<'a> = (&'a str, std::collections::HashMap<&'a str, zbus::Variant<'a>>, Vec<&'a str>);

/// The result of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// `done`, `failed`, `cancelled` or `postponed`.
    pub result: String,
    /// Message for the whole job.
    pub message: String,
    /// The kind of error, unless the result is `done`.
    pub error: Option<ErrorKind>,
    /// Outcome of each target: kind of error, and message.
    pub outcomes: Vec<(Option<ErrorKind>, String)>,
}

impl Finished {
    /// Parses the arguments of the signal `org.zramd1.Job.Finished`.
    pub fn read(body: &zbus::message::Body) -> Option<Finished> {
        let kind = |name: &str| (!name.is_empty()).then(|| ErrorKind::of_bus(name));
        let (result, message, error, outcomes): (String, String, String, Vec<OnTheBus>) =
            body.deserialize().ok()?;
        let outcomes = outcomes.into_iter().map(|(_, _, error, text)| (kind(&error), text)).collect();
        Some(Finished { result, message, error: kind(&error), outcomes })
    }

    /// The lines to print, one per target. If a target failed, all lines are part of the error, failed ones first.
    fn lines(self) -> Result<Vec<String>, Error> {
        let Some(error) = self.error else {
            return Ok(self.outcomes.into_iter().map(|(_, text)| text).collect());
        };
        let (done, failed): (Vec<_>, Vec<_>) =
            self.outcomes.into_iter().partition(|(error, _)| error.is_none());
        let kind = if done.is_empty() { error } else { ErrorKind::Partly };
        let last = failed.iter().rposition(|(error, _)| *error == Some(ErrorKind::Config));
        let failed = failed.into_iter().enumerate().map(|(index, (error, text))| match error {
            // Printed once for all targets.
            Some(ErrorKind::Config) if last != Some(index) => text,
            _ => answered(error.unwrap_or(kind), &text).message,
        });
        let done = done.into_iter().map(|(_, text)| format!("done: {text}"));
        Err(Error::new(kind, failed.chain(done).collect::<Vec<String>>().join("\n")))
    }
}

/// The progress bar; nothing is drawn without a terminal.
pub struct Meter {
    bar: ProgressBar,
    looks: u32,
    known: bool,
}

impl Meter {
    pub fn new(doing: &str) -> Meter {
        let target = if out::notes_have_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(STEPS), target);
        bar.set_style(style("{spinner} {msg} ({elapsed})"));
        bar.set_message(doing.to_owned());
        Meter { bar, looks: 0, known: false }
    }

    pub fn draw(&mut self) {
        self.looks += 1;
        if self.looks > PATIENCE {
            self.bar.tick();
        }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Clamped to 0..1 before.
    pub fn share(&mut self, share: f64) {
        if share <= 0.0 {
            return;
        }
        if !self.known {
            self.known = true;
            self.bar.set_style(style("{spinner} {msg} [{bar:30}] {percent:>3}% ({elapsed})"));
        }
        self.bar.set_position((share.min(1.0) * STEPS as f64) as u64);
    }

    pub fn say(&self, text: &str) {
        self.bar.suspend(|| out::note(text));
    }

    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.progress_chars("=> ").tick_chars("-\\|/ ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(number: u32) -> OwnedObjectPath {
        format!("{ROOT}/job/{number}").try_into().unwrap()
    }

    fn finished(error: Option<ErrorKind>, outcomes: &[(Option<ErrorKind>, &str)]) -> Finished {
        Finished {
            result: "failed".to_owned(),
            message: String::new(),
            error,
            outcomes: outcomes.iter().map(|(kind, text)| (*kind, (*text).to_owned())).collect(),
        }
    }

    #[test]
    fn only_the_signals_of_the_job_itself_count() {
        let outcomes =
            vec![("zram0".to_owned(), "create".to_owned(), String::new(), "zram0: create".to_owned())];
        let signal = Message::signal(path(7).as_str(), "org.zramd1.Job", "Finished")
            .build(&("done", "zram0: create", "", outcomes))
            .unwrap();
        let Some(News::Finished(news)) = read(&signal, &path(7)) else { panic!("no news") };
        assert_eq!((news.result.as_str(), news.error), ("done", None));
        assert_eq!(news.lines(), Ok(vec!["zram0: create".to_owned()]));
        assert_eq!(read(&signal, &path(8)), None);
        let changed: std::collections::HashMap<&str, zbus::Variant<'_>> =
            [("Progress", 0.5.into())].into_iter().collect();
        let progress =
            Message::signal(path(7).as_str(), "org.freedesktop.DBus.Properties", "PropertiesChanged")
                .build(&("org.zramd1.Job", changed, Vec::<&str>::new()))
                .unwrap();
        assert_eq!(read(&progress, &path(7)), Some(News::Progress(0.5)));
    }

    #[test]
    fn the_result_of_a_job_is_that_of_the_command() {
        let (lost, memory) = (ErrorKind::LosesContents, ErrorKind::InsufficientMemory);
        let cancelled =
            finished(Some(ErrorKind::Cancelled), &[(Some(ErrorKind::Cancelled), "zram0: cancelled")]);
        assert_eq!(cancelled.lines(), Err(Error::new(ErrorKind::Cancelled, "zram0: cancelled")));
        let refused = finished(Some(memory), &[(Some(memory), "zram0: too much")]);
        assert_eq!(refused.lines(), Err(Error::new(memory, "zram0: too much")));
        // Failures are printed first, with a hint if `--force` would help, and successful targets after them.
        let some =
            finished(Some(lost), &[(None, "zram0: create"), (Some(lost), "zram1: an ext4 would be lost")]);
        let message = "zram1: an ext4 would be lost (--force allows it)\ndone: zram0: create";
        assert_eq!(some.lines(), Err(Error::new(ErrorKind::Partly, message)));
    }
}
