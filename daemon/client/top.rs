//! `top`: live view. Needs neither daemon nor privileges.

use std::fs::File;
use std::io::IsTerminal;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use crossterm::event::{Event, EventStream, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Paragraph, Row, Table};
use ratatui::{DefaultTerminal, Frame};
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::{JoinError, JoinHandle};

use super::args::Json;
use super::out;
use super::top_rows::{COLUMNS, FIRST_FIGURE, GAP, Look, NOTHING, text};
use engine::sample::{self, Detail};
use host::linux::{LinuxHost, files};
use logic::error::{Error, ErrorKind};
use logic::exit::ExitStatus;
use logic::psi::Pressure;
use logic::sample::{MemoryView, SCHEMA_VERSION, Snapshot};
use logic::table;
use logic::view::View;
use service::stream;

/// Range of the interval in seconds.
const INTERVALS: std::ops::RangeInclusive<f64> = 0.1..=3600.0;

/// Runs until the user ends it, or for a number of iterations.
pub async fn run(
    interval: f64,
    iterations: Option<u64>,
    json: Json,
    config: View,
) -> Result<ExitStatus, Error> {
    if !INTERVALS.contains(&interval) {
        let message = format!("an interval of {interval} s is out of range: 0.1 to 3600");
        return Err(Error::new(ErrorKind::InvalidArgument, message));
    }
    let mut ticks = tokio::time::interval(Duration::from_secs_f64(interval));
    // A delay must not cause a burst.
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut watch = Watch { config, before: None, ticks };
    if json != Json::Off {
        watch.print_json(iterations, json).await?;
    } else if iterations.is_none() && out::has_terminal() {
        let end = match ratatui::try_init() {
            // Not dropped: that would print an error with `eprintln!`, which panics if the terminal has gone.
            Ok(terminal) => {
                let mut terminal = ManuallyDrop::new(terminal);
                let end = watch.live(&mut terminal).await;
                terminal.show_cursor().ok();
                end
            }
            Err(error) => Err(Error::failed(format!("cannot use the terminal: {error}"))),
        };
        ratatui::try_restore().ok();
        end?;
    } else {
        watch.print(iterations).await?;
    }
    Ok(ExitStatus::Success)
}

/// A read of the machine, on a thread of its own: the kernel blocks reads of statistics during recompression and
/// write-back.
type Reading = JoinHandle<Result<Snapshot, Error>>;

/// Reads the machine again and again.
struct Watch {
    config: View,
    before: Option<Snapshot>,
    ticks: tokio::time::Interval,
}

impl Watch {
    fn read(&self) -> Reading {
        let config = self.config.clone();
        tokio::task::spawn_blocking(move || sample::figures(&LinuxHost::new("/"), &config, Detail::Full))
    }

    /// The screen for what was read.
    fn look(&mut self, read: Result<Result<Snapshot, Error>, JoinError>) -> Result<Look, Error> {
        let now = read.map_err(|error| Error::failed(format!("reading ended early: {error}")))??;
        let look = Look::new(self.before.as_ref(), &now, pressure());
        self.before = Some(now);
        Ok(look)
    }

    /// Prints text, for a number of iterations or while standard output takes it.
    async fn print(&mut self, iterations: Option<u64>) -> Result<(), Error> {
        let mut left = iterations;
        while left != Some(0) {
            self.ticks.tick().await;
            let read = self.read().await;
            let text = self.look(read)?.text(&clock());
            left = left.map(|left| left - 1);
            let text = if left == Some(0) { text.trim_end() } else { &text };
            out::line(text);
            if !out::is_open() {
                break;
            }
        }
        Ok(())
    }

    /// Prints a document for each iteration.
    async fn print_json(&mut self, iterations: Option<u64>, form: Json) -> Result<(), Error> {
        let mut left = iterations;
        while left != Some(0) && out::is_open() {
            self.ticks.tick().await;
            let read = self.read().await;
            let look = self.look(read)?;
            let memory = self.before.as_ref().map(|now| now.memory).unwrap_or_default();
            let time = jiff::Zoned::now().strftime("%FT%T%.3f%:z").to_string();
            let schema_version = SCHEMA_VERSION;
            out::data(&out::json(&Sample { schema_version, time, memory, rows: look.json() }, form)?);
            left = left.map(|left| left - 1);
        }
        Ok(())
    }

