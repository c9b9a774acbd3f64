//! What is done behind code of which nothing is proven, before anything else runs on its
//! connection.
//!
//! It is reset: settings, role, locks, temporary tables. One thing cannot be taken back: a setting
//! of no module's that was made up (`app.tenant`) is known to its session for good, and reads as an
//! empty text there, not as NULL or an error. So where anything in the database could make one up,
//! nobody else gets the connection, the next of the same batch neither.

use windrow_core::{Fault, Tally, Verdict};
use windrow_pgwire::wire::Broken;

use crate::executor::batch::Batch;
use crate::executor::connection::Connection;
use crate::executor::form::WorkKind;
use crate::executor::segment::Segment;
use crate::executor::send::RESET;

/// Whether anything in the database could make up a setting: a body that names `set_config`, runs
/// text that it is given, or has a point or a comment between a SET and its value (an UPDATE has
/// none); a body that is no text; a function with such a setting of its own, or in a language of
/// which nothing is known; an expression that calls `set_config` (2078). What extensions bring
/// along is left out: they read and set what is their own, and live with connections of many users.
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

impl<F: WorkKind> Connection<F> {
    /// Of what is to go out together, as much as may: where settings can be made up, nothing comes
    /// behind unproven code.
    pub(super) async fn no_more_than_one_unproven(
        &mut self,
        batch: &Batch<'_, F>,
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

    /// Whether code of this database could make up settings. Asked once in a batch.
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

    /// Behind unproven code: the connection becomes as new, or another one takes its place.
    /// `is_reset`: it was told to become as new already.
    pub(super) async fn behind_unproven(
        &mut self,
        batch: &mut Batch<'_, F>,
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

    /// Takes a new connection in place of this one. Where none is to be had, what has no verdict
    /// has not left.
    async fn reopen(&mut self, batch: &mut Batch<'_, F>) {
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
