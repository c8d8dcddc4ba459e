//! The benchmark as a chart: memory gained over read latency, and throughput of all CPUs.

use std::ops::Range;
use std::path::Path;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use bench::report::{Report, Row};
use engine::Error;

const SIZE: (u32, u32) = (1120, 560);
const FONT: &str = "sans-serif";
const INK: RGBColor = RGBColor(0x24, 0x29, 0x2F);
const PALE: RGBColor = RGBColor(0x6E, 0x77, 0x81);
const GRID: RGBColor = RGBColor(0xE3, 0xE6, 0xEA);
const READ: RGBColor = RGBColor(0x1F, 0x77, 0xB4);
const WRITE: RGBColor = RGBColor(0xF2, 0x8E, 0x2B);
const CHOSEN: RGBColor = RGBColor(0x1A, 0x7F, 0x37);
const EXCLUDED: RGBColor = RGBColor(0xA8, 0xB0, 0xB9);

/// Writes the chart to a file.
pub fn write(report: &Report, path: &Path) -> Result<(), Error> {
    let text = draw(report)?;
    let failed = |error: std::io::Error| Error::failed(format!("{}: {error}", path.display()));
    std::fs::write(path, text).map_err(failed)
}

/// The chart as SVG.
pub fn draw(report: &Report) -> Result<String, Error> {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        picture(&root, report).map_err(|error| Error::failed(format!("draw the chart: {error}")))?;
    }
    let inside = text.find('>').map_or(text.len(), |end| end + 1);
    text.insert_str(inside, &head(report));
    Ok(text)
}

/// Title and description, which are read aloud, and colours for viewers with a dark background: they replace those of the drawing.
fn head(report: &Report) -> String {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
    let rows = report.results.iter().filter(|row| row.read.requests > 0);
    let rows = rows.map(|row| {
        let (ratio, read) = (row.ratio_total, row.read.p50_ns / 1000.0);
        format!("{}: ratio {ratio:.2}, a read takes {read:.1} µs", row.algorithm)
    });
    let description = format!("{}. {}.", report.verdict.reason, rows.collect::<Vec<String>>().join("; "));
    let hex = |colour: RGBColor| format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2);
    let dark =
        [(WHITE, "#0d1117"), (INK, "#e6edf3"), (PALE, "#9198a1"), (GRID, "#30363d"), (CHOSEN, "#3fb950")]
            .map(|(light, dark)| {
                let light = hex(light);
                format!("[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}")
            });
    format!(
        "\n<title>Compression algorithms on this machine: {} is chosen</title>\n<desc>{}</desc>\n\
         <style>@media (prefers-color-scheme: dark){{{}}}</style>\n",
        escaped(&report.verdict.algorithm.to_string()),
        escaped(&description),
        dark.concat()
    )
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

fn picture(root: &Area<'_>, report: &Report) -> Drawn {
    root.fill(&WHITE)?;
    let title = (FONT, 21).into_font().style(FontStyle::Bold).color(&INK);
    let chosen = &report.verdict.algorithm;
    let scored = report.chosen().is_some_and(|row| row.score.is_some());
    let heading =
        if scored { format!("Best here: {chosen}") } else { format!("Nothing better here than {chosen}") };
    root.draw_text(&heading, &title, (28, 20))?;
    let below = (FONT, 14).into_font().color(&PALE);
    root.draw_text(
        &format!("{} (profile {})", report.verdict.reason, report.profile.word()),
        &below,
        (28, 48),
    )?;
    let source = format!("{} pages: {}", report.data.pages, report.data.description);
    root.draw_text(&source, &below, (28, 68))?;
    let (_, rest) = root.split_vertically(96);
    let (left, right) = rest.split_horizontally(620);
    points(&left, report)?;
    bars(&right, report)?;
    root.present()?;
    Ok(())
}

fn colour(row: &Row, report: &Report) -> RGBColor {
    if row.algorithm == report.verdict.algorithm {
        CHOSEN
    } else if row.excluded.is_some() {
        EXCLUDED
    } else {
        READ
    }
}

