//! Medians with their spread over a size that grows by multiples, as SVG that a phone can show.

use std::fmt::Write as _;

use anyhow::{Result, ensure};

use super::plot::{COLOURS, Names};
use super::table;

/// The measurement at one size.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// The size, above 0.
    pub x: f64,
    /// The median of the rounds.
    pub median: f64,
    /// The smallest of them.
    pub low: f64,
    /// The largest of them.
    pub high: f64,
}

/// A line with a bar at each of its points.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The name in the legend.
    pub name: String,
    /// From the smallest size to the largest.
    pub points: Vec<Point>,
}

/// A cross at a place that was published, or found otherwise.
#[derive(Clone, Debug)]
pub struct Mark {
    /// The name in the legend.
    pub name: String,
    /// The size.
    pub x: f64,
    /// The value.
    pub y: f64,
}

/// The scale of the vertical axis; sizes always grow by multiples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// From 0 or the smallest value on, in equal steps.
    Linear,
    /// By multiples: for what differs by orders of magnitude.
    Log,
}

const WIDTH: f64 = 400.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 280.0;
const LINE: f64 = 18.0;

struct Axes {
    x: (f64, f64),
    y: (f64, f64),
    scale: Scale,
}

/// Draws curves and marks.
///
/// # Errors
/// There is no point to draw, or one that a logarithmic axis has no place for.
pub fn curves(names: Names<'_>, scale: Scale, curves: &[Curve], marks: &[Mark]) -> Result<String> {
    let axes = Axes::over(scale, curves, marks)?;
    let entries = curves.len() + marks.len();
    let height = BOTTOM + 62.0 + LINE * table_rows(entries);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"{title}\" style=\"max-width:34rem;background:#fff\" \
         font-family=\"system-ui,sans-serif\" font-size=\"13\">\n\
         <text x=\"10\" y=\"18\" font-weight=\"600\">{title}</text>\n\
         <text x=\"10\" y=\"37\">{y}</text>\n",
        title = escape(names.title),
        y = escape(names.y),
    );
    axes.draw(&mut svg, curves, names.x);
    let mut legend = Legend {
        svg,
        y: BOTTOM + 62.0,
    };
    for (curve, colour) in curves.iter().zip(COLOURS.iter().cycle()) {
        axes.curve(&mut legend.svg, curve, colour);
        legend.entry(&curve.name, colour, "");
    }
    for mark in marks {
        let (x, y) = (axes.x(mark.x), axes.y(mark.y));
        writeln!(
            legend.svg,
            "<path d=\"{}\" stroke=\"#000\" stroke-width=\"2\"/>",
            cross(x, y)
        )
        .ok();
        legend.entry(&mark.name, "#000", "cross");
    }
    legend.svg.push_str("</svg>");
    Ok(legend.svg)
}

fn table_rows(entries: usize) -> f64 {
    u32::try_from(entries).map_or(0.0, f64::from)
}

fn cross(x: f64, y: f64) -> String {
    let (left, right, top, bottom) = (x - 5.0, x + 5.0, y - 5.0, y + 5.0);
    format!("M{left:.1} {top:.1}L{right:.1} {bottom:.1}M{left:.1} {bottom:.1}L{right:.1} {top:.1}")
}

struct Legend {
    svg: String,
    y: f64,
}

impl Legend {
    fn entry(&mut self, name: &str, colour: &str, kind: &str) {
        let middle = self.y - 4.0;
        let sign = match kind {
            "cross" => format!(
                "<path d=\"{}\" stroke=\"#000\" stroke-width=\"2\"/>",
                cross(20.0, middle)
            ),
            _ => format!("<path d=\"M10 {middle}H30\" stroke=\"{colour}\" stroke-width=\"3\"/>"),
        };
        let (y, name) = (self.y, escape(name));
        writeln!(self.svg, "{sign}<text x=\"38\" y=\"{y}\">{name}</text>").ok();
        self.y += LINE;
    }
}

impl Axes {
    fn over(scale: Scale, curves: &[Curve], marks: &[Mark]) -> Result<Self> {
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let xs = || points().map(|p| p.x).chain(marks.iter().map(|m| m.x));
        let lows = points().map(|p| p.low).chain(marks.iter().map(|m| m.y));
        let highs = points().map(|p| p.high).chain(marks.iter().map(|m| m.y));
        let (low, high) = (
            lows.fold(f64::INFINITY, f64::min),
            highs.fold(f64::NEG_INFINITY, f64::max),
        );
        let x = (xs().fold(f64::INFINITY, f64::min), xs().fold(0.0, f64::max));
        ensure!(points().next().is_some(), "nothing to draw");
        ensure!(
            x.0 > 0.0,
            "a size of {} has no place on a logarithmic axis",
            x.0
        );
        let y = match scale {
            Scale::Linear => (low.min(0.0), high.max(low.min(0.0) + 1e-9)),
            Scale::Log => {
                ensure!(low > 0.0, "{low} has no place on a logarithmic axis");
                (
                    10_f64.powf(low.log10().floor()),
                    10_f64.powf(high.log10().ceil()).max(low * 10.0),
                )
            }
        };
        Ok(Self {
            x: (x.0, x.1.max(x.0 * 2.0)),
            y,
            scale,
        })
    }

    fn x(&self, value: f64) -> f64 {
        let share = (value / self.x.0).ln() / (self.x.1 / self.x.0).ln();
        LEFT + share * (RIGHT - LEFT)
    }

