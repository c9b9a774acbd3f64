//! A run as one page: readable without a network, by day and by night, and printable.

use std::fmt::Write as _;

use super::figure::Figure;
use super::table::{self, Spread};

const STYLE: &str = "
:root{color-scheme:light dark;--ink:#1b1f24;--faint:#8a929c;--mark:#1f6feb;--page:#fff}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ed;--faint:#7d8590;--mark:#6cb0ff;--page:#14171a}}
@media print{:root{--ink:#000;--faint:#666;--mark:#000;--page:#fff}figure{break-inside:avoid}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);max-width:48rem;
margin:0 auto;padding:1rem;overflow-wrap:anywhere}
figure{margin:2rem 0}figcaption{font-weight:600}svg{width:100%;max-width:30rem;height:auto}
svg text{font-size:13px;fill:var(--ink)}svg line{stroke:var(--faint)}
svg .published{stroke:var(--ink);stroke-width:2}
svg .range{stroke:var(--mark);stroke-width:3}svg circle{fill:var(--mark)}
.own{background:#fff}.own svg{max-width:34rem}.own svg text{fill:#000}.own svg line{stroke:#d8dee4}
td{vertical-align:top;padding-right:1rem}
";

/// The text beside the figures.
pub(super) struct Words<'a> {
    pub title: &'a str,
    pub date: &'a str,
    pub command: &'a str,
    pub remarks: &'a [String],
    pub versions: &'a [(String, String)],
    /// Plots of the experiment's own, as SVG.
    pub plots: Vec<&'a str>,
}

/// The page: a plot for each metric, with its arms' medians and the range of their rounds.
pub(super) fn html(words: &Words<'_>, figures: &[Figure], published: &[Figure]) -> String {
    let title = escape(words.title);
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n<h1>{title}</h1>\n\
         <p>{}, <code>{}</code></p>\n<ul>\n",
        words.date,
        escape(words.command)
    );
    for remark in words.remarks {
        writeln!(text, "<li>{}</li>", escape(remark)).ok();
    }
    text.push_str(
        "</ul>\n<p>Each dot is the median of the rounds, its line reaches from the smallest to \
         the largest of them; a bar across is what others have published. Every single figure is in <code>raw.csv</code>.</p>\n",
    );
    for plot in &words.plots {
        writeln!(text, "<figure class=\"own\">{plot}</figure>").ok();
    }
    for metric in table::distinct(figures.iter().map(|f| f.metric.as_str())) {
        plot(&mut text, (figures, published), metric);
    }
    text.push_str("<table>\n");
    for (what, value) in words.versions {
        let (what, value) = (escape(what), escape(value));
        writeln!(text, "<tr><td>{what}</td><td>{value}</td></tr>").ok();
    }
    text.push_str("</table>\n</html>\n");
    text
}

const WIDTH: f64 = 360.0;
const ROW: f64 = 44.0;

/// A metric of more arms than this is shown only when it is asked for: the curves say it shorter.
const MANY: usize = 24;

/// Characters that fit into a line of a plot; longer ones are narrowed.
const FITS: usize = 52;

/// One metric: its name with the unit below the axis, an arm a row, from zero.
fn plot(text: &mut String, (figures, published): (&[Figure], &[Figure]), metric: &str) {
    let arms: Vec<(&str, Spread)> = table::distinct(figures.iter().map(|f| f.arm.as_str()))
        .into_iter()
        .filter_map(|arm| Some((arm, Spread::of(figures, arm, metric)?)))
        .collect();
    let others = published.iter().filter(|figure| figure.metric == metric);
    let most = arms.iter().map(|(_, s)| s.high);
    let most = most.chain(others.map(|f| f.value)).fold(0.0, f64::max);
    let least = arms.iter().map(|(_, s)| s.low).fold(0.0, f64::min);
    let size = if most > least { most - least } else { 1.0 };
    let x = |value: f64| 10.0 + (value - least) / size * (WIDTH - 20.0);
    let shown = escape(metric);
    let mut y = 0.0;
    let mut rows = String::new();
    for (arm, spread) in &arms {
        let mut label = format!("{}: {}", escape(arm), spread.shown());
        let is_same = |figure: &&Figure| figure.arm == *arm && figure.metric == metric;
        if let Some(other) = published.iter().find(is_same) {
            let (at, top, end) = (x(other.value), y + 22.0, y + 38.0);
            label.push_str(&format!(", published {}", table::number(other.value)));
            write!(
                rows,
                "<line class=\"published\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{top}\" y2=\"{end}\"/>"
            )
            .ok();
        }
        let (low, middle, high) = (x(spread.low), x(spread.median), x(spread.high));
        let (text_y, dot_y) = (y + 16.0, y + 30.0);
        let fit = match label.chars().count() {
            ..=FITS => "",
            _ => " textLength=\"340\" lengthAdjust=\"spacingAndGlyphs\"",
        };
        writeln!(
            rows,
            "<text x=\"10\" y=\"{text_y}\"{fit}>{label}</text>\
             <line class=\"range\" x1=\"{low:.1}\" x2=\"{high:.1}\" y1=\"{dot_y}\" y2=\"{dot_y}\"/>\
             <circle cx=\"{middle:.1}\" cy=\"{dot_y}\" r=\"5\"/>"
        )
        .ok();
        y += ROW;
    }
    let (ticks, name, height) = (y + 18.0, y + 36.0, y + 44.0);
    let (left, right) = (table::number(least), table::number(most));
    let (end, middle) = (WIDTH - 10.0, WIDTH / 2.0);
    let (open, close) = match arms.len() {
        ..=MANY => (String::new(), ""),
        many => (
            format!("<details><summary>{shown}: all {many}</summary>"),
            "</details>",
        ),
    };
    writeln!(
        text,
        "{open}<figure><figcaption>{shown}</figcaption>\n\
         <svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{shown}\">\n{rows}\
         <line x1=\"10\" x2=\"{end}\" y1=\"{y}\" y2=\"{y}\"/>\
         <text x=\"10\" y=\"{ticks}\">{left}</text>\
         <text x=\"{end}\" y=\"{ticks}\" text-anchor=\"end\">{right}</text>\
         <text x=\"{middle}\" y=\"{name}\" text-anchor=\"middle\">{shown}</text></svg></figure>{close}"
    )
    .ok();
}

fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each dot stands where its number belongs between both ends of the axis.
    #[test]
    fn a_plot_shows_the_numbers() {
        let figure = |round, arm: &str, value| Figure {
            round,
            arm: arm.into(),
            metric: "rows/s & more".into(),
            value,
        };
        let figures = [
            figure(1, "<alone>", 10.0),
            figure(2, "<alone>", 30.0),
            figure(3, "<alone>", 20.0),
            figure(1, "joined", 40.0),
        ];
        let mut page = String::new();
        plot(
            &mut page,
            (&figures, &[figure(0, "joined", 20.0)]),
            "rows/s & more",
        );
        assert!(
            page.contains("&lt;alone&gt;: 20.00 (10.00 .. 30.00)"),
            "{page}"
        );
        assert!(page.contains("rows/s &amp; more") && !page.contains("<alone>"));
        assert!(page.contains("joined: 40.00 (40.00 .. 40.00), published 20.00"));
        assert!(page.contains("class=\"published\" x1=\"180.0\""));
        assert!(!page.contains("<details>") && !page.contains("textLength"));
        // 0 is at 10, 40 at 350.
        for part in ["cx=\"180.0\"", "x1=\"95.0\" x2=\"265.0\"", "cx=\"350.0\""] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(
            page.contains(">0</text>") && page.contains(">40.00</text>"),
            "{page}"
        );
    }

    #[test]
    fn what_is_much_is_folded_and_what_is_long_is_narrowed() {
        let figures: Vec<_> = (0..=MANY)
            .map(|n| Figure {
                round: 1,
                arm: format!("an arm with a name that takes much of a line, {n}"),
                metric: "rows/s".into(),
                value: 1.0,
            })
            .collect();
        let mut page = String::new();
        plot(&mut page, (&figures, &[]), "rows/s");
        assert!(page.contains("<details><summary>rows/s: all 25</summary>"));
        assert!(page.contains("textLength=\"340\""));
    }
}
