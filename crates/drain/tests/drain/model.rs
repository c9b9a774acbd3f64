//! Random entries, random faults, random ends of the drain: in the end every entry is in the tables
//! or among the dead letters, once and in order.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use windrow_core::Value;
use windrow_drain::Options;

use crate::fake::{Kind, Random, World, entry_on, kind_of};

/// What was put into the spool: the writes of each entry.
type Entries = Vec<Vec<Kind>>;

fn push(world: &World, random: &mut Random, entries: &mut Entries, bad: u64) {
    let kind = |random: &mut Random| match random.below(100) {
        n if n >= bad => Kind::Good,
        n => [
            Kind::Late,
            Kind::LateKey,
            Kind::Bad,
            Kind::Bad,
            Kind::Conflict,
            Kind::Slow,
        ][n as usize % 6],
    };
    let writes = match random.below(10) {
        0 => random.below(4),
        _ => 1,
    };
    let kinds: Vec<_> = (0..writes).map(|_| kind(random)).collect();
    let table = ["t", "u", "t", "apart"][random.below(4) as usize];
    world.log.push(entry_on(table, entries.len(), &kinds));
    entries.push(kinds);
}

fn options(random: &mut Random) -> Options {
    Options {
        memory: 1 << (8 + random.below(12)),
        unit_bytes: 1 << (8 + random.below(12)),
        first_entries: 1 + random.below(40) as usize,
        // Longer than chance keeps a good entry from being applied.
        refuse_after: Duration::from_secs(20),
        ..Options::default()
    }
}

/// Lets a drain run for a while and ends it somehow: told to stop, or at once, wherever it is.
async fn run_for_a_while(world: &World, random: &mut Random) {
    let (drain, _registry) = world.drain(options(random));
    let stop = CancellationToken::new();
    let limit = Duration::from_millis(random.below(2_000));
    let told = random.below(3) == 0;
    let stopper = stop.clone();
    let ending = async {
        sleep(limit).await;
        stopper.cancel();
        // Somebody who does not wait for the end.
        if !told {
            return;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = drain.run(stop) => {}
        () = ending => {}
    }
}

/// Now and then the database loses what it has committed within the last seconds.
fn crash_sometimes(world: &World, random: &mut Random) {
    let mut state = world.database.state();
    match random.below(6) {
        0 => {
            let is_recent = |(at, _): &(Instant, _)| at.elapsed() < Duration::from_secs(6);
            state.synced = state.synced.take().filter(is_recent);
            state.crash();
        }
        1 | 2 => state.synced = Some((Instant::now(), state.tables.clone())),
        _ => {}
    }
}

fn check(world: &World, entries: &Entries, what: &str) {
    let tables = world.tables();
    let (mut rows, mut sources) = (Vec::new(), Vec::new());
    for (number, kinds) in entries.iter().enumerate() {
        match kind_of(kinds) {
            Kind::Good => rows.extend((0..kinds.len()).map(|place| (number as i64, place as i64))),
            _ => sources.push(Value::text(format!(
                "spool 0000000000000000000000000000004d partition 0 position {number}"
            ))),
        }
    }
    assert_eq!(tables.rows, rows, "{what}");
    let found: Vec<_> = tables.letters.iter().map(|row| row[0].clone()).collect();
    assert_eq!(found, sources, "{what}");
    assert_eq!(tables.position(), Some(entries.len() as u64), "{what}");
}

async fn play(seed: u64, drains: usize) {
    let mut random = Random(seed);
    let world = World::new();
    let mut entries = Entries::new();
    let bad = [0, 3, 30][random.below(3) as usize];
    {
        let mut state = world.database.state();
        state.random = Random(seed ^ 0xabcd);
        state.faults.often = [0, 5, 40][random.below(3) as usize];
        state.faults.slow = [0, 5, 50][random.below(3) as usize];
    }
    for _ in 0..2 + random.below(6) {
        for _ in 0..random.below(60) {
            push(&world, &mut random, &mut entries, bad);
        }
        let mut others = Vec::new();
        for number in 1..drains {
            let (world, mut random) = (world.clone(), Random(random.next() ^ number as u64));
            others.push(tokio::spawn(async move {
                run_for_a_while(&world, &mut random).await;
            }));
        }
        run_for_a_while(&world, &mut random).await;
        for other in others {
            other.await.unwrap();
        }
        crash_sometimes(&world, &mut random);
    }
    push(&world, &mut random, &mut entries, 0);
    finish(&world, &mut random, drains, &entries, seed).await;
}

/// Without faults from now on, it comes to its end.
async fn finish(world: &World, random: &mut Random, drains: usize, entries: &Entries, seed: u64) {
    world.database.state().faults.often = 0;
    let running: Vec<_> = (0..drains)
        .map(|_| world.start_with(options(random)))
        .collect();
    for drain in &running {
        let end = drain.end();
        let applied = drain.progress.applied(&end);
        let within = timeout(Duration::from_secs(3_600), applied).await;
        within.expect("it takes for ever").unwrap();
    }
    for drain in running {
        drain.stop().await;
    }
    check(world, entries, &format!("seed {seed}, {drains} drains"));
}

fn seeds() -> u64 {
    let wanted = std::env::var("WINDROW_DRAIN_SEEDS").ok();
    wanted.and_then(|seeds| seeds.parse().ok()).unwrap_or(150)
}

#[tokio::test(start_paused = true)]
async fn every_entry_is_applied_once_by_one_drain() {
    for seed in 0..seeds() {
        play(seed, 1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_entry_is_applied_once_by_two_drains() {
    for seed in 0..seeds() {
        play(seed ^ 0x5eed_0000, 2).await;
    }
}
