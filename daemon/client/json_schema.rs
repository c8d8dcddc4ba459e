//! The JSON schema of the documents that `zramdctl` prints with `--json`, and of those on the bus.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::{config, doctor, fixture, plan, report, stats};
use bench::report::Report;
use logic::plan::report::PlanReport;
use logic::sample::Snapshot;
use logic::verdict::Stored;

/// One definition per document, and those of their parts. The descriptions are those of the types.
fn schema() -> Value {
    let mut generator = SchemaSettings::draft07().for_serialize().into_generator();
    generator.subschema_for::<PlanReport<'_>>();
    generator.subschema_for::<Snapshot>();
    generator.subschema_for::<plan::Document<'_>>();
    generator.subschema_for::<config::Document<'_>>();
    generator.subschema_for::<doctor::Document<'_>>();
    generator.subschema_for::<report::Document>();
    generator.subschema_for::<stats::Document<'_>>();
    generator.subschema_for::<Stored<Report>>();
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "https://zramd.invalid/zramdctl.schema.json",
        "title": "JSON of zramdctl bench run and bench show (bench), cat-config, check, doctor, plan, report, stats and status, and of Benchmark.Describe (benchmark)",
        "definitions": generator.take_definitions(true),
    })
}

#[test]
fn the_schema_is_current() {
    let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    fixture::golden_file("config/zramdctl.schema.json", &text);
}
