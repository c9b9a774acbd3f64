//! Resets a connection after unproven code, before anything else runs on the connection.
//!
//! The reset covers settings, role, locks and temporary tables. It cannot remove a custom setting
//! (`app.tenant`): PostgreSQL keeps its name for the whole session, where it reads as an empty text
//! and not as NULL or an error. If code in the database could define such a setting, the connection
//! is replaced before the next segment runs, even within one batch.

use windrow_core::{Fault, Tally, Verdict};
use windrow_pgwire::wire::Broken;

use crate::executor::batch::Batch;
use crate::executor::connection::Connection;
use crate::executor::segment::Segment;
use crate::executor::send::RESET;

/// Returns true if code in the database could define a custom setting. Suspicious are: a body that
/// names `set_config`, that executes text, or that has a dot or a comment between SET and its value
/// (an UPDATE has none); a body that is not text; a function with a custom setting of its own, or
/// in an unknown language; an expression that calls `set_config` (function 2078). Functions of
/// extensions are left out: they use only their own settings, and are written for shared
/// connections.
const MAKES_UP: &str = r#"SET LOCAL jit = off; SELECT EXISTS (
    SELECT FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
    WHERE p.oid >= 16384 AND l.lanname NOT IN ('internal', 'c') AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
        WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.objid = p.oid AND d.deptype = 'e')
      AND (l.lanname NOT IN ('sql', 'plpgsql') OR p.prosrc = ''
      OR p.prosrc ~* 'set_config|execute|\mload\M|u&["'']|_to_xml|ts_stat|ts_rewrite|crosstab|connectby'
      OR p.prosrc ~* '\mset\M[^=]*?(\.[^=]*(=|\mto\M)|--|/\*)'
      OR EXISTS (SELECT FROM pg_catalog.unnest(p.proconfig) s WHERE pg_catalog.split_part(s, '=', 1) LIKE '%.%')))
  OR EXISTS (SELECT FROM (
      SELECT adbin::text FROM pg_catalog.pg_attrdef
      UNION ALL SELECT typdefaultbin::text FROM pg_catalog.pg_type WHERE oid >= 16384
      UNION ALL SELECT conbin::text FROM pg_catalog.pg_constraint WHERE oid >= 16384
      UNION ALL SELECT tgqual::text FROM pg_catalog.pg_trigger
      UNION ALL SELECT pg_catalog.concat(polqual, polwithcheck) FROM pg_catalog.pg_policy
      UNION ALL SELECT pg_catalog.concat(ev_qual, ev_action) FROM pg_catalog.pg_rewrite WHERE oid >= 16384
    ) own (expression) WHERE expression LIKE '%:funcid 2078 %')"#;

impl Connection {
    /// Cuts the segments of a round trip after the first unproven one, if code of the database
    /// could define settings.
    pub(super) async fn no_more_than_one_unproven(
        &mut self,
        batch: &Batch<'_>,
        (mut now, mut later): (Vec<Segment>, Vec<Segment>),
        tally: &mut Tally,
    ) -> Result<(Vec<Segment>, Vec<Segment>), Broken> {
        let first = now.iter().position(|segment| batch.is_unproven(segment));
        let Some(first) = first.filter(|first| first + 1 < now.len()) else {
            return Ok((now, later));
        };
        if self.makes_up(tally).await? {
            later.splice(..0, now.split_off(first + 1));
        }
        Ok((now, later))
    }

    /// Returns true if code of this database could define settings. Asks the server at most once
    /// for each batch.
    async fn makes_up(&mut self, tally: &mut Tally) -> Result<bool, Broken> {
        if self.server.is_none() {
            return Ok(false);
        }
        if let Some(known) = self.makes_up {
            return Ok(known);
        }
        tally.round_trips += 1;
        let answer = self.wire.simple(MAKES_UP).await?;
        let no = answer.is_ok_and(|rows| {
            let mut cells = rows.into_iter().flatten();
            cells.next().flatten().as_deref() == Some("f")
        });
        self.makes_up = Some(!no);
        Ok(!no)
    }

    /// Resets the connection after unproven code, or replaces the connection. `is_reset`: the reset
    /// has already been sent.
    pub(super) async fn behind_unproven(
        &mut self,
        batch: &mut Batch<'_>,
        is_reset: bool,
        tally: &mut Tally,
    ) -> Result<(), Broken> {
        self.statements.prepared.clear();
        self.usable = false;
        if batch.pending().is_empty() {
            return Ok(());
        }
        if self.makes_up(tally).await? {
            self.reopen(batch).await;
        } else if !is_reset {
            let sql = format!("{RESET}{}", self.restore);
            tally.round_trips += 1;
            drop(self.wire.simple(&sql).await?);
        }
        Ok(())
    }

    /// Replaces this connection by a new one. If none can be opened, the units without a verdict
    /// are reported as rolled back: they have not been sent.
    async fn reopen(&mut self, batch: &mut Batch<'_>) {
        let Some(server) = self.server.clone() else {
            return;
        };
        self.wire.take_leave().await;
        let opened = async {
            let (mut wire, _) = server.wire().await?;
            match wire.simple(&self.restore).await {
                Ok(answer) => answer.map(|_| wire).map_err(Fault::from),
                Err(broken) => Err(broken.unavailable()),
            }
        };
        match opened.await {
            Ok(wire) => {
                self.interrupt.moved_to(&wire);
                self.wire = wire;
                self.statements.session_is_new();
                self.used = false;
            }
            Err(fault) => batch.conclude_rest(&Verdict::RolledBack(fault)),
        }
    }
}