/// Tick values of a logarithmic axis.
fn ticks(least: f64, most: f64) -> Vec<f64> {
    const STEPS: [&[f64]; 3] = [&[1.0], &[1.0, 2.0, 5.0], &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0]];
    const FINE: [f64; 18] =
        [1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 6.5, 7.0, 7.5, 8.0, 8.5, 9.0, 9.5];
    let within = |steps: &[f64]| -> Vec<f64> {
        let decades = (-3..6).map(|power| 10_f64.powi(power));
        let all = decades.flat_map(|decade| steps.iter().map(move |step| step * decade));
        all.filter(|time| (least..=most).contains(time)).collect()
    };
    STEPS.into_iter().map(within).find(|found| found.len() >= 4).unwrap_or_else(|| within(&FINE))
}

/// A logarithmic axis that has useful ticks for a narrow range, too.
struct Times(Range<f64>);

impl Ranged for Times {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = (value / self.0.start).ln() / (self.0.end / self.0.start).ln();
        #[allow(clippy::cast_possible_truncation)] // Pixels.
        let along = (f64::from(limit.1 - limit.0) * share).round() as i32;
        limit.0 + along
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        ticks(self.0.start, self.0.end)
    }

    fn range(&self) -> Range<f64> {
        self.0.clone()
    }
}

/// One point per measured algorithm; better is up and to the left.
fn points(area: &Area<'_>, report: &Report) -> Drawn {
    let rows: Vec<&Row> = report.results.iter().filter(|row| row.read.requests > 0).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let time = |row: &&Row| row.read.p50_ns.max(1.0) / 1000.0;
    let most_time = rows.iter().map(time).fold(0.0, f64::max);
    let least_time = rows.iter().map(time).fold(f64::INFINITY, f64::min);
    let most = rows.iter().map(|row| row.ratio_total).fold(0.0, f64::max);
    let least = rows.iter().map(|row| row.ratio_total).fold(f64::INFINITY, f64::min);
    // Times differ by a factor of ten and more; ratios do not. The right margin has room for a label.
    let wide = (most_time / least_time).max(1.5);
    let times = Times(least_time / wide.powf(0.12)..most_time * wide.powf(0.35));
    let room = ((most - least) * 0.18).max(0.1);
    let caption = (FONT, 15).into_font().style(FontStyle::Bold).color(&INK);
    let mut chart = ChartBuilder::on(area)
        .caption("Compression ratio against the time of a page-in", caption)
        .margin(14)
        .margin_left(18)
        .x_label_area_size(44)
        .y_label_area_size(52)
        .build_cartesian_2d(times, (least - room).max(0.8)..most + room)?;
    chart
        .configure_mesh()
        .x_desc("usual time of a read, µs (less is better)")
        .y_desc("ratio on all memory (more is better)")
        .axis_desc_style((FONT, 13).into_font().color(&PALE))
        .label_style((FONT, 12).into_font().color(&PALE))
        .x_label_formatter(&|x| if *x < 9.75 { format!("{x:.1}") } else { format!("{x:.0}") })
        .y_label_formatter(&|y| if most - least < 1.0 { format!("{y:.2}") } else { format!("{y:.1}") })
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(PALE)
        .draw()?;
    for row in &rows {
        let chosen = row.algorithm == report.verdict.algorithm;
        let (at, colour) = ((time(row), row.ratio_total), colour(row, report));
        chart.draw_series(std::iter::once(Circle::new(at, if chosen { 7 } else { 5 }, colour.filled())))?;
        if chosen {
            chart.draw_series(std::iter::once(Circle::new(at, 12, colour.stroke_width(2))))?;
        }
    }
    let plain = |colour: RGBColor| (FONT, 13).into_font().color(&colour);
    let bold = (FONT, 14).into_font().style(FontStyle::Bold).color(&CHOSEN);
    let (edge, top) = area.get_pixel_range();
    let pixel = |row: &&Row| {
        let (x, y) = chart.backend_coord(&(time(row), row.ratio_total));
        (x - edge.start, y - top.start)
    };
    let places: Vec<(i32, i32)> = rows.iter().map(pixel).collect();
    let edge = i32::try_from(area.dim_in_pixel().0)? - 14;
    // Labels are placed beside their points, where they overlap no other label or point.
    let mut taken: Vec<[i32; 4]> = places.iter().map(|(x, y)| [x - 7, y - 7, x + 7, y + 7]).collect();
    for (row, (x, y)) in rows.iter().zip(&places) {
        let chosen = row.algorithm == report.verdict.algorithm;
        let (name, gap) = (row.algorithm.to_string(), if chosen { 17 } else { 10 });
        let width = i32::try_from(name.chars().count()).unwrap_or(20) * if chosen { 9 } else { 7 };
        let beside = [
            (x + gap, y - 7),
            (x - gap - width, y - 7),
            (x - width / 2, y + gap),
            (x - width / 2, y - gap - 14),
            (x + gap, y + 8),
            (x - gap - width, y + 8),
        ];
        let hits = |(left, up): &(i32, i32)| {
            let meets = |other: &&[i32; 4]| {
                *left < other[2] && left + width > other[0] && *up < other[3] && up + 14 > other[1]
            };
            taken.iter().filter(meets).count() + usize::from(*left < 70 || left + width > edge) * 10
        };
        let (left, up) = beside.into_iter().min_by_key(hits).unwrap_or(beside[0]);
        taken.push([left, up, left + width, up + 14]);
        let ink = if row.excluded.is_some() { PALE } else { INK };
        let style = if chosen { bold.clone() } else { plain(ink) };
        area.draw_text(&name, &style, (left, up))?;
    }
    if rows.iter().any(|row| row.excluded.is_some()) {
        area.draw_text("grey: only as a secondary algorithm, or excluded", &plain(PALE), (78, 40))?;
    }
    Ok(())
}

