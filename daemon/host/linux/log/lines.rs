//! Events of `tracing` as lines with the fields of the spans around them.

use std::fmt;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, Scope};

use super::LOG;
use super::entry::Line;
use logic::log::Level;

/// Values by the names of the journal.
#[derive(Debug, Default)]
pub(super) struct Fields(Vec<(&'static str, String)>);

impl Fields {
    fn put(&mut self, name: &'static str, value: String) {
        self.0.retain(|(other, _)| *other != name);
        self.0.push((name, value));
    }

    fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(other, _)| *other == name)?;
        Some(self.0.swap_remove(at).1)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field.name(), format!("{value:?}"));
    }
}

/// The layer that writes lines.
pub(super) struct Lines;

impl<S: Subscriber + for<'span> LookupSpan<'span>> Layer<S> for Lines {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let Some(log) = LOG.get() else { return };
        let mut own = Fields::default();
        event.record(&mut own);
        let metadata = event.metadata();
        let level = own.take("PRIORITY").and_then(|number| number.parse().ok());
        let level = level.unwrap_or_else(|| level_of(*metadata.level()));
        if level > log.level() {
            return;
        }
        let message = own.take("message").unwrap_or_default();
        let mut line = Line::new(level, log.identifier, &message);
        line.place = metadata.file().zip(metadata.line());
        if let Some(service) = &log.service {
            // `journalctl --unit` and `systemctl status` look for it, too, in messages of root.
            line.put("OBJECT_SYSTEMD_UNIT", service);
        }
        let inherited = log.inherited.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        inherited.for_each(|(name, value)| line.put(name, value));
        for span in context.event_scope(event).into_iter().flat_map(Scope::from_root) {
            if let Some(fields) = span.extensions().get::<Fields>() {
                fields.iter().for_each(|(name, value)| line.put(name, value));
            }
        }
        own.iter().for_each(|(name, value)| line.put(name, value));
        log.output().sink.write(&line);
    }
}

fn level_of(level: tracing::Level) -> Level {
    match level {
        tracing::Level::ERROR => Level::Err,
        tracing::Level::WARN => Level::Warning,
        tracing::Level::INFO => Level::Info,
        tracing::Level::DEBUG => Level::Debug,
        tracing::Level::TRACE => Level::Trace,
    }
}
