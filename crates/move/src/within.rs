//! Moves a batch within one database: the server moves the rows, and those that it refuses are
//! found by halving.

use std::collections::HashMap;
use std::sync::Arc;

use windrow_core::moves::{Destination, Mover, Part, PickMost, Picked};
use windrow_core::{Fault, TableName};

use super::batch::{Batch, Refusal, Remembered, reject};
use super::order::Order;
use super::trouble::{Trouble, is_of_row, is_retried};

/// The most destinations of one batch. Each is a table that is locked until the commit. Rows of
/// further destinations are left to later batches.
const MAX_DESTINATIONS: usize = 128;

/// A mover within one database, and what it has learned.
pub(super) struct Within {
    mover: Box<dyn Mover>,
    known: Remembered<TableName, Arc<Destination>>,
    /// The number of further batches without a sweep, because the last ones had refused rows.
    careful: u32,
    /// The value of `careful` after the next refusal.
    caution: u32,
    /// The most rows of a batch, after the commit of a batch was refused. Doubles with each batch
    /// that is committed.
    reach: usize,
}

/// Rows of a batch with one destination.
struct Group {
    to: Arc<Destination>,
    rows: Vec<usize>,
}

impl Within {
    pub(super) fn new(mover: Box<dyn Mover>) -> Self {
        Self {
            mover,
            known: Remembered::default(),
            careful: 0,
            caution: 1,
            reach: usize::MAX,
        }
    }

    pub(super) fn mover(&mut self) -> &mut Box<dyn Mover> {
        &mut self.mover
    }

    pub(super) fn into_mover(self) -> Box<dyn Mover> {
        self.mover
    }

    /// Moves at most `rows` rows, in one transaction.
    pub(super) async fn batch(&mut self, order: &Order, rows: usize) -> Result<Batch, Trouble> {
        let rows = rows.min(self.reach);
        self.reach = self.reach.saturating_mul(2);
        if let Some(table) = order.template.table() {
            let to = self.destination(table, order.create).await;
            let to = to.map_err(|fault| Trouble::of(table.to_string(), fault))?;
            if self.careful == 0 {
                match self.mover.sweep(rows, &to).await {
                    Ok(swept) => {
                        self.caution = 1;
                        return Ok(Batch {
                            picked: swept.rows,
                            moved: swept.rows,
                            rejected: 0,
                            last: !swept.more,
                        });
                    }
                    Err(fault) if is_retried(&fault) => return Err(Trouble::Retry(fault)),
                    Err(fault) => {
                        tracing::debug!(%fault, "a batch is looked at row by row");
                        self.careful = self.caution;
                    }
                }
            }
        }
        let done = self.carefully(order, rows).await;
        if done.is_err() {
            // Tables that the transaction created are gone. An error here means that the connection
            // is lost, too.
            self.known.clear();
            self.mover.rollback().await.ok();
        }
        if done.as_ref().is_ok_and(|batch| batch.rejected > 0) {
            self.caution = (self.caution * 2).min(64);
        }
        self.careful = self.careful.saturating_sub(1);
        done
    }

    async fn carefully(&mut self, order: &Order, rows: usize) -> Result<Batch, Trouble> {
        let source = || order.plan.source.to_string();
        let most = PickMost {
            rows,
            bytes: usize::MAX,
        };
        let picked = self.mover.pick(most).await;
        let picked = picked.map_err(|fault| Trouble::of(source(), fault))?;
        if picked.is_empty() {
            return Ok(Batch::default());
        }
        let mut rows = &*picked;
        // The single row whose commit failed, and the reason.
        let mut hopeless = None;
        loop {
            let (moved, refusals) = match hopeless.take() {
                None => self.bring(order, rows).await?,
                Some(refusal) => (0, vec![refusal]),
            };
            let rejected = reject(&mut *self.mover, &refusals).await;
            rejected.map_err(|fault| Trouble::of_leaving(order, fault))?;
            let Err(fault) = self.mover.commit().await else {
                return Ok(Batch {
                    picked: rows.len() as u64,
                    moved,
                    rejected: refusals.len() as u64,
                    last: false,
                });
            };
            if moved == 0 || !is_of_row(&fault, order.plan.route.is_some()) || !self.retreat().await
            {
                return Err(Trouble::of(source(), fault));
            }
            // Constraints that are checked at the commit name no row. So fewer rows are tried, and
            // the others are left to the next batch.
            match rows {
                [row] => {
                    let table = order.template.name(row.route.as_deref(), order.name_limit);
                    let name = table.map_or(String::new(), |table| table.to_string());
                    hopeless = Some(Refusal::new(0, name, fault));
                }
                _ => rows = rows.get(..rows.len() / 2).unwrap_or_default(),
            }
            self.reach = rows.len().saturating_mul(2);
        }
    }

