//! A database whose rows have a key of another name: rules say `id`, the database hears and says
//! its own.
//!
//! It also has no columns of its own: whoever asks for a whole row asks for those that the table
//! was laid with.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use windrow_core::shape::ShapeParts;
use windrow_core::sink::Purpose;
use windrow_core::{
    Database, Executor, Fault, Key, Name, Profile, Report, Returned, Returning, Shape, Sink, Unit,
    Value, Verdict, Write,
};

use crate::words::Table;

/// The tables that were laid, by name.
pub(crate) type Laid = Arc<Mutex<HashMap<String, Table>>>;

/// What rules call the key.
const ID: &str = "id";

/// How names are changed on the way in and out.
#[derive(Clone)]
pub(crate) struct Keyed {
    /// What the database calls the key.
    pub(crate) key: &'static str,
    pub(crate) laid: Laid,
}

/// A sink that is spoken to in the words of the rules.
pub(crate) struct KeyedSink {
    pub(crate) inner: Arc<dyn Database>,
    pub(crate) keyed: Keyed,
}

struct KeyedExecutor {
    inner: Box<dyn Executor>,
    keyed: Keyed,
}

impl Keyed {
    fn name(&self, name: &Name) -> Name {
        match &**name {
            ID => self.key.into(),
            _ => name.clone(),
        }
    }

    fn names(&self, names: &[Name]) -> Box<[Name]> {
        names.iter().map(|name| self.name(name)).collect()
    }

    fn shape(&self, shape: &Shape) -> Arc<Shape> {
        let laid = self.laid.lock().unwrap();
        let returning = match (&shape.returning, laid.get(&*shape.table.table)) {
            (Returning::All, Some(table)) => {
                let names = table.columns.iter().map(|column| Name::from(column.name));
                Returning::Columns(self.names(&names.collect::<Vec<_>>()))
            }
            (Returning::Columns(names), _) => Returning::Columns(self.names(names)),
            (other, _) => other.clone(),
        };
        Arc::new(Shape::new(ShapeParts {
            op: shape.op,
            table: shape.table.clone(),
            columns: self.names(&shape.columns),
            key: match &shape.key {
                Key::Primary => Key::Primary,
                Key::Columns(names) => Key::Columns(self.names(names)),
            },
            on_conflict: shape.on_conflict,
            returning,
        }))
    }

    fn units(&self, units: &[Unit]) -> Vec<Unit> {
        let write = |write: &Write| Write::new(self.shape(&write.shape), write.row());
        let units = units.iter();
        units
            .map(|unit| Unit::of(unit.writes().iter().map(write)))
            .collect()
    }

    /// Keys of digits are the numbers that were given.
    fn back(&self, returned: &mut Returned) {
        let key = returned.columns.iter().position(|name| **name == *self.key);
        let Some(key) = key else { return };
        let names = returned.columns.iter().enumerate();
        returned.columns = names
            .map(|(at, name)| if at == key { ID.into() } else { name.clone() })
            .collect();
        for row in &mut returned.rows {
            if let Value::Text(text) = &row[key]
                && let Ok(number) = text.parse::<i64>()
            {
                row[key] = number.into();
            }
        }
    }
}

#[async_trait]
impl Sink for KeyedSink {
    fn profile(&self) -> &Profile {
        self.inner.profile()
    }

    async fn connect(&self, purpose: Purpose) -> Result<Box<dyn Executor>, Fault> {
        Ok(Box::new(KeyedExecutor {
            inner: self.inner.connect(purpose).await?,
            keyed: self.keyed.clone(),
        }))
    }
}

#[async_trait]
impl Database for KeyedSink {
    async fn ping(&self) -> Result<(), Fault> {
        self.inner.ping().await
    }
}

#[async_trait]
impl Executor for KeyedExecutor {
    async fn execute(&mut self, units: &[Unit]) -> Report {
        let mut report = self.inner.execute(&self.keyed.units(units)).await;
        for verdict in &mut report.verdicts {
            let Verdict::Final(Ok(dones)) = verdict else {
                continue;
            };
            let returned = dones.iter_mut().filter_map(|done| done.returned.as_mut());
            returned.for_each(|returned| self.keyed.back(returned));
        }
        report
    }

    async fn close(self: Box<Self>) {
        self.inner.close().await;
    }
}
