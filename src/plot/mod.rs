//! The learning curve as a picture: what a finished training leaves for people to look at.

mod frame;

use frame::{Frame, number};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, FontTransform, register_font};

/// Size of the picture, pixels.
const SIZE: (u32, u32) = (1200, 720);
/// The drawing library smooths thin lines only. Everything is drawn this many times larger and
/// averaged down, which smooths wide lines and dots as well.
const OVERSAMPLING: u32 = 3;

/// The frame that the curve is drawn in, pixels of the finished picture.
const LEFT: f64 = 118.0;
const RIGHT: f64 = 1100.0;
const TOP: f64 = 132.0;
const BOTTOM: f64 = 628.0;

const FONT: &str = "curve";
const PAPER: RGBColor = RGBColor(255, 255, 255);
const INK: RGBColor = RGBColor(31, 41, 55);
const FAINT_INK: RGBColor = RGBColor(107, 114, 128);
const GRID: RGBColor = RGBColor(232, 236, 240);
const CURVE: RGBColor = RGBColor(0, 109, 143);
const MARK: RGBColor = RGBColor(222, 98, 48);

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// The built-in font could not be read; the build is broken.
    #[error("could not draw the learning curve: the built-in font is unreadable")]
    Font,
    /// The drawing library refused.
    #[error("could not draw the learning curve: {0}")]
    Draw(String),
    /// The picture could not be encoded.
    #[error("could not encode the learning curve as PNG")]
    Encode(#[from] png::EncodingError),
}

/// Draws mean reward over iterations as a PNG of 1200×720 pixels. Points that are not finite are
/// left out; without any point the picture says so.
///
/// # Errors
/// [`PlotError`]: the picture could not be drawn or encoded. No data can cause it.
pub fn reward_curve(
    points: &[(u64, f64)],
    title: &str,
    subtitle: &str,
) -> Result<Vec<u8>, PlotError> {
    register_font(FONT, FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT)
        .map_err(|_| PlotError::Font)?;
    let (width, height) = (SIZE.0 * OVERSAMPLING, SIZE.1 * OVERSAMPLING);
    let mut large = vec![0; (width * height * 3) as usize];
    {
        let area = BitMapBackend::with_buffer(&mut large, (width, height)).into_drawing_area();
        draw(&area, points, title, subtitle)
            .and_then(|()| area.present())
            .map_err(|error| PlotError::Draw(error.to_string()))?;
    }
    encode(&average_down(&large))
}

type Area<'a> = DrawingArea<BitMapBackend<'a>, Shift>;
type Drawn =
    Result<(), DrawingAreaErrorKind<<BitMapBackend<'static> as DrawingBackend>::ErrorType>>;

fn draw(area: &Area<'_>, points: &[(u64, f64)], title: &str, subtitle: &str) -> Drawn {
    let finite: Vec<(f64, f64)> = points
        .iter()
        .filter(|(_, reward)| reward.is_finite())
        .map(|(iteration, reward)| (*iteration as f64, *reward))
        .collect();
    let frame = Frame::around(&finite);
    area.fill(&PAPER)?;
    write(area, title, (LEFT, 44.0), 34, INK, HPos::Left)?;
    write(area, subtitle, (LEFT, 86.0), 19, FAINT_INK, HPos::Left)?;
    draw_axes(area, &frame)?;

    let Some(last) = finite.last() else {
        let middle = ((LEFT + RIGHT) / 2.0, (TOP + BOTTOM) / 2.0);
        return write(area, "no rewards yet", middle, 24, FAINT_INK, HPos::Center);
    };
    let curve: Vec<(f64, f64)> = finite.iter().map(|point| frame.place(*point)).collect();
    let (end, first) = (frame.place(*last), curve[0]);
    let mut below = curve.clone();
    below.extend([(end.0, BOTTOM), (first.0, BOTTOM)]);
    area.draw(&Polygon::new(large(&below), CURVE.mix(0.10).filled()))?;
    area.draw(&PathElement::new(large(&curve), CURVE.stroke_width(3 * OVERSAMPLING)))?;
    // The last value is led to the edge, where it does not cover the curve.
    let mut dash = LEFT.max(end.0);
    while dash < RIGHT {
        line(area, (dash, end.1), ((dash + 6.0).min(RIGHT), end.1), MARK)?;
        dash += 12.0;
    }
    area.draw(&Circle::new(pixel(end), pixels(9.0), PAPER.filled()))?;
    area.draw(&Circle::new(pixel(end), pixels(6.5), MARK.filled()))?;
    let beside = (RIGHT.max(end.0) + 14.0, end.1);
    // One decimal more than the axis needs, where there is room for it.
    let step = if last.1.abs() < 1e4 { (frame.up.step / 10.0).min(0.1) } else { 1.0 };
    write(area, &number(last.1, step), beside, 23, MARK, HPos::Left)
}

fn draw_axes(area: &Area<'_>, frame: &Frame) -> Drawn {
    for value in frame.up.ticks() {
        let y = frame.place((0.0, value)).1;
        line(area, (LEFT, y), (RIGHT, y), GRID)?;
        write(area, &number(value, frame.up.step), (LEFT - 12.0, y), 17, FAINT_INK, HPos::Right)?;
    }
    for value in frame.across.ticks() {
        let x = frame.place((value, 0.0)).0;
        line(area, (x, BOTTOM), (x, BOTTOM + 6.0), FAINT_INK)?;
        let below = (x, BOTTOM + 20.0);
        write(area, &number(value, 1.0), below, 17, FAINT_INK, HPos::Center)?;
    }
    line(area, (LEFT, BOTTOM), (RIGHT, BOTTOM), FAINT_INK)?;
    write(area, "iteration", ((LEFT + RIGHT) / 2.0, BOTTOM + 56.0), 19, INK, HPos::Center)?;
    let sideways = text(19, INK, HPos::Center).transform(FontTransform::Rotate270);
    area.draw_text("mean reward", &sideways, pixel((38.0, (TOP + BOTTOM) / 2.0)))
}

