//! Objects whose properties are a table of [`logic::property`]; their methods and signals are those of an `#[interface]`.

use std::collections::HashMap;
use std::fmt::Write;

use async_trait::async_trait;
use zbus::message::{Header, Message};
use zbus::names::{InterfaceName, MemberName};
use zbus::object_server::{DispatchResult, Interface, SignalEmitter};
use zbus::{BoxDBusError, Connection, ObjectServer, OwnedVariant, Variant, fdo};

use crate::names::{device_path_or_none, ramdisk_path_or_none};
use logic::config::setting::{Effect, Setting};
use logic::property::{Properties, Property, Signal, Value};

/// An object without the properties that [`Table`] adds.
pub(crate) trait Object: Interface {
    /// What the properties show.
    type State: Properties + Send;

    /// The present state. It is the default after a device or RAM disk is gone, until its object is removed.
    fn state(&self) -> impl Future<Output = Self::State> + Send;
}

/// An object with its properties. zbus' `#[interface]` would take a function for each of them.
#[derive(Debug)]
pub(crate) struct Table<T>(pub(crate) T);

impl<T: Object> Table<T> {
    /// The values of the properties that are announced when they change.
    pub(crate) async fn announced(&self) -> zbus::Result<HashMap<String, OwnedVariant>> {
        let state = self.0.state().await;
        let announced = T::State::all().filter(|property| property.signal == Signal::Change);
        announced.map(|property| Ok((property.name.to_owned(), owned(property.value(&state))?))).collect()
    }
}

/// The values of these properties, and when they were read: a sample as in the signals with statistics.
pub(crate) fn sample<T: Properties>(
    state: &T,
    names: &[&str],
    timestamp_monotonic_usec: u64,
) -> HashMap<&'static str, Variant<'static>> {
    let named = T::all().filter(|property| names.contains(&property.name));
    let mut sample: HashMap<_, _> =
        named.map(|property| (property.name, variant(property.value(state)))).collect();
    sample.insert("StatsTimestampMonotonic", timestamp_monotonic_usec.into());
    sample
}

pub(crate) fn variant(value: Value) -> Variant<'static> {
    let object = |path: String| {
        let path = zbus::ObjectPath::try_from(path).unwrap_or_default();
        Variant::from(path.into_owned())
    };
    match value {
        Value::Bool(value) => value.into(),
        Value::I32(value) => value.into(),
        Value::U32(value) => value.into(),
        Value::U64(value) => value.into(),
        Value::F64(value) => value.into(),
        Value::Text(value) => value.into(),
        Value::Device(name) => object(device_path_or_none(&name)),
        Value::Ramdisk(name) => object(ramdisk_path_or_none(&name)),
        Value::Texts(value) => value.into(),
        Value::Numbered(value) => value.into(),
        Value::Named(value) => value.into(),
        Value::Counts(value) => value.into(),
        Value::Threes(value) => value.into(),
        Value::Fours(value) => value.into(),
        Value::Fives(value) => value.into(),
        Value::Settings(value) => value.into_iter().map(setting_row).collect::<Vec<_>>().into(),
    }
}

type SettingRow = (String, String, String, Variant<'static>, &'static str, String, u32);

fn setting_row(setting: Setting) -> SettingRow {
    let Setting { section, key, written, value, source, file, line } = setting;
    let value = match value {
        None => String::new().into(),
        Some(Effect::Bool(value)) => value.into(),
        Some(Effect::Bytes(count) | Effect::Seconds(count)) => count.into(),
        Some(Effect::Integer(number)) => number.into(),
        Some(Effect::Number(number)) => number.into(),
        Some(Effect::Text(text)) => text.into(),
        Some(Effect::List(texts)) => texts.into(),
    };
    (section, key, written, value, source.word(), file, line)
}

fn owned(value: Value) -> zbus::Result<OwnedVariant> {
    OwnedVariant::try_from(variant(value))
}

#[async_trait]
impl<T: Object> Interface for Table<T> {
    fn name() -> InterfaceName<'static> {
        T::name()
    }

    async fn get(
        &self,
        name: &str,
        _: &ObjectServer,
        _: &Connection,
        _: Option<&Header<'_>>,
        _: &SignalEmitter<'_>,
    ) -> Option<Result<OwnedVariant, BoxDBusError>> {
        let property = T::State::all().find(|property| property.name == name)?;
        let value = owned(property.value(&self.0.state().await));
        Some(value.map_err(|error| Box::new(fdo::Error::from(error)) as BoxDBusError))
    }

    async fn get_all(
        &self,
        _: &ObjectServer,
        _: &Connection,
        _: Option<&Header<'_>>,
        _: &SignalEmitter<'_>,
    ) -> fdo::Result<HashMap<String, OwnedVariant>> {
        let state = self.0.state().await;
        T::State::all()
            .map(|property| Ok((property.name.to_owned(), owned(property.value(&state))?)))
            .collect()
    }

    async fn set_mut(
        &mut self,
        name: &str,
        _: &Variant<'_>,
        _: &ObjectServer,
        _: &Connection,
        _: Option<&Header<'_>>,
        _: &SignalEmitter<'_>,
    ) -> Option<Result<(), BoxDBusError>> {
        let property = T::State::all().find(|property| property.name == name)?;
        let message = format!("{} can only be read", property.name);
        Some(Err(Box::new(fdo::Error::PropertyReadOnly(message))))
    }

    fn call<'call>(
        &'call self,
        server: &'call ObjectServer,
        connection: &'call Connection,
        message: &'call Message,
        name: MemberName<'call>,
    ) -> DispatchResult<'call> {
        self.0.call(server, connection, message, name)
    }

    fn call_mut<'call>(
        &'call mut self,
        server: &'call ObjectServer,
        connection: &'call Connection,
        message: &'call Message,
        name: MemberName<'call>,
    ) -> DispatchResult<'call> {
        self.0.call_mut(server, connection, message, name)
    }

    fn introspect_to_writer(&self, writer: &mut dyn Write, level: usize) {
        let mut members = String::new();
        self.0.introspect_to_writer(&mut members, level);
        let end = members.rfind("</interface>").map_or(members.len(), |end| end - level);
        let (before, end) = members.split_at(end);
        let state = T::State::default();
        // Writing to a string does not fail.
        writer.write_str(before).ok();
        for property in T::State::all() {
            introspect(writer, &property, &variant(property.value(&state)), level + 2).ok();
        }
        writer.write_str(end).ok();
    }
}

/// Writes a property as zbus does.
fn introspect<T>(
    writer: &mut dyn Write,
    property: &Property<T>,
    value: &Variant<'_>,
    level: usize,
) -> std::fmt::Result {
    let Property { name, text, detail, .. } = property;
    let blank = if detail.is_empty() { "" } else { " " };
    let kind = value.value_signature();
    write!(
        writer,
        "{:level$}<!--\n{:level$} {text}{blank}{detail}\n{:level$} -->\n\
         {:level$}<property name=\"{name}\" type=\"{kind}\" access=\"read\"",
        "", "", "", ""
    )?;
    let signal = match property.signal {
        Signal::Change => return writer.write_str("/>\n"),
        Signal::Const => "const",
        Signal::Invalidation => "invalidates",
        Signal::None => "false",
    };
    write!(
        writer,
        ">\n{:level$}  <annotation name=\"org.freedesktop.DBus.Property.EmitsChangedSignal\" value=\"{signal}\"/>\n\
         {:level$}</property>\n",
        "", ""
    )
}
