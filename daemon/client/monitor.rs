//! `monitor`: prints a line for each change, until interrupted.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use jiff::Zoned;
use tokio::signal::unix::{Signal, SignalKind, signal};
use zbus::fdo::{DBusProxy, ManagedObjects, NameOwnerChangedStream};
use zbus::message::Type;
use zbus::{MatchRule, Message, MessageStream, OwnedObjectPath, OwnedVariant};

use super::args::Json;
use super::connect::of_call;
use super::connect::{Bus, answered};
use super::job::Finished;
use super::monitored::{Event, Monitored, News, Objects};
use super::{bus_value, out};
use logic::error::Error;
use logic::exit::ExitStatus;
use service::reply::THE_BUS;
use service::{NAME, ROOT, stream};

/// Maximum number of queued signals.
const QUEUE: usize = 4096;

/// Form of the output.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// JSON; short is one object a line.
    pub json: Json,
    /// Interval of counters in milliseconds.
    pub stats: Option<u32>,
}

/// Runs until Ctrl-C, or until standard output is closed.
pub async fn run(ask: bool, form: Form) -> Result<ExitStatus, Error> {
    let bus = Bus::open(ask).await?;
    let rule = MatchRule::builder().msg_type(Type::Signal).sender(NAME).build().map_err(of_call)?;
    let subscribe = async {
        let queue = NonZeroUsize::new(QUEUE);
        let signals = MessageStream::for_match_rule(rule, bus.connection(), queue).await?;
        let daemon = DBusProxy::new(bus.connection()).await?;
        Ok((signals, daemon.receive_name_owner_changed_with_args(&[(0, NAME)]).await?))
    };
    let subscribed = THE_BUS.within(subscribe).await.map_err(|silent| silent.0)?;
    let (mut signals, mut owners) = subscribed.map_err(of_call)?;
    let mut monitored =
        Monitored::new(begin(&bus, form).await.map_err(|error| answered(error.kind, &error.message))?);
    let failed = |error| Error::failed(format!("cannot wait for Ctrl-C: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    if !show(&monitored.greeting(), form) {
        return Ok(ExitStatus::Success);
    }
    loop {
        let news = tokio::select! {
            message = stream::next(&mut signals) => match message {
                Some(Ok(message)) => read(&message),
                Some(Err(_)) => None,
                None => return Err(Error::failed("the system bus is gone")),
            },
            there = presence(&mut owners) => match there {
                Some(true) => Some(News::Came(begin(&bus, form).await.map_err(|error| answered(error.kind, &error.message))?)),
                Some(false) => Some(News::Left),
                None => return Err(Error::failed("the system bus is gone")),
            },
            () = ended(&mut interrupt) => return Ok(ExitStatus::Success),
        };
        for event in news.map(|news| monitored.hear(news)).unwrap_or_default() {
            if !show(&event, form) {
                return Ok(ExitStatus::Success);
            }
        }
    }
}

async fn ended(interrupt: &mut Signal) {
    interrupt.recv().await;
}

/// Waits until the daemon enters or leaves the bus; true if it is there.
async fn presence(owners: &mut NameOwnerChangedStream) -> Option<bool> {
    let change = stream::next(owners).await?;
    Some(change.args().is_ok_and(|args| args.new_owner().is_some()))
}

/// Subscribes to counters, and reads all objects.
async fn begin(bus: &Bus, form: Form) -> Result<Objects, Error> {
    if let Some(interval) = form.stats {
        let () = bus.manager("Subscribe", &interval).await?;
    }
    let found = bus.call(ROOT, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", &()).await?;
    let mut objects = objects(&found);
    let properties: Raw =
        bus.call(ROOT, "org.freedesktop.DBus.Properties", "GetAll", &"org.zramd1.Manager").await?;
    objects
        .entry(ROOT.to_owned())
        .or_default()
        .insert("org.zramd1.Manager".to_owned(), bus_value::properties(&properties));
    Ok(objects)
}

fn objects(found: &ManagedObjects) -> Objects {
    let mut objects = Objects::new();
    for (path, interfaces) in found {
        let object = objects.entry(path.to_string()).or_default();
        for (interface, properties) in interfaces {
            object.insert(interface.to_string(), bus_value::properties(properties));
        }
    }
    objects
}

/// Properties as in signals.
type Raw = BTreeMap<String, OwnedVariant>;

/// The content of a signal; `None` if it is of no interest.
fn read(message: &Message) -> Option<News> {
    let header = message.header();
    let path = header.path()?.to_string();
    let body = message.body();
    match (header.interface()?.as_str(), header.member()?.as_str()) {
        ("org.freedesktop.DBus.ObjectManager", "InterfacesAdded") => {
            let (path, found): (OwnedObjectPath, BTreeMap<String, Raw>) = body.deserialize().ok()?;
            let found = found.into_iter().map(|(name, raw)| (name, bus_value::properties(&raw)));
            Some(News::Added(path.to_string(), found.collect()))
        }
        ("org.freedesktop.DBus.ObjectManager", "InterfacesRemoved") => {
            let (path, gone): (OwnedObjectPath, Vec<String>) = body.deserialize().ok()?;
            Some(News::Removed(path.to_string(), gone))
        }
        ("org.freedesktop.DBus.Properties", "PropertiesChanged") => {
            let (interface, changed, _): (String, Raw, Vec<String>) = body.deserialize().ok()?;
            Some(News::Changed(path, interface, bus_value::properties(&changed)))
        }
        ("org.zramd1.Job", "Finished") => Some(News::Finished(path, Finished::read(&body)?)),
        ("org.zramd1.Device", "StatsUpdated") => {
            let stats: Raw = body.deserialize().ok()?;
            Some(News::Stats(path, bus_value::properties(&stats)))
        }
        _ => None,
    }
}

fn show(event: &Event, form: Form) -> bool {
    let now = stamp(&Zoned::now(), form);
    match form.json {
        Json::Off => out::line(&event.line(&now)),
        json => out::data(&event.json(&now, json)),
    }
    out::is_open()
}

/// `08:10:21.123`; as JSON in RFC 3339: `2026-11-21T08:10:21.123+01:00`.
fn stamp(moment: &Zoned, form: Form) -> String {
    moment.strftime(if form.json == Json::Off { "%T%.3f" } else { "%FT%T%.3f%:z" }).to_string()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use jiff::tz::{Offset, TimeZone};

    use super::*;

    #[test]
    fn lines_have_the_time_of_day_and_json_has_rfc_3339() {
        let zone = TimeZone::fixed(Offset::from_seconds(-5400).unwrap());
        let moment = date(2026, 3, 9).at(8, 5, 1, 7_000_000).to_zoned(zone).unwrap();
        let stamp = |json| stamp(&moment, Form { json, stats: None });
        assert_eq!(stamp(Json::Short), "2026-03-09T08:05:01.007-01:30");
        assert_eq!(stamp(Json::Off), "08:05:01.007");
    }
}