/// Writes text whose middle is at the height of `at`.
fn write(
    area: &Area<'_>,
    words: &str,
    at: (f64, f64),
    size: u32,
    colour: RGBColor,
    horizontal: HPos,
) -> Drawn {
    // The library centres by a height that is too large for this font.
    let lowered = (at.0, at.1 + f64::from(size) * 0.17);
    area.draw_text(words, &text(size, colour, horizontal), pixel(lowered))
}

fn text(size: u32, colour: RGBColor, horizontal: HPos) -> TextStyle<'static> {
    TextStyle {
        font: (FONT, pixels(f64::from(size))).into_font(),
        color: colour.to_backend_color(),
        pos: Pos::new(horizontal, VPos::Center),
    }
}

fn line(area: &Area<'_>, from: (f64, f64), to: (f64, f64), colour: RGBColor) -> Drawn {
    area.draw(&PathElement::new(large(&[from, to]), colour.stroke_width(OVERSAMPLING)))
}

/// From the finished picture to the large one.
fn pixels(length: f64) -> i32 {
    (length * f64::from(OVERSAMPLING)).round() as i32
}

fn pixel((x, y): (f64, f64)) -> (i32, i32) {
    (pixels(x), pixels(y))
}

fn large(places: &[(f64, f64)]) -> Vec<(i32, i32)> {
    places.iter().map(|place| pixel(*place)).collect()
}

/// The mean of every square of pixels, which is what a pixel of the finished picture covers.
fn average_down(large: &[u8]) -> Vec<u8> {
    let side = OVERSAMPLING as usize;
    let row = SIZE.0 as usize * side * 3;
    let mut small = Vec::with_capacity(SIZE.0 as usize * SIZE.1 as usize * 3);
    for rows in large.chunks_exact(row * side) {
        let mut sums = vec![0_u32; SIZE.0 as usize * 3];
        for line in rows.chunks_exact(row) {
            for (sum, square) in sums.chunks_exact_mut(3).zip(line.chunks_exact(side * 3)) {
                for pixel in square.chunks_exact(3) {
                    for channel in 0..3 {
                        sum[channel] += u32::from(pixel[channel]);
                    }
                }
            }
        }
        small.extend(sums.iter().map(|sum| (sum / (OVERSAMPLING * OVERSAMPLING)) as u8));
    }
    small
}

fn encode(pixels: &[u8]) -> Result<Vec<u8>, PlotError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, SIZE.0, SIZE.1);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The picture's pixels; panics unless it is a PNG of the right size.
    fn picture(points: &[(u64, f64)]) -> Vec<[u8; 3]> {
        let bytes = reward_curve(points, "Learning to hold a pose", "seed 1").unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), SIZE);
        pixels.as_chunks::<3>().0.to_vec()
    }

    fn count(pixels: &[[u8; 3]], colour: RGBColor) -> usize {
        pixels.iter().filter(|pixel| **pixel == [colour.0, colour.1, colour.2]).count()
    }

    #[test]
    fn without_points_the_picture_says_so_and_shows_no_curve() {
        let pixels = picture(&[(0, f64::NAN), (1, f64::NEG_INFINITY)]);
        assert_eq!((count(&pixels, CURVE), count(&pixels, MARK)), (0, 0));
        let middle = &pixels[(370 * SIZE.0) as usize..(390 * SIZE.0) as usize];
        assert!(count(middle, PAPER) < middle.len(), "the words are there");
    }

    #[test]
    fn one_point_is_marked() {
        assert!(count(&picture(&[(5, -17_000.0)]), MARK) > 50);
    }

    #[test]
    fn a_constant_curve_is_a_level_line() {
        let pixels = picture(&[(0, 3.0), (400, 3.0)]);
        let rows: Vec<usize> = pixels
            .chunks_exact(SIZE.0 as usize)
            .map(|row| count(row, CURVE))
            .filter(|pixels| *pixels > 0)
            .collect();
        assert!(
            !rows.is_empty() && rows.len() <= 3 && rows.iter().all(|row| *row > 900),
            "{rows:?}"
        );
    }

    #[test]
    fn points_that_are_not_finite_are_left_out() {
        let with = [(0, 1.0), (1, f64::NAN), (2, 4.0), (3, 2.0), (4, f64::INFINITY)];
        let without = [(0, 1.0), (2, 4.0), (3, 2.0)];
        assert!(picture(&with) == picture(&without), "the pictures differ");
    }

    #[test]
    fn a_rising_curve_ends_at_its_mark_in_the_upper_right() {
        let points: Vec<(u64, f64)> =
            (0..60).map(|i| (i, 90.0 - 80.0 * 0.9_f64.powi(i as i32))).collect();
        let pixels = picture(&points);
        let at = |index: usize| ((index as u32 % SIZE.0) as f64, (index as u32 / SIZE.0) as f64);
        let marked = [MARK.0, MARK.1, MARK.2];
        let dot: Vec<_> =
            (0..pixels.len()).filter(|index| pixels[*index] == marked).map(at).collect();
        assert!(dot.len() > 50);
        assert!(
            dot.iter().all(|(x, y)| *x > RIGHT - 10.0 && (TOP..TOP + 60.0).contains(y)),
            "{dot:?}"
        );
        assert!(count(&pixels, CURVE) > 2000);
    }
}