    /// Returns to the state after the rows were picked. Returns false if that is impossible.
    async fn retreat(&mut self) -> bool {
        // Tables that were created since are gone.
        self.known.clear();
        self.mover.retreat().await.unwrap_or(false)
    }

    /// Brings rows to their destinations. Returns the number of moved rows, and the refused rows.
    async fn bring(
        &mut self,
        order: &Order,
        picked: &[Picked],
    ) -> Result<(u64, Vec<Refusal>), Trouble> {
        let mut refusals = Vec::new();
        let groups = self.group(order, picked, &mut refusals).await?;
        let moved = self.transfer(order, groups, &mut refusals).await?;
        Ok((moved, refusals))
    }

    /// Groups rows by their destinations, and opens those. Rows of routes beyond
    /// [`MAX_DESTINATIONS`] are in no group.
    async fn group(
        &mut self,
        order: &Order,
        picked: &[Picked],
        refusals: &mut Vec<Refusal>,
    ) -> Result<Vec<Group>, Trouble> {
        let mut routes: Vec<(Option<&str>, Vec<usize>)> = Vec::new();
        let mut places: HashMap<Option<&str>, usize> = HashMap::new();
        for (row, picked) in picked.iter().enumerate() {
            if let Some(fault) = &picked.unfit {
                refusals.push(Refusal::new(row, String::new(), fault.clone()));
                continue;
            }
            let route = picked.route.as_deref();
            let place = *places.entry(route).or_insert(routes.len());
            if place == routes.len() && place < MAX_DESTINATIONS {
                routes.push((route, Vec::new()));
            }
            if let Some((_, rows)) = routes.get_mut(place) {
                rows.push(row);
            } else {
                places.remove(&route);
            }
        }
        let mut groups = Vec::new();
        for (route, rows) in routes {
            let table = order.template.name(route, order.name_limit);
            let (name, found) = match table {
                Err(fault) => (String::new(), Err(fault)),
                Ok(table) => {
                    let found = self.destination(&table, order.create).await;
                    (table.to_string(), found)
                }
            };
            match found {
                Ok(to) => groups.push(Group { to, rows }),
                Err(fault) if is_of_row(&fault, order.plan.route.is_some()) => {
                    refusals.extend(
                        rows.into_iter()
                            .map(|row| Refusal::new(row, name.clone(), fault.clone())),
                    );
                }
                Err(fault) => return Err(Trouble::of(name, fault)),
            }
        }
        Ok(groups)
    }

    async fn destination(
        &mut self,
        table: &TableName,
        create: bool,
    ) -> Result<Arc<Destination>, Fault> {
        if let Some(known) = self.known.get(table) {
            return Ok(known.clone());
        }
        let opened = Arc::new(self.mover.open(table, create).await?);
        self.known.insert(table.clone(), opened.clone());
        Ok(opened)
    }

    /// Moves groups, and finds the refused rows: a group that fails is cut in two until it is one
    /// row.
    async fn transfer(
        &mut self,
        order: &Order,
        groups: Vec<Group>,
        refusals: &mut Vec<Refusal>,
    ) -> Result<u64, Trouble> {
        let routed = order.plan.route.is_some();
        let mut moved = 0;
        let mut stack = vec![groups];
        while let Some(mut groups) = stack.pop() {
            if groups.is_empty() {
                continue;
            }
            let parts: Vec<Part<'_>> = groups
                .iter()
                .map(|group| Part {
                    to: &group.to,
                    rows: &group.rows,
                })
                .collect();
            let Err(refused) = self.mover.transfer(&parts).await else {
                moved += groups.iter().map(|g| g.rows.len() as u64).sum::<u64>();
                continue;
            };
            let fault = refused.fault;
            if !is_of_row(&fault, routed) {
                let table = groups.get(refused.at).map(|g| g.to.table.to_string());
                return Err(Trouble::of(table.unwrap_or_default(), fault));
            }
            let behind = groups.split_off((refused.at + 1).min(groups.len()));
            let Some(group) = groups.pop() else { continue };
            // Groups before the refused one are tried first, so that rows keep their order if
            // possible.
            stack.push(behind);
            match halves(group) {
                Ok((first, second)) => stack.extend([vec![second], vec![first]]),
                Err((row, to)) => refusals.push(Refusal::new(row, to.table.to_string(), fault)),
            }
            stack.push(groups);
        }
        Ok(moved)
    }
}

/// Cuts a group in two, or returns its only row.
fn halves(mut group: Group) -> Result<(Group, Group), (usize, Arc<Destination>)> {
    match &*group.rows {
        [row] => Err((*row, group.to)),
        _ => {
            let rows = group.rows.split_off(group.rows.len() / 2);
            let second = Group {
                to: group.to.clone(),
                rows,
            };
            Ok((group, second))
        }
    }
}