    /// Draws on the whole screen, until the user ends it. A key neither interrupts a read nor waits for it.
    async fn live(&mut self, terminal: &mut DefaultTerminal) -> Result<(), Error> {
        let failed = |error: std::io::Error| Error::failed(format!("cannot use the terminal: {error}"));
        let mut ends = Ends::new().map_err(failed)?;
        // `EventStream::new` opens the same, and panics if that fails because the terminal has gone.
        if !std::io::stdin().is_terminal() {
            File::options().read(true).write(true).open("/dev/tty").map_err(failed)?;
        }
        let mut keys = EventStream::new();
        let mut reading: Option<Reading> = None;
        let mut screen = Screen::default();
        loop {
            tokio::select! {
                () = ends.next() => return Ok(()),
                event = stream::next(&mut keys) => match event {
                    Some(Ok(event)) => if screen.takes(&event) == Next::End { return Ok(()) },
                    Some(Err(error)) => return Err(failed(error)),
                    None => return Ok(()),
                },
                _ = self.ticks.tick(), if reading.is_none() => reading = Some(self.read()),
                read = ended(&mut reading) => {
                    reading = None;
                    screen.look = Some(self.look(read)?);
                }
            }
            terminal.draw(|frame| screen.draw(frame)).map_err(failed)?;
        }
    }
}

/// One sample as JSON.
#[derive(Serialize)]
struct Sample {
    schema_version: u32,
    /// RFC 3339.
    time: String,
    memory: MemoryView,
    /// Devices, zswap and RAM disks.
    rows: Vec<Map<String, Value>>,
}

/// Waits for a read; for ever if there is none.
async fn ended(reading: &mut Option<Reading>) -> Result<Result<Snapshot, Error>, JoinError> {
    match reading {
        Some(reading) => reading.await,
        None => std::future::pending().await,
    }
}

/// Signals that end the program, after the terminal is restored.
struct Ends([Signal; 3]);

impl Ends {
    fn new() -> std::io::Result<Ends> {
        let on = |kind| signal(kind);
        Ok(Ends([on(SignalKind::interrupt())?, on(SignalKind::terminate())?, on(SignalKind::hangup())?]))
    }

    async fn next(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

/// What follows from a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Draw,
    End,
}

/// What the user sees, and how.
#[derive(Debug, Default)]
struct Screen {
    look: Option<Look>,
    /// Index of the column that determines the order.
    sort: Option<usize>,
    reversed: bool,
    /// The first row that is shown.
    first: usize,
    /// Number of rows that had room when it was last drawn.
    room: usize,
    /// Columns that had room.
    shown: Vec<usize>,
    /// The first line of the help that is shown, if it is.
    help: Option<usize>,
}

/// Keys, for the help.
const KEYS: [(&str, &str); 6] = [
    ("q Esc ^C", "quit"),
    ("h ? F1", "this help"),
    ("↑ ↓ k j", "scroll by a row"),
    ("PgUp PgDn", "scroll by a page; Home, End"),
    ("← → < >", "sort by another column"),
    ("r", "reverse the order"),
];

impl Screen {
    /// Reacts to a key, or to another size of the terminal.
    fn takes(&mut self, event: &Event) -> Next {
        let Event::Key(KeyEvent { code, modifiers, kind, .. }) = event else { return Next::Draw };
        if *kind == KeyEventKind::Release {
            return Next::Draw;
        }
        if *code == KeyCode::Char('c') && modifiers.contains(KeyModifiers::CONTROL) {
            return Next::End;
        }
        let first = self.help.as_mut().unwrap_or(&mut self.first);
        match code {
            KeyCode::Up | KeyCode::Char('k') => *first = first.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => *first = first.saturating_add(1),
            KeyCode::PageUp => *first = first.saturating_sub(self.room),
            KeyCode::PageDown => *first = first.saturating_add(self.room),
            KeyCode::Home => *first = 0,
            KeyCode::End => *first = usize::MAX,
            _ if self.help.take().is_some() => {}
            KeyCode::Char('q' | 'Q') | KeyCode::Esc => return Next::End,
            KeyCode::Char('h' | '?') | KeyCode::F(1) => self.help = Some(0),
            KeyCode::Left | KeyCode::Char('<') => self.sort = self.neighbour(false),
            KeyCode::Right | KeyCode::Char('>') => self.sort = self.neighbour(true),
            KeyCode::Char('r') => {
                self.reversed = !self.reversed;
                self.sort = self.sort.or(Some(0));
            }
            _ => {}
        }
        Next::Draw
    }

