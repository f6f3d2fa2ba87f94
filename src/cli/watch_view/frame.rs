//! One picture of a watch: from what is known to a frame of any size. Pure: no terminal, no clock.

use super::model::Model;
use super::words::{self, faint};
use chrono::{DateTime, Utc};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Borders, Chart, Dataset, GraphType, Paragraph};

/// From this size on there are frames and a line for each fuse; below, each thing has one line.
const ROOMY: (u16, u16) = (60, 16);
/// More fuses than this are not listed.
const FUSES: usize = 4;

/// Draws it.
pub fn draw(frame: &mut Frame<'_>, model: &Model, now: DateTime<Utc>) {
    let area = frame.area();
    match area.width >= ROOMY.0 && area.height >= ROOMY.1 {
        true => roomy(frame, area, model, now),
        false => small(frame, area, model, now),
    }
}

fn roomy(frame: &mut Frame<'_>, area: Rect, model: &Model, now: DateTime<Utc>) {
    let fuses = words::fuses(model, now);
    let shown = fuses.len().min(FUSES).min(usize::from(area.height.saturating_sub(16)) / 2 + 1);
    let rows = [
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Fill(3),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(u16::try_from(shown).unwrap_or(1)),
        Constraint::Length(1),
        Constraint::Fill(2),
        Constraint::Length(1),
    ];
    let [title, job, progress, curve, witness, money, fuse, said, log, foot] =
        Layout::vertical(rows).areas(area);
    ends(frame, title, bold(words::title(model)), &now.format("%H:%M:%S UTC").to_string());
    line(frame, job, words::job(model));
    line(frame, progress, words::progress(model, now, usize::from(area.width) / 4));
    let block =
        Block::new().borders(Borders::TOP).border_style(faint()).title(words::reward(model));
    let inside = block.inner(curve);
    frame.render_widget(block, curve);
    chart(frame, inside, model);
    line(frame, witness, words::witness(model, now));
    line(frame, money, words::money(model, now));
    frame.render_widget(Paragraph::new(fuses.into_iter().take(shown).collect::<Vec<_>>()), fuse);
    line(frame, said, words::said(model));
    let block = Block::new().borders(Borders::TOP).border_style(faint()).title("log ");
    let inside = block.inner(log);
    frame.render_widget(block, log);
    tail(frame, inside, model);
    ends(frame, foot, Span::styled(words::KEYS, faint()).into(), &words::next_look(model, now));
}

fn small(frame: &mut Frame<'_>, area: Rect, model: &Model, now: DateTime<Utc>) {
    let rows = [
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Fill(2),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Fill(1),
    ];
    let [job, progress, reward, curve, witness, money, fuse, said, log] =
        Layout::vertical(rows).areas(area);
    line(frame, job, words::job(model));
    line(frame, progress, words::progress(model, now, 0));
    line(frame, reward, words::reward(model));
    bare_chart(frame, curve, model);
    line(frame, witness, words::witness(model, now));
    line(frame, money, words::money(model, now));
    line(frame, fuse, words::fuses(model, now).into_iter().next().unwrap_or_default());
    line(frame, said, words::said(model));
    tail(frame, log, model);
}

fn line(frame: &mut Frame<'_>, area: Rect, line: Line<'_>) {
    frame.render_widget(line, area);
}

/// Words at the left and, when there is room, at the right.
fn ends(frame: &mut Frame<'_>, area: Rect, left: Line<'_>, right: &str) {
    let room = usize::from(area.width).saturating_sub(left.width() + 2);
    frame.render_widget(left, area);
    if right.chars().count() <= room {
        frame.render_widget(Line::styled(right, faint()).right_aligned(), area);
    }
}

/// The last lines of the log that fit.
fn tail(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let lines = model.sight.as_ref().map(|sight| sight.log.as_slice()).unwrap_or_default();
    let from = lines.len().saturating_sub(usize::from(area.height));
    let lines: Vec<Line<'_>> = lines[from..].iter().map(|text| text.as_str().into()).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

/// The curve on the screen: its points and the bounds of both axes.
struct Drawn {
    points: Vec<(f64, f64)>,
    x: [f64; 2],
    y: [f64; 2],
}

/// `None` while there is nothing to draw.
fn drawn(model: &Model) -> Option<Drawn> {
    #[expect(clippy::cast_precision_loss, reason = "a place on the screen")]
    let points: Vec<(f64, f64)> =
        model.curve.iter().map(|(at, reward)| (*at as f64, *reward)).collect();
    let (first, last) = (points.first()?.0, points.last()?.0);
    let rewards = points.iter().map(|(_, reward)| *reward);
    let low = rewards.clone().fold(f64::INFINITY, f64::min);
    let high = rewards.fold(f64::NEG_INFINITY, f64::max);
    let margin = if high > low { 0.0 } else { 1.0 };
    Some(Drawn { points, x: [first, last.max(first + 1.0)], y: [low - margin, high + margin] })
}

fn dataset(points: &[(f64, f64)]) -> Dataset<'_> {
    Dataset::default()
        .marker(Marker::Braille)
        .graph_type(GraphType::Line)
        .style(Style::new().fg(Color::Cyan))
        .data(points)
}

fn chart(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let Some(Drawn { points, x, y }) = drawn(model) else {
        frame.render_widget(Line::styled("no reward yet", faint()), area);
        return;
    };
    let number = |value: f64| words::number(value);
    let chart = Chart::new(vec![dataset(&points)])
        .x_axis(Axis::default().bounds(x).style(faint()).labels(x.map(|at| format!("{at:.0}"))))
        .y_axis(Axis::default().bounds(y).style(faint()).labels(y.map(number)));
    frame.render_widget(chart, area);
}

/// Without axes, where each row counts.
fn bare_chart(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    if let Some(Drawn { points, x, y }) = drawn(model) {
        let chart = Chart::new(vec![dataset(&points)])
            .x_axis(Axis::default().bounds(x))
            .y_axis(Axis::default().bounds(y));
        frame.render_widget(chart, area);
    }
}

fn bold(text: String) -> Line<'static> {
    Line::styled(text, Style::new().add_modifier(Modifier::BOLD))
}

#[cfg(test)]
mod tests;
