//! The command line of `move`.

use std::num::NonZero;

use clap::Args;
use windrow::moves::MoveSettings;
use windrow_core::Secret;

use crate::command::progress::{Progress, SummaryAs};
use crate::command::status_page::OnStatusPage;

/// Options of `move`.
#[derive(Clone, Args)]
#[command(
    after_help = "Exit status: 0 all rows are moved; 1 an error ended it; 2 the command line is wrong; \
3 it came to the end, and some rows went to the dead letters or stay because others refer to them; 130 it was interrupted. A signal is the way to end --follow: \
0 or 3 then, as at any other end. --dry-run ends as the move would, as far as names and tables tell.\nSee docs/move.md."
)]
pub(crate) struct Move {
    /// The database that holds the rows: postgres://USER@HOST:PORT/DATABASE, mysql://..,
    /// sqlite:PATH
    // The value may hold a password, so help does not show it.
    #[arg(long, value_name = "URL", env = "WINDROW_FROM", hide_env_values = true)]
    from: Secret,

    /// The table that they are in
    #[arg(long, value_name = "TABLE")]
    pub(super) source: String,

    /// The database that they go to (see `windrow databases`) [default: the same]
    #[arg(long, value_name = "URL", env = "WINDROW_TO", hide_env_values = true)]
    to: Option<Secret>,

    /// The table that they go to, with {column} where the value of a column belongs:
    /// final_{tenant}
    #[arg(long, value_name = "TABLE")]
    destination: String,

    /// The columns that tell the source's rows apart [default: its primary key]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    key: Option<Vec<String>>,

    /// The column that decides where a row goes [default: the one that the destination names]
    #[arg(long, value_name = "COLUMN")]
    route_by: Option<String>,

    /// Make destinations that are not there like the source
    #[arg(long)]
    create: bool,

    /// Move rows though deleting them from the source deletes or changes other rows: by foreign
    /// keys with ON DELETE CASCADE, SET NULL or SET DEFAULT, triggers and rules. Without it such a
    /// move is refused
    #[arg(long)]
    pub(super) delete_effects: bool,

    /// Most rows in one batch, which is one transaction [default: what suits the database]
    #[arg(long, value_name = "ROWS")]
    batch: Option<NonZero<usize>>,

    /// Connections that move at once; several processes may run at once, too [default: 1]
    #[arg(long, short, value_name = "N")]
    jobs: Option<NonZero<usize>>,

    /// Move only rows that meet a condition in the database's SQL; it is used as it is written,
    /// and trusted
    #[arg(long = "where", value_name = "SQL")]
    filter: Option<String>,

    /// Most rows to move [default: all]
    #[arg(long, value_name = "N")]
    limit: Option<u64>,

    /// Go on as rows arrive, until SIGINT or SIGTERM
    #[arg(long)]
    follow: bool,

    /// Say what would be moved, by destination, and change nothing
    #[arg(long, conflicts_with = "follow")]
    pub(super) dry_run: bool,

    /// Progress: one line on a terminal and lines elsewhere, lines, or nothing
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub(super) progress: Progress,

    #[command(flatten)]
    pub(super) on_status_page: OnStatusPage,

    /// Summary at the end
    #[arg(long, value_name = "HOW", default_value = "text")]
    pub(super) summary: SummaryAs,

    /// Level or filter of the log [default: warn]
    #[arg(long, value_name = "FILTER", env = "WINDROW_LOG")]
    pub(super) log: Option<String>,
}

impl Move {
    pub(super) fn follows(&self) -> bool {
        self.follow
    }

    /// True if rows can have destinations that do not exist, and then stay.
    pub(super) fn makes_no_tables(&self) -> bool {
        !self.create && self.destination.contains('{')
    }

    /// Of what, into what.
    pub(super) fn what(&self) -> String {
        format!("{} into {}", self.source, self.destination)
    }

    pub(super) fn settings(&self) -> MoveSettings {
        MoveSettings {
            to: self.to.clone(),
            key: self.key.clone(),
            route_by: self.route_by.clone(),
            create: self.create,
            batch_rows: self.batch,
            jobs: self.jobs,
            filter: self.filter.clone(),
            limit: self.limit,
            follow: self.follow,
            delete_effects: self.delete_effects,
            ..MoveSettings::new(self.from.clone(), &self.source, &self.destination)
        }
    }
}
