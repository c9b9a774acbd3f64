//! A database without transactions, with Windrow's own tables in another one.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use windrow_bookkeeping::{Applied, ProgressRow};
use windrow_core::shape::ShapeParts;
use windrow_core::{
    Database, Executor, Fault, FaultClass, Key, Name, OnConflict, Op, Profile, Purpose, Report,
    Returning, Shape, Sink, TableName, Tally, Unit, UnitFault, Value, Verdict, Write, WriteDone,
};
use windrow_drain::Beside;

/// What either of the two was asked to do, in order: its name, and the tables of the unit.
type Asked = Arc<Mutex<Vec<(&'static str, Vec<String>)>>>;

/// Says what it was told to say of units, and success of all others.
struct Scripted {
    profile: Profile,
    asked: Asked,
    says: Arc<Mutex<Vec<Verdict>>>,
}

impl Scripted {
    fn new(name: &'static str, asked: &Asked, says: Vec<Verdict>) -> Arc<Self> {
        Arc::new(Self {
            profile: Profile {
                name,
                transactional: false,
                flights: 1,
                batch_rows: 10,
                limitations: &[],
            },
            asked: Arc::clone(asked),
            says: Arc::new(Mutex::new(says)),
        })
    }
}

#[async_trait]
impl Sink for Scripted {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    async fn connect(&self, _: Purpose) -> Result<Box<dyn Executor>, Fault> {
        Ok(Box::new(Connection {
            name: self.profile.name,
            asked: Arc::clone(&self.asked),
            says: Arc::clone(&self.says),
        }))
    }
}

#[async_trait]
impl Database for Scripted {
    async fn ping(&self) -> Result<(), Fault> {
        Ok(())
    }

    async fn primary_key(&self, table: &TableName) -> Result<Box<[Name]>, Fault> {
        match &*table.table {
            "keyless" => Ok(Box::default()),
            _ => Ok([Name::from("id")].into()),
        }
    }
}

struct Connection {
    name: &'static str,
    asked: Asked,
    says: Arc<Mutex<Vec<Verdict>>>,
}

#[async_trait]
impl Executor for Connection {
    async fn execute(&mut self, units: &[Unit]) -> Report {
        let mut verdicts = Vec::new();
        for unit in units {
            let tables = unit.writes().iter().map(|w| w.shape.table.to_string());
            let asked = (self.name, tables.collect());
            self.asked.lock().unwrap().push(asked);
            let mut says = self.says.lock().unwrap();
            verdicts.push(match says.is_empty() {
                true => {
                    let done = unit.writes().iter().map(|_| WriteDone::rows(1));
                    Verdict::Final(Ok(done.collect()))
                }
                false => says.remove(0),
            });
        }
        Report {
            verdicts,
            tally: Tally::default(),
            usable: true,
        }
    }
}

fn insert(table: &str, on_conflict: OnConflict, key: Key, row: [Value; 2]) -> Write {
    let shape = Shape::new(ShapeParts {
        op: Op::Insert,
        table: TableName::bare(table),
        columns: ["id", "v"].map(Name::from).into(),
        key,
        on_conflict,
        returning: Returning::Nothing,
    });
    Write::new(Arc::new(shape), row)
}

fn upsert(id: i64) -> Write {
    let row = [Value::Int(id), Value::Int(7)];
    insert("t", OnConflict::Update, Key::Primary, row)
}

fn refused(at: usize, class: FaultClass) -> Verdict {
    Verdict::Final(Err(UnitFault {
        at,
        ..Fault::new(class, "23514", "no").into()
    }))
}

/// Executes these writes behind those of the progress. Gives the verdict, and what was asked.
async fn run(
    writes: Vec<Write>,
    database: Vec<Verdict>,
    books: Vec<Verdict>,
) -> (Verdict, Vec<(&'static str, Vec<String>)>) {
    let asked = Asked::default();
    let database = Scripted::new("rows", &asked, database);
    let books = Scripted::new("books", &asked, books);
    let beside = Beside::new(database, books);
    let mut connection = beside.connect(Purpose::Batches).await.unwrap();
    let partition = ProgressRow {
        spool: "s".into(),
        number: 0,
    };
    let progress = partition.advance(Some(3), &Applied::at(5));
    let unit = Unit::of(progress.into_iter().chain(writes));
    let report = connection.execute(&[unit]).await;
    let verdict = report.verdicts.into_iter().next().unwrap();
    let asked = asked.lock().unwrap().clone();
    (verdict, asked)
}

fn rows(times: usize) -> Vec<(&'static str, Vec<String>)> {
    vec![("rows", vec!["t".to_owned()]); times]
}

#[tokio::test]
async fn the_progress_moves_behind_the_rows_and_in_one_transaction() {
    let (verdict, asked) = run(vec![upsert(1), upsert(2)], vec![], vec![]).await;
    let Verdict::Final(Ok(dones)) = verdict else {
        panic!("{verdict:?}")
    };
    assert_eq!(dones.len(), 4);
    let progress = vec!["windrow_progress".to_owned(); 2];
    assert_eq!(asked, [rows(2), vec![("books", progress)]].concat());
}

#[tokio::test]
async fn it_does_not_move_where_a_row_is_not_there() {
    let lost = || Fault::unavailable("lost");
    let unknown = || Verdict::Final(Err(Fault::unknown("nobody knows").into()));
    for (says, expected) in [
        (refused(0, FaultClass::Check), refused(3, FaultClass::Check)),
        (Verdict::RolledBack(lost()), Verdict::RolledBack(lost())),
    ] {
        let done = Verdict::Final(Ok([WriteDone::rows(1)].into_iter().collect()));
        let (verdict, asked) = run(vec![upsert(1), upsert(2)], vec![done, says], vec![]).await;
        assert_eq!((verdict, asked), (expected, rows(2)));
    }
    // What may pass is tried again before anything is said of a row that was refused.
    let says = vec![refused(0, FaultClass::Check), unknown()];
    let (verdict, _) = run(vec![upsert(1), upsert(2)], says, vec![]).await;
    let Verdict::Final(Err(failed)) = verdict else {
        panic!("{verdict:?}")
    };
    assert_eq!((failed.at, failed.fault.class), (3, FaultClass::Unknown));
    // The other database says which of its own was refused.
    let says = vec![refused(1, FaultClass::Unique)];
    let (verdict, _) = run(vec![upsert(1)], vec![], says).await;
    assert_eq!(verdict, refused(1, FaultClass::Unique));
}

#[tokio::test]
async fn what_cannot_be_done_twice_is_refused() {
    let row = || [Value::Int(1), Value::Int(7)];
    let by = |names: &[&str]| Key::Columns(names.iter().map(|name| Name::from(*name)).collect());
    for write in [
        insert("t", OnConflict::Error, Key::Primary, row()),
        insert("keyless", OnConflict::Update, Key::Primary, row()),
        insert("t", OnConflict::Update, by(&["other"]), row()),
        insert(
            "t",
            OnConflict::Ignore,
            by(&["id"]),
            [Value::Null, Value::Int(7)],
        ),
    ] {
        let (verdict, asked) = run(vec![write.clone()], vec![], vec![]).await;
        let Verdict::Final(Err(failed)) = verdict else {
            panic!("{verdict:?}")
        };
        assert_eq!((failed.at, &*failed.fault.code), (2, "0A000"), "{write:?}");
        assert_eq!(asked, []);
    }
}
