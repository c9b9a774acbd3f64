//! Where more rows in a batch no longer pay.

/// The rate of one size of a batch with so many connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cell {
    pub(super) batch: u32,
    pub(super) connections: u32,
    /// Rows a second.
    pub(super) rate: f64,
}

pub(super) const RATE: &str = "rows/s";
pub(super) const RELATIVE: &str = "times batch 1, concurrency 2";

/// The least gain of a doubling of the batch.
const WORTH: f64 = 1.1;

/// [`WORTH`] in words.
pub(super) const RULE: &str = "the bend is the smallest batch from which on no step to a larger one of the sweep brings \
     10 % more rows a second for each doubling of the batch; there is none where the last step still does";

/// The size of the batch at the bend.
pub(super) fn bend(cells: &[Cell], connections: u32) -> Option<u32> {
    let mut line: Vec<&Cell> = cells
        .iter()
        .filter(|cell| cell.connections == connections)
        .collect();
    line.sort_unstable_by_key(|cell| cell.batch);
    let pays = |pair: &[&Cell]| match pair {
        [small, large] => {
            let doublings = (f64::from(large.batch) / f64::from(small.batch)).log2();
            large.rate / small.rate >= WORTH.powf(doublings)
        }
        _ => false,
    };
    let last = line.windows(2).rposition(pays);
    let at = last.map_or(0, |pair| pair + 1);
    // Behind the last size nothing was tried.
    (at + 1 < line.len()).then(|| line.get(at).map(|cell| cell.batch))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(rates: &[(u32, f64)]) -> Vec<Cell> {
        let cells = rates.iter().map(|(batch, rate)| Cell {
            batch: *batch,
            connections: 2,
            rate: *rate,
        });
        cells.collect()
    }

    #[test]
    fn the_bend_is_where_doubling_stops_to_pay() {
        let bends = line(&[(1, 1.0), (10, 4.0), (100, 9.0), (1_000, 10.0), (5_000, 9.0)]);
        assert_eq!(bend(&bends, 2), Some(100));
        assert_eq!(bend(&bends, 4), None);
        let grows = line(&[(1, 1.0), (10, 4.0), (100, 9.0)]);
        assert_eq!(bend(&grows, 2), None);
        let flat = line(&[(1, 1.0), (10, 1.0)]);
        assert_eq!(bend(&flat, 2), Some(1));
        // The order in which they were measured is of no matter.
        let back: Vec<_> = bends.iter().rev().copied().collect();
        assert_eq!(bend(&back, 2), Some(100));
    }
}
