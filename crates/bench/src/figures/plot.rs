//! Plots as SVG that a phone can show: lines over time, and medians with their spread over a size
//! that grows by multiples.

use anyhow::{Result, anyhow, ensure};
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use super::table;

/// The colours of lines, each of which is visible on white.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0x1f, 0x6f, 0xeb),
    RGBColor(0xc4, 0x23, 0x2c),
    RGBColor(0x1a, 0x7f, 0x37),
    RGBColor(0x9a, 0x67, 0x00),
    RGBColor(0x82, 0x50, 0xdf),
    RGBColor(0x57, 0x60, 0x6a),
    RGBColor(0xbf, 0x39, 0x89),
    RGBColor(0x0a, 0x7d, 0x91),
];

/// Pixels of a plot without the names of its lines, and of each of those.
const PLOT_HEIGHT: u32 = 340;
const NAME_HEIGHT: i32 = 18;

/// A line of a plot over time.
#[derive(Clone, Debug)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// The points of the line.
    pub points: Vec<(f64, f64)>,
}

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

/// The scale of the vertical axis of curves, whose sizes always grow by multiples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// From 0 or the smallest value on, in equal steps.
    Linear,
    /// By multiples: for what differs by orders of magnitude.
    Log,
}

/// The names of a plot.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// Above it.
    pub title: &'a str,
    /// Below the horizontal axis.
    pub x: &'a str,
    /// Beside the vertical axis.
    pub y: &'a str,
}

/// Draws lines over time, from 0 on.
///
/// # Errors
/// There is no point to draw.
pub fn lines(names: Names<'_>, series: &[Series]) -> Result<String> {
    let points = || series.iter().flat_map(|s| &s.points);
    let most = |of: fn(&(f64, f64)) -> f64| points().map(of).fold(0.0, f64::max) * 1.05;
    ensure!(points().next().is_some(), "nothing to draw");
    let x = 0.0..most(|p| p.0).max(1e-9);
    let y = 0.0..most(|p| p.1).max(1e-9);
    let line = |series: &Series| Curve {
        name: series.name.clone(),
        points: series.points.iter().map(|p| point(p.0, p.1)).collect(),
    };
    let curves: Vec<Curve> = series.iter().map(line).collect();
    let plot = Plot {
        names,
        curves: &curves,
        marks: &[],
        has_bars: false,
    };
    plot.svg(x, y)
}

/// A point without a spread.
fn point(x: f64, y: f64) -> Point {
    Point {
        x,
        median: y,
        low: y,
        high: y,
    }
}

/// Draws curves and marks, but for points without an end, such as a ratio to nothing.
///
/// # Errors
/// There is no point to draw, or one that a logarithmic axis has no place for.
pub fn curves(names: Names<'_>, scale: Scale, curves: &[Curve], marks: &[Mark]) -> Result<String> {
    let is_finite = |p: &Point| [p.x, p.low, p.median, p.high].iter().all(|n| n.is_finite());
    let finite = |curve: &Curve| Curve {
        name: curve.name.clone(),
        points: curve.points.iter().copied().filter(is_finite).collect(),
    };
    let curves = &curves.iter().map(finite).collect::<Vec<_>>()[..];
    let points = || curves.iter().flat_map(|curve| &curve.points).copied();
    ensure!(points().next().is_some(), "nothing to draw");
    let all = || points().chain(marks.iter().map(|mark| point(mark.x, mark.y)));
    let least = |of: fn(Point) -> f64| all().map(of).fold(f64::INFINITY, f64::min);
    let most = |of: fn(Point) -> f64| all().map(of).fold(f64::NEG_INFINITY, f64::max);
    let (left, low, high) = (least(|p| p.x), least(|p| p.low), most(|p| p.high));
    ensure!(left > 0.0, "{left} has no place on a logarithmic axis");
    let x = left..most(|p| p.x).max(left * 2.0);
    let x = x.log_scale();
    let plot = Plot {
        names,
        curves,
        marks,
        has_bars: true,
    };
    if scale == Scale::Linear {
        let low = low.min(0.0);
        return plot.svg(x, low..high.max(low + 1e-9));
    }
    ensure!(low > 0.0, "{low} has no place on a logarithmic axis");
    let decade = |value: f64| 10_f64.powf(value);
    let (low, high) = (
        decade(low.log10().floor()),
        decade(high.log10().ceil()).max(low * 10.0),
    );
    plot.svg(x, (low..high).log_scale())
}

struct Plot<'a> {
    names: Names<'a>,
    curves: &'a [Curve],
    marks: &'a [Mark],
    /// True if points are shown with their spread.
    has_bars: bool,
}

