//! PostgreSQL.

use windrow_testkit::pgclient::Address;
use windrow_testkit::postgres::Postgres;

use super::bed::Bed;
use super::program;
use super::world::Direct;
use crate::cases::DEFAULT_CASES;
use crate::postgres::catalog::{Catalog, OTHER_ROLE, ROLE, catalogs};
use crate::postgres::play::Session;
use crate::record::Line;

#[test]
fn postgresql_rows_over_http_are_told_what_some_order_tells() {
    let server = Postgres::start().unwrap();
    let roles =
        format!("create role {ROLE} login; create role {OTHER_ROLE}; grant {OTHER_ROLE} to {ROLE}");
    server.exec(&roles).unwrap();
    let open = || {
        let owner = Address::of(&server.create_database().unwrap()).unwrap();
        let client = Address {
            role: ROLE.into(),
            ..owner.clone()
        };
        (Session::open(&owner).unwrap(), client.url())
    };
    let ((tried, tried_url), (judged, judged_url)) = (open(), open());
    let bed = Bed::before((tried, &tried_url), (judged, &judged_url));
    super::check(bed, catalogs(), &["fused", "grouped"], DEFAULT_CASES / 2);
}

impl program::Catalog for Catalog {
    fn making(&self, name: &str) -> Vec<String> {
        vec![self.sql(name)]
    }

    fn renewal(&self, name: &str) -> Vec<String> {
        vec![Self::renewal(self, name, false)]
    }

    fn removal(&self, name: &str) -> Vec<String> {
        vec![format!("drop schema {name} cascade")]
    }

    fn reading(&self, name: &str) -> Vec<String> {
        vec![Self::reading(self, name)]
    }

    fn table(&self, name: &str, neighbour: bool) -> String {
        format!("{name}.{}", if neighbour { "b" } else { self.target() })
    }

    fn reference(&self) -> Option<&'static str> {
        Self::reference(self)
    }

    fn is_sticky(&self) -> bool {
        Self::is_sticky(self)
    }
}

impl Direct for Session {
    fn run(&mut self, statements: &[String]) -> bool {
        !statements.iter().any(|sql| self.refuses(sql))
    }

    fn rows(&mut self, queries: &[String]) -> Vec<Line> {
        queries
            .iter()
            .flat_map(|sql| Self::rows(self, sql))
            .collect()
    }

    fn part(&mut self) {
        let others = format!(
            "select 1 from pg_stat_activity where datname = current_database() and usename = '{ROLE}'"
        );
        while !Self::rows(self, &others).is_empty() {
            std::thread::yield_now();
        }
    }
}