    fn y(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.y.0) / (self.y.1 - self.y.0),
            Scale::Log => (value / self.y.0).ln() / (self.y.1 / self.y.0).ln(),
        };
        BOTTOM - share * (BOTTOM - TOP)
    }

    fn draw(&self, svg: &mut String, curves: &[Curve], name: &str) {
        for value in self.steps() {
            let (y, label, text_y) = (self.y(value), table::short(value), self.y(value) + 4.0);
            let (stroke, end) = (if value == 0.0 { "#57606a" } else { "#d8dee4" }, LEFT - 6.0);
            writeln!(
                svg,
                "<path d=\"M{LEFT} {y:.1}H{RIGHT}\" stroke=\"{stroke}\"/>\
                 <text x=\"{end}\" y=\"{text_y:.1}\" text-anchor=\"end\">{label}</text>"
            )
            .ok();
        }
        let mut sizes: Vec<f64> = curves.iter().flat_map(|c| &c.points).map(|p| p.x).collect();
        sizes.sort_unstable_by(f64::total_cmp);
        let (mut free, ticks, below) = (f64::NEG_INFINITY, BOTTOM + 18.0, BOTTOM + 36.0);
        for size in sizes {
            let (x, label) = (self.x(size), table::short(size));
            // Digits of thirteen pixels are some eight wide.
            let half = 4.0 * table_rows(label.len()) + 3.0;
            if x - half < free {
                continue;
            }
            free = x + half;
            writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{ticks}\" text-anchor=\"middle\">{label}</text>"
            )
            .ok();
        }
        let (name, middle) = (escape(name), f64::midpoint(LEFT, RIGHT));
        writeln!(
            svg,
            "<path d=\"M{LEFT} {BOTTOM}H{RIGHT}M{LEFT} {TOP}V{BOTTOM}\" stroke=\"#57606a\" fill=\"none\"/>\
             <text x=\"{middle}\" y=\"{below}\" text-anchor=\"middle\">{name}</text>"
        )
        .ok();
    }

    /// Where the vertical axis has its numbers.
    fn steps(&self) -> Vec<f64> {
        let (low, high) = self.y;
        if self.scale == Scale::Log {
            let tens = std::iter::successors(Some(low), |value| Some(value * 10.0));
            return tens.take_while(|value| *value <= high * 1.001).collect();
        }
        let rough = (high - low) / 4.0;
        let ten = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * ten);
        let step = step
            .into_iter()
            .find(|step| *step >= rough)
            .unwrap_or(rough);
        let first = (low / step).ceil();
        let all = std::iter::successors(Some(first), |n| Some(n + 1.0));
        all.map(|n| n * step)
            .take_while(|value| *value <= high)
            .collect()
    }

    fn curve(&self, svg: &mut String, curve: &Curve, colour: &str) {
        let mut path = String::new();
        for (point, sign) in curve
            .points
            .iter()
            .zip(std::iter::once('M').chain(std::iter::repeat('L')))
        {
            let (x, y) = (self.x(point.x), self.y(point.median));
            let (low, high) = (self.y(point.low), self.y(point.high));
            write!(path, "{sign}{x:.1} {y:.1}").ok();
            writeln!(
                svg,
                "<path d=\"M{x:.1} {low:.1}V{high:.1}\" stroke=\"{colour}\" stroke-width=\"3\" opacity=\".5\"/>\
                 <circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" style=\"fill:{colour}\"/>"
            )
            .ok();
        }
        writeln!(
            svg,
            "<path d=\"{path}\" stroke=\"{colour}\" stroke-width=\"1.5\" fill=\"none\"/>"
        )
        .ok();
    }
}

fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: Names<'static> = Names {
        title: "Forms",
        x: "rows a statement",
        y: "rows/s",
    };

    fn curve(points: &[(f64, f64)]) -> Curve {
        let points = points.iter().map(|(x, y)| Point {
            x: *x,
            median: *y,
            low: y / 2.0,
            high: *y,
        });
        Curve {
            name: "a < b".into(),
            points: points.collect(),
        }
    }

    /// Sizes and values stand where they belong between the ends of their axes.
    #[test]
    fn points_stand_where_they_belong() {
        let marks = [Mark {
            name: "published".into(),
            x: 10.0,
            y: 50.0,
        }];
        let one = [curve(&[(1.0, 20.0), (10.0, 60.0), (100.0, 100.0)])];
        let svg = curves(NAMES, Scale::Linear, &one, &marks).unwrap();
        // 1 is at 58, 100 at 386; 0 is at 280, 100 at 56.
        for part in [
            "M58.0 235.2L222.0 145.6L386.0 56.0",
            "M222.0 212.8V145.6",
            "M217.0 163.0L227.0 173.0",
        ] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        assert!(
            svg.contains("a &lt; b")
                && svg.contains("rows a statement")
                && svg.contains("published")
        );

        let wide = [curve(&[(1.0, 20.0), (100.0, 2_000.0)])];
        let svg = curves(NAMES, Scale::Log, &wide, &[]).unwrap();
        // From 10 to 10,000: 10 is at 280, 1,000 at 130.7.
        assert!(
            svg.contains("M58 280.0H386") && svg.contains("M58 130.7H386"),
            "{svg}"
        );
        assert!(svg.contains(">10k</text>"), "{svg}");
    }

    #[test]
    fn what_cannot_be_drawn_is_an_error() {
        assert!(curves(NAMES, Scale::Linear, &[], &[]).is_err());
        assert!(curves(NAMES, Scale::Log, &[curve(&[(1.0, 0.0)])], &[]).is_err());
        assert!(curves(NAMES, Scale::Linear, &[curve(&[(0.0, 1.0)])], &[]).is_err());
    }
}