impl Plot<'_> {
    fn svg<X, Y>(&self, x: X, y: Y) -> Result<String>
    where
        X: AsRangedCoord<Value = f64, CoordDescType: ValueFormatter<f64>>,
        Y: AsRangedCoord<Value = f64, CoordDescType: ValueFormatter<f64>>,
    {
        let mut svg = String::new();
        let drawn = self.draw(&mut svg, x, y);
        drawn.map_err(|error| anyhow!("cannot draw: {error}"))?;
        Ok(svg)
    }

    fn draw<X, Y>(&self, svg: &mut String, x: X, y: Y) -> Result<(), Box<dyn std::error::Error>>
    where
        X: AsRangedCoord<Value = f64, CoordDescType: ValueFormatter<f64>>,
        Y: AsRangedCoord<Value = f64, CoordDescType: ValueFormatter<f64>>,
    {
        let entries = i32::try_from(self.curves.len() + self.marks.len())?;
        let below = entries * NAME_HEIGHT + NAME_HEIGHT / 2;
        let size = (400, PLOT_HEIGHT.saturating_add_signed(below));
        let area = SVGBackend::with_string(svg, size).into_drawing_area();
        area.fill(&WHITE)?;
        let (plot, legend) = area.split_vertically(PLOT_HEIGHT);
        let mut chart = ChartBuilder::on(&plot)
            .caption(self.names.title, ("sans-serif", 16))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(64)
            .build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .x_desc(self.names.x)
            .y_desc(self.names.y)
            .max_light_lines(0)
            .label_style(("sans-serif", 13))
            .x_label_formatter(&|value| table::short(*value))
            .y_label_formatter(&|value| table::short(*value))
            .draw()?;
        // Below the plot: wherever it stood in it, some line would pass behind it.
        let mut row = NAME_HEIGHT / 2;
        let mut entry = |name: &str, colour: RGBColor| {
            let line = [(76, row), (94, row)];
            legend.draw(&PathElement::new(line, colour.stroke_width(3)))?;
            legend.draw(&Text::new(
                name.to_owned(),
                (102, row - 7),
                ("sans-serif", 13),
            ))?;
            row += NAME_HEIGHT;
            Ok::<_, Box<dyn std::error::Error>>(())
        };
        for (curve, colour) in self.curves.iter().zip(COLOURS.iter().cycle()) {
            let points = curve.points.iter();
            let medians = points.clone().map(|p| (p.x, p.median));
            chart.draw_series(LineSeries::new(medians.clone(), colour.stroke_width(2)))?;
            if self.has_bars {
                let bar = |p: &Point| vec![(p.x, p.low), (p.x, p.high)];
                let bars = points.map(bar);
                chart.draw_series(bars.map(|bar| PathElement::new(bar, colour.stroke_width(3))))?;
                chart.draw_series(medians.map(|at| Circle::new(at, 3, colour.filled())))?;
            }
            entry(&curve.name, *colour)?;
        }
        for mark in self.marks {
            let cross = Cross::new((mark.x, mark.y), 5, BLACK.stroke_width(2));
            chart.draw_series([cross])?;
            entry(&mark.name, BLACK)?;
        }
        area.present()?;
        Ok(())
    }
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
            low: y / 2.0,
            ..point(*x, *y)
        });
        Curve {
            name: "a < b".into(),
            points: points.collect(),
        }
    }

    /// The places of the points of a plot, from the left and from the top.
    fn circles(svg: &str) -> Vec<(i32, i32)> {
        let number = |text: &str, name: &str| {
            let (_, rest) = text.split_once(name).unwrap();
            rest.split('"').next().unwrap().parse().unwrap()
        };
        let circles = svg.split("<circle").skip(1);
        circles
            .map(|text| (number(text, "cx=\""), number(text, "cy=\"")))
            .collect()
    }

    #[test]
    fn every_line_is_drawn_and_named() {
        let series = [("memory", 3.0), ("budget", 2.0)].map(|(name, y)| Series {
            name: name.into(),
            points: vec![(0.0, y), (10.0, y)],
        });
        let svg = lines(NAMES, &series).unwrap();
        for name in ["memory", "budget", "rows/s", "Forms"] {
            assert!(svg.contains(name), "{name}: {svg}");
        }
        assert!(lines(NAMES, &[]).is_err());
    }

    /// Sizes that grow by the same multiple are equally far apart, and so are values by the scale.
    #[test]
    fn points_stand_where_they_belong() {
        let marks = [Mark {
            name: "published".into(),
            x: 10.0,
            y: 50.0,
        }];
        let one = [curve(&[(1.0, 20.0), (10.0, 60.0), (100.0, 100.0)])];
        for (scale, is_even) in [(Scale::Linear, true), (Scale::Log, false)] {
            let svg = curves(NAMES, scale, &one, &marks).unwrap();
            let places = circles(&svg);
            let [first, second, third] = places.as_slice() else {
                panic!("{svg}")
            };
            assert!(((third.0 - second.0) - (second.0 - first.0)).abs() <= 1);
            let steps = (second.1 - third.1, first.1 - second.1);
            assert_eq!((steps.0 - steps.1).abs() <= 1, is_even, "{places:?}");
            assert!(steps.0 > 0 && steps.1 > 0);
            for name in ["a &lt; b", "rows a statement", "published"] {
                assert!(svg.contains(name), "{name}: {svg}");
            }
        }
    }

    /// A scale without an end would be drawn for ever.
    #[test]
    fn points_without_an_end_are_left_out() {
        let infinite = [(1.0, f64::INFINITY), (2.0, f64::NAN), (4.0, 8.0)];
        let svg = curves(NAMES, Scale::Log, &[curve(&infinite)], &[]).unwrap();
        assert_eq!(circles(&svg).len(), 1);
        assert!(curves(NAMES, Scale::Log, &[curve(&infinite[..2])], &[]).is_err());
    }

    #[test]
    fn what_cannot_be_drawn_is_an_error() {
        assert!(curves(NAMES, Scale::Linear, &[], &[]).is_err());
        assert!(curves(NAMES, Scale::Log, &[curve(&[(1.0, 0.0)])], &[]).is_err());
        assert!(curves(NAMES, Scale::Linear, &[curve(&[(0.0, 1.0)])], &[]).is_err());
    }
}