    /// The column beside that which determines the order, among those that are shown. Beyond the last ones it is none.
    fn neighbour(&self, right: bool) -> Option<usize> {
        let at = self.sort.and_then(|sort| self.shown.iter().position(|column| *column == sort));
        let next = match (at, right) {
            (None, true) => Some(0),
            (None, false) => self.shown.len().checked_sub(1),
            (Some(at), true) => Some(at + 1),
            (Some(at), false) => at.checked_sub(1),
        };
        next.and_then(|at| self.shown.get(at).copied())
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let width = frame.area().width;
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let mut head = self.look.as_ref().map(|look| look.head(width.into())).unwrap_or_default();
        // Title, blank line, heading, one row and the last line have room first.
        head.truncate(frame.area().height.saturating_sub(5).into());
        let [title, head_area, _, body, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(u16::try_from(head.len()).unwrap_or(1)),
            Constraint::Length(1),
            Constraint::Min(1),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        frame.render_widget(Line::styled(format!("zramdctl top  {}", clock()), bold), title);
        if let Some(first) = &mut self.help {
            let parts = [Constraint::Length(2), Constraint::Min(1), Constraint::Length(1)];
            let [_, area, foot] = Layout::vertical(parts).areas(frame.area());
            let lines = help();
            self.room = usize::from(area.height).max(1);
            let range = visible(first, self.room, lines.len());
            let hidden = place(&range, lines.len());
            frame.render_widget(Paragraph::new(lines[range].join("\n")), area);
            frame.render_widget(Line::raw(format!("any other key closes this{hidden}")), foot);
            return;
        }
        frame.render_widget(Paragraph::new(head.join("\n")), head_area);
        let hidden = self.table(frame, body);
        frame.render_widget(Line::raw(format!("q quit  h help{hidden}")), foot);
    }

    /// Draws the rows. Returns which of them, and how many columns, are hidden.
    fn table(&mut self, frame: &mut Frame<'_>, area: Rect) -> String {
        let Some(look) = &self.look else { return String::new() };
        if look.rows.is_empty() {
            frame.render_widget(Line::raw(NOTHING), area);
            return String::new();
        }
        let columns = look.columns(area.width.into(), self.sort);
        self.shown = columns.iter().map(|(column, _)| *column).collect();
        let rows = look.sorted(self.sort, self.reversed);
        self.room = usize::from(area.height.saturating_sub(1)).max(1);
        let range = visible(&mut self.first, self.room, rows.len());
        let cell = |column: usize, content: String| {
            let text = Text::raw(content);
            Cell::new(if column >= FIRST_FIGURE { text.right_aligned() } else { text })
        };
        let heading = columns.iter().map(|(column, _)| {
            let mark = match (self.sort == Some(*column), self.reversed) {
                (false, _) => "",
                (true, false) => "▾",
                (true, true) => "▴",
            };
            cell(*column, format!("{}{mark}", COLUMNS[*column].name))
        });
        let shown = rows[range.clone()].iter().map(|row| {
            Row::new(columns.iter().map(|(column, width)| cell(*column, cut(text(&row[*column]), *width))))
        });
        let widths =
            columns.iter().map(|(_, width)| Constraint::Length(u16::try_from(*width).unwrap_or(u16::MAX)));
        let table = Table::new(shown, widths)
            .header(Row::new(heading).style(Style::new().add_modifier(Modifier::REVERSED)))
            .column_spacing(u16::try_from(GAP).unwrap_or(1));
        frame.render_widget(table, area);
        let narrow = match COLUMNS.len() - columns.len() {
            0 => String::new(),
            count => format!("  {count} more columns in a wider terminal"),
        };
        place(&range, rows.len()) + &narrow
    }
}

/// The lines that are shown from `first`, which is moved so that no room is left below the last of `all`.
fn visible(first: &mut usize, room: usize, all: usize) -> Range<usize> {
    *first = (*first).min(all.saturating_sub(room));
    *first..all.min(*first + room)
}

/// Which lines are shown, if not all.
fn place(shown: &Range<usize>, all: usize) -> String {
    if shown.len() == all {
        String::new()
    } else {
        format!("  {} to {} of {all}", shown.start + 1, shown.end)
    }
}

/// The text, with an ellipsis in place of what has no room.
fn cut(text: String, width: usize) -> String {
    if table::width(&text) <= width {
        return text;
    }
    let mut shorter: String = text;
    while !shorter.is_empty() && table::width(&shorter) >= width {
        shorter.pop();
    }
    shorter + "…"
}

/// The help, 40 columns wide.
fn help() -> Vec<String> {
    let keys = KEYS.iter().map(|(keys, meaning)| format!("{keys:10} {meaning}"));
    let columns = COLUMNS.iter().map(|column| format!("{:10} {}", column.name, column.meaning));
    keys.chain([String::new()]).chain(columns).collect()
}

fn pressure() -> Option<Pressure> {
    // `None` on a kernel without pressure stall information.
    Pressure::parse(&files::read_optional(Path::new("/"), "/proc/pressure/memory").ok()?)
}

fn clock() -> String {
    jiff::Zoned::now().strftime("%T").to_string()
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use logic::sample::{DeviceView, RamdiskView, StateView};

    fn screen(devices: usize) -> Screen {
        let device = |number: usize| {
            let mut device = DeviceView { state: StateView::Active, ..DeviceView::default() };
            device.name = format!("zram{number}");
            device.stats.memory.orig_data_size = (number as u64) << 20;
            device
        };
        let disk = RamdiskView { name: "logs".into(), mounted: true, ..RamdiskView::default() };
        let devices = (0..devices).map(device).collect();
        let now = Snapshot { devices, ramdisks: vec![disk], ..Snapshot::default() };
        Screen { look: Some(Look::new(None, &now, None)), ..Screen::default() }
    }

    fn drawn(screen: &mut Screen, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        terminal.backend().to_string()
    }

    fn press(screen: &mut Screen, code: KeyCode) -> Next {
        screen.takes(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    #[test]
    fn the_screen_holds_what_it_has_room_for() {
        let mut screen = screen(1);
        for (width, height) in [(120, 24), (80, 24), (40, 10), (30, 6), (3, 2), (1, 1)] {
            let text = drawn(&mut screen, width, height);
            let expected: &[&str] = match width {
                120 => {
                    &["zramdctl top", "memory 0 B", "SWAP USED", "zram0", "logs", "q quit  h help", "HUGE"]
                }
                80 => &["memory 0 B", "HEADROOM", "zram0", "logs"],
                40 => {
                    &["memory 0 B of 0 B available", "STORED", "MEMORY", "RATIO", "zram0", "logs", "h help"]
                }
                _ => &[],
            };
            for expected in expected {
                assert!(text.contains(expected), "{expected} is missing in\n{text}");
            }
        }
    }

    #[test]
    fn a_long_name_is_cut_and_the_figures_stay() {
        let mut screen = screen(1);
        let look = screen.look.as_mut().unwrap();
        look.rows[1][0] = crate::cell::Cell::Text("a-name-of-a-disk-that-is-far-too-long".to_owned());
        let text = drawn(&mut screen, 40, 10);
        assert!(text.contains("a-name-of-a-disk-th…  ") && text.contains("STORED"), "{text}");
    }

    #[test]
    fn rows_are_scrolled_within_their_bounds() {
        let mut screen = screen(30);
        let names = |screen: &mut Screen| drawn(screen, 60, 11);
        assert!(names(&mut screen).contains("1 to 5 of 31"), "{}", names(&mut screen));
        press(&mut screen, KeyCode::Up);
        press(&mut screen, KeyCode::Char('j'));
        assert!(names(&mut screen).contains("2 to 6 of 31"));
        press(&mut screen, KeyCode::PageDown);
        assert!(names(&mut screen).contains("7 to 11 of 31"));
        press(&mut screen, KeyCode::End);
        let last = names(&mut screen);
        assert!(last.contains("27 to 31 of 31") && last.contains("logs"), "{last}");
        press(&mut screen, KeyCode::PageDown);
        assert!(names(&mut screen).contains("27 to 31 of 31"));
        press(&mut screen, KeyCode::Home);
        assert!(names(&mut screen).contains("1 to 5 of 31"));
        assert!(!drawn(&mut screen, 60, 60).contains(" of 31"), "all have room");
        let mut empty = Screen::default();
        for key in [KeyCode::End, KeyCode::Down, KeyCode::PageDown] {
            assert_eq!(press(&mut empty, key), Next::Draw, "before anything was read");
        }
    }

    #[test]
    fn a_column_determines_the_order() {
        let mut screen = screen(3);
        drawn(&mut screen, 40, 12);
        press(&mut screen, KeyCode::Right);
        press(&mut screen, KeyCode::Right);
        let text = drawn(&mut screen, 40, 12);
        assert!(text.contains("STORED▾") && text.find("zram2") < text.find("zram1"), "{text}");
        press(&mut screen, KeyCode::Char('r'));
        let text = drawn(&mut screen, 40, 12);
        assert!(text.contains("STORED▴") && text.find("zram1") < text.find("zram2"), "{text}");
        for _ in 0..2 {
            press(&mut screen, KeyCode::Left);
        }
        assert_eq!(screen.sort, None, "before the first column is the order of the machine");
        press(&mut screen, KeyCode::Left);
        assert_eq!(screen.sort, screen.shown.last().copied());
        press(&mut screen, KeyCode::Right);
        assert_eq!(screen.sort, None);
        press(&mut screen, KeyCode::Char('r'));
        assert!(drawn(&mut screen, 40, 12).contains("NAME▾"), "without a column, r takes the first");
    }

    #[test]
    fn the_help_has_all_keys_and_columns_and_ends_with_a_key() {
        let mut screen = screen(1);
        for key in [KeyCode::Char('h'), KeyCode::Char('?'), KeyCode::F(1)] {
            assert_eq!(press(&mut screen, key), Next::Draw);
            let text = drawn(&mut screen, 40, 24);
            for expected in [
                "quit",
                "reverse the order",
                "HUGE",
                "share that does not compress",
                "any other key closes this",
            ] {
                assert!(text.contains(expected), "{expected} is missing in\n{text}");
            }
            assert_eq!(press(&mut screen, KeyCode::Char('q')), Next::Draw, "closes the help only");
            assert!(drawn(&mut screen, 40, 24).contains("zram0"));
        }
        assert!(help().iter().all(|line| line.chars().count() <= 40), "{:?}", help());
        press(&mut screen, KeyCode::Char('h'));
        let top = drawn(&mut screen, 40, 10);
        assert!(top.contains("quit") && top.contains(&format!("1 to 7 of {}", help().len())), "{top}");
        press(&mut screen, KeyCode::End);
        press(&mut screen, KeyCode::Up);
        assert!(drawn(&mut screen, 40, 10).contains("HUGE"));
    }

    #[test]
    fn q_escape_and_control_c_end_it() {
        let mut screen = screen(1);
        let control_c = Event::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert_eq!(press(&mut screen, KeyCode::Char('q')), Next::End);
        assert_eq!(press(&mut screen, KeyCode::Esc), Next::End);
        assert_eq!(screen.takes(&control_c), Next::End);
        press(&mut screen, KeyCode::Char('h'));
        assert_eq!(screen.takes(&control_c), Next::End, "also while the help is shown");
        assert_eq!(press(&mut screen, KeyCode::Char('c')), Next::Draw);
        assert_eq!(screen.takes(&Event::Resize(80, 24)), Next::Draw);
    }
}
