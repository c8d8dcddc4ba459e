//! Parser of introspection XML in the form of zbus: one tag per line, a comment before each member.

use std::collections::BTreeMap;

/// An argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    pub name: String,
    pub kind: String,
    pub incoming: bool,
}

/// A method or signal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Member {
    pub documentation: String,
    pub arguments: Vec<Argument>,
}

impl Member {
    /// Arguments of a call.
    pub fn incoming(&self) -> Vec<&Argument> {
        self.arguments.iter().filter(|argument| argument.incoming).collect()
    }
}

/// A property.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Property {
    pub documentation: String,
    pub kind: String,
    pub access: String,
    /// `true`, `invalidates`, `const` or `false`.
    pub emits: String,
}

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Interface {
    pub methods: BTreeMap<String, Member>,
    pub signals: BTreeMap<String, Member>,
    pub properties: BTreeMap<String, Property>,
}

impl Interface {
    /// Members that are missing or changed in `newer`, which would break a client.
    pub fn missing_in(&self, newer: &Interface) -> Vec<String> {
        let mut missing = Vec::new();
        let kinds = |member: &Member| -> Vec<_> {
            member.arguments.iter().map(|argument| (argument.kind.clone(), argument.incoming)).collect()
        };
        for (what, before, after) in
            [("method", &self.methods, &newer.methods), ("signal", &self.signals, &newer.signals)]
        {
            for (name, member) in before {
                if after.get(name).map(kinds) != Some(kinds(member)) {
                    missing.push(format!("{what} {name}"));
                }
            }
        }
        // A signal where there was none is an addition.
        let keeps = |before: &Property, after: &Property| {
            (&before.kind, &before.access) == (&after.kind, &after.access)
                && (before.emits == after.emits || before.emits == "false")
        };
        for (name, property) in &self.properties {
            if !newer.properties.get(name).is_some_and(|after| keeps(property, after)) {
                missing.push(format!("property {name}"));
            }
        }
        missing
    }
}

/// The value of an attribute in a tag.
fn attribute(line: &str, name: &str) -> Option<String> {
    let rest = line.split_once(&format!(" {name}=\""))?.1;
    rest.split_once('"').map(|(value, _)| value.to_owned())
}

enum Inside {
    Nothing,
    Method(String),
    Signal(String),
    Property(String),
}

/// All interfaces of a node and of objects below it. Interfaces with the same name have to be equal.
pub fn read(xml: &str) -> BTreeMap<String, Interface> {
    let mut found = BTreeMap::new();
    let mut current = (String::new(), Interface::default());
    let mut inside = Inside::Nothing;
    let mut comment: Option<String> = None;
    let mut documentation = String::new();
    for line in xml.lines().map(str::trim) {
        match &mut comment {
            Some(text) if line == "-->" => {
                assert!(!text.contains("--"), "a comment must not contain `--`: {text}");
                documentation = comment.take().unwrap_or_default();
                continue;
            }
            Some(text) => {
                text.push_str(line);
                text.push('\n');
                continue;
            }
            None if line == "<!--" => {
                comment = Some(String::new());
                continue;
            }
            None => {}
        }
        let name = attribute(line, "name").unwrap_or_default();
        let tag = line.trim_start_matches('<').split([' ', '>', '/']).next().unwrap_or_default();
        let closed = line.ends_with("/>");
        match tag {
            "interface" => current = (name, Interface::default()),
            "method" | "signal" => {
                let member =
                    Member { documentation: std::mem::take(&mut documentation), arguments: Vec::new() };
                let (list, now) = match tag {
                    "method" => (&mut current.1.methods, Inside::Method(name.clone())),
                    _ => (&mut current.1.signals, Inside::Signal(name.clone())),
                };
                list.insert(name, member);
                inside = now;
            }
            "arg" => {
                let incoming = attribute(line, "direction").is_some_and(|direction| direction == "in");
                let argument = Argument { name, kind: attribute(line, "type").unwrap(), incoming };
                let list = match &inside {
                    Inside::Method(member) => current.1.methods.get_mut(member),
                    Inside::Signal(member) => current.1.signals.get_mut(member),
                    _ => None,
                };
                list.unwrap_or_else(|| panic!("an argument of nothing: {line}")).arguments.push(argument);
            }
            "property" => {
                let property = Property {
                    documentation: std::mem::take(&mut documentation),
                    kind: attribute(line, "type").unwrap(),
                    access: attribute(line, "access").unwrap(),
                    emits: "true".to_owned(),
                };
                current.1.properties.insert(name.clone(), property);
                inside = if closed { Inside::Nothing } else { Inside::Property(name) };
            }
            "annotation" => {
                if let Inside::Property(property) = &inside
                    && name == "org.freedesktop.DBus.Property.EmitsChangedSignal"
                {
                    current.1.properties.get_mut(property).unwrap().emits = attribute(line, "value").unwrap();
                }
            }
            _ if line == "</interface>" => {
                let (name, interface) = std::mem::take(&mut current);
                if let Some(before) = found.insert(name.clone(), interface.clone()) {
                    assert_eq!(before, interface, "{name} is not the same everywhere");
                }
            }
            _ if line.starts_with("</") => inside = Inside::Nothing,
            _ => {}
        }
    }
    found
}

/// Methods without changes. All others count as changing, so a new method is tested.
pub const HARMLESS: [(&str, &[&str]); 4] = [
    ("org.zramd1.RamDisk", &["ListSnapshots"]),
    ("org.zramd1.Benchmark", &["Describe", "Followers"]),
    (
        "org.zramd1.Manager",
        &[
            "Describe",
            "GetDevice",
            "GetRamDisk",
            "ListDevices",
            "ListRamDisks",
            "Plan",
            "Subscribe",
            "SubscribeFor",
            "SubscribeTo",
            "Unsubscribe",
        ],
    ),
    ("org.zramd1.Device", &["GetStats"]),
];

/// Changing methods, by interface and name.
pub fn mutating(interfaces: BTreeMap<String, Interface>) -> Vec<(String, String, Member)> {
    let mut found = Vec::new();
    for (name, interface) in interfaces {
        let harmless = HARMLESS.iter().find(|(known, _)| *known == name).map_or(&[][..], |known| known.1);
        let methods = interface.methods.into_iter();
        let changing = methods.filter(|(member, _)| !harmless.contains(&member.as_str()));
        found.extend(changing.map(|(member, method)| (name.clone(), member, method)));
    }
    assert!(found.len() >= 10, "{found:?}");
    found
}