/// Throughput of all CPUs, compression and decompression.
fn bars(area: &Area<'_>, report: &Report) -> Drawn {
    let (width, height) = area.dim_in_pixel();
    let (width, height) = (i32::try_from(width)?, i32::try_from(height)?);
    let caption = (FONT, 15).into_font().style(FontStyle::Bold).color(&INK);
    let cpus = if report.threads == 1 { "1 CPU".to_owned() } else { format!("{} CPUs", report.threads) };
    area.draw_text(&format!("Throughput of {cpus}, MB/s"), &caption, (14, 16))?;
    if report.is_disturbed() {
        area.draw_text(
            "left out: other programs had the processor",
            &(FONT, 13).into_font().color(&PALE),
            (14, 44),
        )?;
        return Ok(());
    }
    for (at, colour, word) in [(14, READ, "read (swap in)"), (130, WRITE, "write (swap out)")] {
        area.draw(&Rectangle::new([(at, 44), (at + 12, 56)], colour.filled()))?;
        area.draw_text(word, &(FONT, 12).into_font().color(&PALE), (at + 18, 44))?;
    }
    let rates = |row: &Row| [&row.read, &row.write].map(|timing| timing.bytes_per_second.value / 1e6);
    let most = report.results.iter().flat_map(rates).fold(1.0, f64::max);
    let (top, left, right) = (72, 128, width - 64);
    let rows = i32::try_from(report.results.len().max(1))?;
    let step = ((height - top - 24) / rows).min(52);
    let thick = (step / 3).clamp(3, 14);
    for (index, row) in (0..).zip(&report.results) {
        let y = top + index * step;
        let chosen = row.algorithm == report.verdict.algorithm;
        let font = (FONT, if chosen { 14 } else { 13 }).into_font();
        let font = if chosen { font.style(FontStyle::Bold) } else { font };
        let ink = if chosen { CHOSEN } else { INK };
        let beside = font.color(&ink).pos(Pos::new(HPos::Right, VPos::Center));
        area.draw_text(&row.algorithm.to_string(), &beside, (left - 10, y + thick))?;
        if row.read.requests == 0 {
            let small = (FONT, 11).into_font().color(&PALE).pos(Pos::new(HPos::Left, VPos::Center));
            area.draw_text("not measured", &small, (left + 5, y + thick))?;
            continue;
        }
        for (offset, rate, colour) in [(0, rates(row)[0], READ), (thick + 1, rates(row)[1], WRITE)] {
            #[allow(clippy::cast_possible_truncation)] // Pixels.
            let length = (f64::from(right - left) * rate / most).round() as i32;
            let from = (left, y + offset);
            area.draw(&Rectangle::new([from, (left + length.max(1), y + offset + thick)], colour.filled()))?;
            let small = (FONT, 11).into_font().color(&PALE).pos(Pos::new(HPos::Left, VPos::Center));
            area.draw_text(&format!("{rate:.0}"), &small, (left + length + 5, y + offset + thick / 2))?;
        }
    }
    Ok(())
}

/// A report with typical figures of a desktop, for tests.
#[cfg(test)]
pub fn sample_report() -> Report {
    let text = include_str!("../../../tests/golden/client/bench-report.json");
    serde_json::from_str(text).unwrap()
}
