//! PropertiesChanged of what changes, as a settings panel receives it.

use std::collections::HashMap;

use crate::support::private_bus::{next, run};
use crate::support::session::Session;
use service::ROOT;
use zbus::{Connection, MessageStream, OwnedVariant};

/// A problem as in `ProblemDetails`.
type Problem = (String, String, String, String, String);

/// PropertiesChanged of this object.
async fn changes(client: &Connection, path: &str) -> MessageStream {
    let rule = format!(
        "type='signal',interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',path='{path}'"
    );
    MessageStream::for_match_rule(rule.as_str(), client, None).await.unwrap()
}

/// The next changed value of this property.
async fn changed(changes: &mut MessageStream, property: &str) -> OwnedVariant {
    loop {
        let message = next(changes).await;
        let body = message.body();
        type Changed = (String, HashMap<String, OwnedVariant>, Vec<String>);
        let (_, mut values, _): Changed = body.deserialize().unwrap();
        if let Some(value) = values.remove(property) {
            return value;
        }
    }
}

#[test]
fn a_problem_has_a_level_and_a_remedy_and_its_end_is_signalled() {
    let Some(session) = Session::begin("[zram4000]\nzram-size = \"1MiB\"\n") else { return };
    run(async {
        let client = session.bus().client().await;
        let invalid = |problems: OwnedVariant| {
            let problems = Vec::<Problem>::try_from(problems).unwrap();
            problems.into_iter().find(|(_, code, ..)| code == "config-invalid")
        };
        let manager = zbus::Proxy::new(&client, "org.zramd1", ROOT, "org.zramd1.Manager").await.unwrap();
        let (level, code, object, message, remedy) =
            invalid(manager.get_property("ProblemDetails").await.unwrap()).unwrap();
        assert_eq!(level, "error");
        assert!(message.contains("zram4000") && !remedy.is_empty(), "{message}: {remedy}");
        let short: Vec<(String, String, String)> = manager.get_property("Problems").await.unwrap();
        assert!(short.contains(&(code, object, message)), "{short:?}");

        let mut changes = changes(&client, ROOT).await;
        session.write("");
        session.ok(&["reload"]);
        assert_eq!(invalid(changed(&mut changes, "ProblemDetails").await), None);
    });
}
