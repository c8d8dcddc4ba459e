//! Plain tables: columns as wide as their widest cell.

use unicode_width::UnicodeWidthStr;

use crate::text::shown;

/// Columns of a terminal that a text takes: two for most letters of East Asian scripts and emoji, none for combining ones.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Formats rows with a heading. Cells are left-aligned, except in the given columns; two blanks separate columns.
pub fn render(heading: &[&str], right_aligned: &[usize], rows: &[Vec<String>]) -> String {
    render_with_gap("  ", heading, right_aligned, rows)
}

/// As [`render`], with `gap` between columns.
pub fn render_with_gap(gap: &str, heading: &[&str], right_aligned: &[usize], rows: &[Vec<String>]) -> String {
    let heading: Vec<String> = heading.iter().map(|&cell| cell.to_owned()).collect();
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| shown(cell.as_str())).collect()).collect();
    let mut widths: Vec<usize> = heading.iter().map(|cell| width(cell)).collect();
    for row in &rows {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = (*widest).max(width(cell));
        }
    }
    let mut out = String::new();
    for row in std::iter::once(&heading).chain(&rows) {
        let mut line = String::new();
        for (column, (cell, &widest)) in row.iter().zip(&widths).enumerate() {
            let padding = " ".repeat(widest - width(cell));
            let (before, after) =
                if right_aligned.contains(&column) { (padding.as_str(), "") } else { ("", padding.as_str()) };
            line.push_str(before);
            line.push_str(cell);
            line.push_str(after);
            line.push_str(gap);
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_line_up_and_lines_have_no_trailing_blanks() {
        let rows =
            [vec!["zram0".to_owned(), "4.0 GiB".to_owned()], vec!["zram10".to_owned(), "1 B".to_owned()]];
        assert_eq!(
            render(&["NAME", "SIZE"], &[1], &rows),
            "NAME       SIZE\nzram0   4.0 GiB\nzram10      1 B\n"
        );
    }

    #[test]
    fn a_cell_begins_no_line_of_its_own() {
        assert_eq!(render(&["N"], &[], &[vec!["a\nzram1 active".to_owned()]]), "N\na\\x0azram1 active\n");
    }

    #[test]
    fn wide_and_combining_letters_line_up() {
        let rows = ["圧縮", "e\u{301}", "zram"].map(|name| vec![name.to_owned(), "1".to_owned()]);
        assert_eq!(render(&["N", "S"], &[], &rows), "N     S\n圧縮  1\ne\u{301}     1\nzram  1\n");
    }
}
