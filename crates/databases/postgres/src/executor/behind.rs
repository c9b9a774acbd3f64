//! Resets a connection after it has run unproven code, before anything else runs on it.
//!
//! The reset covers settings, role, locks and temporary tables. It cannot remove a custom setting
//! (`app.tenant`): PostgreSQL keeps its name for the whole session, where it reads as an empty text
//! instead of NULL or an error. If code in the database could define such a setting, the connection
//! is replaced before the next segment runs, even within one batch.

use std::sync::Arc;

use windrow_core::{Fault, Tally};
use windrow_pgwire::wire::{Broken, Wire};

use crate::executor::batch::Batch;
use crate::executor::segment::Segment;
use crate::executor::send::RESET;
use crate::server::Server;

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

/// The means to reset a session after unproven code.
#[derive(Default)]
pub(super) struct Renewal {
    /// SQL that a new session of this kind runs first.
    pub(super) restore: Box<str>,
    /// The server that gives another connection once this one may not be used any more.
    pub(super) server: Option<Arc<Server>>,
    /// True if code in the database could define settings; `None` if this batch has not asked yet.
    makes_up: Option<bool>,
}

/// The end of a renewal.
pub(super) enum RenewalEnd {
    /// The session is reset.
    Reset,
    /// The session of this connection takes the place of the other one.
    Replaced(Box<Wire>),
    /// No connection could be opened.
    Refused(Fault),
}

impl Renewal {
    /// Forgets the answer that an earlier batch has got.
    pub(super) fn begin(&mut self) {
        self.makes_up = None;
    }

    /// Cuts the segments of a round trip after the first unproven one, if code in the database
    /// could define settings.
    pub(super) async fn no_more_than_one_unproven(
        &mut self,
        wire: &mut Wire,
        batch: &Batch<'_>,
        (mut now, mut later): (Vec<Segment>, Vec<Segment>),
        tally: &mut Tally,
    ) -> Result<(Vec<Segment>, Vec<Segment>), Broken> {
        let first = now.iter().position(|segment| batch.is_unproven(segment));
        let Some(first) = first.filter(|first| first + 1 < now.len()) else {
            return Ok((now, later));
        };
        if self.makes_up(wire, tally).await? {
            later.splice(..0, now.split_off(first + 1));
        }
        Ok((now, later))
    }

    /// Returns true if code in this database could define settings. Asks the server at most once
    /// for each batch.
    async fn makes_up(&mut self, wire: &mut Wire, tally: &mut Tally) -> Result<bool, Broken> {
        if self.server.is_none() {
            return Ok(false);
        }
        if let Some(known) = self.makes_up {
            return Ok(known);
        }
        tally.round_trips += 1;
        let answer = wire.simple(MAKES_UP).await?;
        let no = answer.is_ok_and(|rows| {
            let mut cells = rows.into_iter().flatten();
            cells.next().flatten().as_deref() == Some("f")
        });
        self.makes_up = Some(!no);
        Ok(!no)
    }

    /// Resets the session of a connection, or opens another connection. `is_reset`: the reset has
    /// already been sent.
    pub(super) async fn renew(
        &mut self,
        wire: &mut Wire,
        is_reset: bool,
        tally: &mut Tally,
    ) -> Result<RenewalEnd, Broken> {
        if self.makes_up(wire, tally).await?
            && let Some(server) = &self.server
        {
            wire.take_leave().await;
            return Ok(match self.open(server).await {
                Ok(wire) => RenewalEnd::Replaced(Box::new(wire)),
                Err(fault) => RenewalEnd::Refused(fault),
            });
        }
        if !is_reset {
            let sql = format!("{RESET}{}", self.restore);
            tally.round_trips += 1;
            drop(wire.simple(&sql).await?);
        }
        Ok(RenewalEnd::Reset)
    }

    async fn open(&self, server: &Server) -> Result<Wire, Fault> {
        let (mut wire, _) = server.wire().await?;
        match wire.simple(&self.restore).await {
            Ok(answer) => answer.map(|_| wire).map_err(Fault::from),
            Err(broken) => Err(broken.unavailable()),
        }
    }
}
