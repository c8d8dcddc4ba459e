//! `top`: live view. Needs neither daemon nor privileges.

use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use crossterm::event::{Event, EventStream, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Paragraph, Row, Table};
use ratatui::{DefaultTerminal, Frame};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::looks::{COLUMNS, FIRST_FIGURE, Look};
use super::out;
use engine::sample;
use host::linux::{LinuxHost, files};
use logic::error::{Error, ErrorKind};
use logic::exit::ExitStatus;
use logic::proc::{Pressure, parse_pressure};
use logic::sample::Snapshot;
use logic::view::View;
use service::stream;

/// Range of the interval in seconds.
const INTERVALS: std::ops::RangeInclusive<f64> = 0.1..=3600.0;

/// Runs until the user ends it, or for a number of iterations.
pub async fn run(interval: f64, iterations: Option<u64>, config: View) -> Result<ExitStatus, Error> {
    if !INTERVALS.contains(&interval) {
        let message = format!("an interval of {interval} s makes no sense; write 0.1 to 3600");
        return Err(Error::new(ErrorKind::InvalidArgument, message));
    }
    let mut ticks = tokio::time::interval(Duration::from_secs_f64(interval));
    // A delay must not cause a burst.
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut watch = Watch { config, before: None, ticks };
    if iterations.is_none() && std::io::stdout().is_terminal() {
        let mut terminal = ratatui::try_init()
            .map_err(|error| Error::failed(format!("cannot use the terminal: {error}")))?;
        let end = watch.live(&mut terminal).await;
        ratatui::restore();
        end?;
    } else {
        watch.print(iterations).await?;
    }
    Ok(ExitStatus::Success)
}

/// State of the live view.
struct Watch {
    config: View,
    before: Option<Snapshot>,
    ticks: tokio::time::Interval,
}

impl Watch {
    /// Waits for the next interval, and reads the machine.
    async fn look(&mut self) -> Result<Look, Error> {
        self.ticks.tick().await;
        let config = self.config.clone();
        // On a blocking thread: the kernel blocks reads of statistics during recompression and write-back.
        let read = tokio::task::spawn_blocking(move || sample::snapshot(&LinuxHost::new("/"), &config));
        let now = match read.await {
            Ok(Ok(now)) => now,
            Ok(Err(error)) => return Err(error),
            Err(error) => return Err(Error::failed(format!("reading ended early: {error}"))),
        };
        let look = Look::new(self.before.as_ref(), &now, pressure());
        self.before = Some(now);
        Ok(look)
    }

    /// Prints text, for a number of iterations or until standard output is closed.
    async fn print(&mut self, iterations: Option<u64>) -> Result<(), Error> {
        let mut left = iterations;
        while left != Some(0) {
            let text = self.look().await?.text(&clock());
            left = left.map(|left| left - 1);
            let text = if left == Some(0) { text.trim_end() } else { &text };
            if !out::line(text) {
                break;
            }
        }
        Ok(())
    }

    /// Draws on the whole screen, until q is pressed.
    async fn live(&mut self, terminal: &mut DefaultTerminal) -> Result<(), Error> {
        let failed = |error: std::io::Error| Error::failed(format!("cannot use the terminal: {error}"));
        let mut ends = Ends::new().map_err(failed)?;
        let mut keys = EventStream::new();
        let mut last: Option<Look> = None;
        loop {
            tokio::select! {
                () = ends.next() => return Ok(()),
                event = stream::next(&mut keys) => match event {
                    Some(Ok(event)) if asks_for_the_end(&event) => return Ok(()),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(failed(error)),
                    None => return Ok(()),
                },
                look = self.look() => last = Some(look?),
            }
            if let Some(look) = &last {
                terminal.draw(|frame| draw(frame, look)).map_err(failed)?;
            }
        }
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

fn asks_for_the_end(event: &Event) -> bool {
    let Event::Key(KeyEvent { code, modifiers, kind, .. }) = event else { return false };
    if *kind == KeyEventKind::Release {
        return false;
    }
    match code {
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => true,
        KeyCode::Char('c') => modifiers.contains(KeyModifiers::CONTROL),
        _ => false,
    }
}

/// Draws one screen.
fn draw(frame: &mut Frame<'_>, look: &Look) {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let lines = u16::try_from(look.head.len()).unwrap_or(1);
    let [title, head, _, body, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(lines),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Line::styled(format!("zramdctl top  {}", clock()), bold), title);
    let text: Vec<Line<'_>> = look.head.iter().map(|line| Line::raw(line.as_str())).collect();
    frame.render_widget(Paragraph::new(text), head);
    frame.render_widget(Line::raw("q ends   in: read from the device   out: written to it"), foot);
    if look.rows.is_empty() {
        frame.render_widget(Line::raw("no zram device"), body);
        return;
    }
    let widths = look.widths(body.width.into());
    let columns = widths.len();
    let cell = |(column, text): (usize, &str)| {
        let text = Text::raw(text.to_owned());
        Cell::new(if column >= FIRST_FIGURE { text.right_aligned() } else { text })
    };
    let heading = Row::new(COLUMNS.iter().take(columns).copied().enumerate().map(cell));
    let rows = look
        .rows
        .iter()
        .map(|row| Row::new(row.iter().take(columns).map(String::as_str).enumerate().map(cell)));
    let lengths = widths.iter().map(|&width| Constraint::Length(u16::try_from(width).unwrap_or(u16::MAX)));
    let table = Table::new(rows, lengths)
        .header(heading.style(Style::new().add_modifier(Modifier::REVERSED)))
        .column_spacing(2);
    frame.render_widget(table, body);
}

fn pressure() -> Option<Pressure> {
    // `None` on a kernel without pressure stall information.
    parse_pressure(&files::read_optional(Path::new("/"), "/proc/pressure/memory").ok()?)
}

fn clock() -> String {
    jiff::Zoned::now().strftime("%T").to_string()
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use logic::sample::{DeviceView, StateView};

    #[test]
    fn the_screen_holds_what_it_has_room_for() {
        let device = DeviceView { name: "zram0".into(), state: StateView::Active, ..DeviceView::default() };
        let now = Snapshot { devices: vec![device], ..Snapshot::default() };
        let look = Look::new(None, &now, None);
        for (width, height) in [(120, 24), (30, 6), (3, 2), (1, 1)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| draw(frame, &look)).unwrap();
            let screen = terminal.backend().to_string();
            if width == 120 {
                for expected in ["zramdctl top", "memory 0 B", "SWAP USED", "zram0", "q ends"] {
                    assert!(screen.contains(expected), "{expected} is missing in\n{screen}");
                }
            }
        }
    }

    #[test]
    fn q_escape_and_control_c_end_it() {
        let key = |code, modifiers| Event::Key(KeyEvent::new(code, modifiers));
        assert!(asks_for_the_end(&key(KeyCode::Char('q'), KeyModifiers::NONE)));
        assert!(asks_for_the_end(&key(KeyCode::Esc, KeyModifiers::NONE)));
        assert!(asks_for_the_end(&key(KeyCode::Char('c'), KeyModifiers::CONTROL)));
        assert!(!asks_for_the_end(&key(KeyCode::Char('c'), KeyModifiers::NONE)));
        assert!(!asks_for_the_end(&Event::Resize(80, 24)));
    }
}
