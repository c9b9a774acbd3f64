//! Lines over time, as SVG.

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use super::table;

/// The colours of lines, each of which is visible on white.
pub(super) const COLOURS: [&str; 8] = [
    "#1f6feb", "#c4232c", "#1a7f37", "#9a6700", "#8250df", "#57606a", "#bf3989", "#0a7d91",
];

/// Pixels of a plot without the names of its lines, and of each of those.
const PLOT_HEIGHT: u32 = 340;
const NAME_HEIGHT: i32 = 18;

/// A line of a plot.
#[derive(Clone, Debug)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// The points of the line.
    pub points: Vec<(f64, f64)>,
}

/// The names of a plot.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// Above it.
    pub title: &'a str,
    /// Below the horizontal axis.
    pub x: &'a str,
    /// Beside the vertical axis, which begins at 0.
    pub y: &'a str,
}

/// Draws lines.
///
/// # Errors
/// There is no point to draw.
pub fn lines(names: Names<'_>, series: &[Series]) -> Result<String> {
    let points = || series.iter().flat_map(|s| &s.points);
    let most = |of: fn(&(f64, f64)) -> f64| points().map(of).fold(0.0, f64::max) * 1.05;
    anyhow::ensure!(points().next().is_some(), "nothing to draw");
    let mut svg = String::new();
    draw(
        &mut svg,
        names,
        series,
        (most(|p| p.0).max(1e-9), most(|p| p.1).max(1e-9)),
    )
    .map_err(|error| anyhow!("cannot draw: {error}"))?;
    Ok(svg)
}

fn draw(
    svg: &mut String,
    names: Names<'_>,
    series: &[Series],
    (right, top): (f64, f64),
) -> Result<(), Box<dyn std::error::Error>> {
    let names_below = i32::try_from(series.len())? * NAME_HEIGHT;
    let height = PLOT_HEIGHT.saturating_add_signed(names_below + NAME_HEIGHT / 2);
    let area = SVGBackend::with_string(svg, (400, height)).into_drawing_area();
    area.fill(&WHITE)?;
    let (plot, below) = area.split_vertically(PLOT_HEIGHT);
    let mut chart = ChartBuilder::on(&plot)
        .caption(names.title, ("sans-serif", 16))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..right, 0.0..top)?;
    chart
        .configure_mesh()
        .x_desc(names.x)
        .y_desc(names.y)
        .max_light_lines(0)
        .label_style(("sans-serif", 13))
        .x_label_formatter(&|value| table::short(*value))
        .y_label_formatter(&|value| table::short(*value))
        .draw()?;
    for (at, line) in series.iter().enumerate() {
        let colour = colour(at);
        let points = line.points.iter().copied();
        chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
        // Below the plot: wherever it stood in it, some line would pass behind it.
        let y = i32::try_from(at)? * NAME_HEIGHT + NAME_HEIGHT / 2;
        below.draw(&PathElement::new(
            [(76, y), (94, y)],
            colour.stroke_width(3),
        ))?;
        let name = Text::new(line.name.as_str(), (102, y - 7), ("sans-serif", 13));
        below.draw(&name)?;
    }
    area.present()?;
    Ok(())
}

fn colour(at: usize) -> RGBColor {
    let hex = COLOURS
        .iter()
        .cycle()
        .nth(at)
        .map_or("", |hex| hex.trim_start_matches('#'));
    let [_, red, green, blue] = u32::from_str_radix(hex, 16)
        .unwrap_or_default()
        .to_be_bytes();
    RGBColor(red, green, blue)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_drawn_and_named() {
        let series = [("memory", 3.0), ("budget", 2.0)].map(|(name, y)| Series {
            name: name.into(),
            points: vec![(0.0, y), (10.0, y)],
        });
        let names = Names {
            title: "Memory while the database stands",
            x: "seconds",
            y: "MiB",
        };
        let svg = lines(names, &series).unwrap();
        assert!(svg.contains("memory") && svg.contains("budget") && svg.contains("MiB"));
        assert!(lines(names, &[]).is_err());
    }
}
