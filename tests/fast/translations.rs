//! The catalogue template of what polkit shows.

use std::collections::BTreeSet;
use std::fs;

use crate::support::{golden, repository};
use service::action;

const POLICY: &str = "units/org.zramd1.policy";
const TEMPLATE: &str = "packaging/po/zramd.pot";
const HEAD: &str = r#"# Sentences of zramd that polkit shows. $(…) is put in by polkit and stays as it is.
# This file is distributed under the same license as the zramd package.
#
#, fuzzy
msgid ""
msgstr ""
"Project-Id-Version: zramd\n"
"PO-Revision-Date: YEAR-MO-DA HO:MI+ZONE\n"
"Last-Translator: FULL NAME <EMAIL@ADDRESS>\n"
"Language-Team: LANGUAGE <LL@li.org>\n"
"Language: \n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Content-Transfer-Encoding: 8bit\n"
"#;

/// Texts of these elements of the policy, which polkit looks up in the domain that they name.
fn of_policy(policy: &str, tag: &str) -> Vec<String> {
    let begin = format!("<{tag} gettext-domain=\"{}\">", action::DOMAIN);
    let texts: Vec<String> =
        policy.split(&begin).skip(1).map(|rest| rest.split('<').next().unwrap().to_owned()).collect();
    assert_eq!(texts.len(), policy.matches(&format!("<{tag}")).count(), "a {tag} without a domain");
    texts
}

#[test]
fn the_catalogue_template_has_all_that_polkit_shows() {
    let policy = fs::read_to_string(repository(POLICY)).unwrap();
    let texts: BTreeSet<String> = action::messages()
        .map(str::to_owned)
        .chain(of_policy(&policy, "description"))
        .chain(of_policy(&policy, "message"))
        .collect();
    assert!(texts.len() > 30 && texts.iter().all(|text| !text.contains(['"', '\\', '&', '\n'])), "{texts:?}");
    let entries: String = texts.iter().map(|text| format!("\nmsgid \"{text}\"\nmsgstr \"\"\n")).collect();
    golden(TEMPLATE, &format!("{HEAD}{entries}"));
}
