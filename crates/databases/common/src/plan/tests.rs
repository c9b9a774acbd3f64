use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
struct Sample {
    group: u32,
    new_unit: bool,
    source: Option<u32>,
    free: bool,
    bonds: Option<Bonds>,
    keys: Vec<u64>,
    fence: Fence,
}

/// Groups 0..6: table is group / 2, group 5 only reads.
fn sample() -> impl Strategy<Value = Sample> {
    let fence = prop_oneof![
        8 => Just(Fence::None),
        1 => Just(Fence::Table),
        1 => Just(Fence::All)
    ];
    let bonds = prop::option::of(prop_oneof![
        Just(Bonds::Both),
        Just(Bonds::Refers),
        Just(Bonds::Referred),
        Just(Bonds::Neither)
    ]);
    (
        0..6_u32,
        prop::bool::weighted(0.8),
        (prop::option::of(0..4_u32), any::<bool>(), bonds),
        prop::collection::vec(0..8_u64, 0..3),
        fence,
    )
        .prop_map(
            |(group, new_unit, (source, free, bonds), keys, fence)| Sample {
                group,
                new_unit,
                source,
                free,
                bonds,
                keys: keys
                    .into_iter()
                    .map(|k| k + 100 * u64::from(group / 2))
                    .collect(),
                fence,
            },
        )
}

fn items(samples: &[Sample]) -> Vec<Item<'_>> {
    let (mut unit, mut source) = (0, None);
    samples
        .iter()
        .map(|s| {
            unit += u32::from(s.new_unit);
            // A unit has one source.
            source = if s.new_unit { s.source } else { source };
            Item {
                group: s.group,
                unit,
                source,
                table: s.group / 2,
                keys: &s.keys,
                reads: s.group == 5,
                fence: s.fence,
                free: s.free,
                bonds: s.bonds,
            }
        })
        .collect()
}

fn place_of_each(steps: &[Step], count: usize) -> Vec<usize> {
    let mut places = vec![usize::MAX; count];
    for (number, step) in steps.iter().enumerate() {
        for item in &step.items {
            assert_eq!(places[*item as usize], usize::MAX, "placed twice");
            places[*item as usize] = number;
        }
    }
    assert!(places.iter().all(|p| *p != usize::MAX), "left out");
    places
}

fn may_change_places(a: &Item<'_>, b: &Item<'_>) -> bool {
    use Bonds::{Neither, Referred, Refers};
    let apart = matches!(
        (a.bonds, b.bonds),
        (Some(Refers), Some(Refers))
            | (Some(Referred), Some(Referred))
            | (Some(Neither), Some(_))
            | (Some(_), Some(Neither))
    );
    match a.table == b.table {
        true => a.free && b.free && a.bonds.is_some() && b.bonds.is_some(),
        false => apart,
    }
}

fn check_pair(a: &Item<'_>, b: &Item<'_>, step_a: usize, step_b: usize) {
    let share = a.keys.iter().any(|k| b.keys.contains(k));
    if share && !(a.reads && b.reads) {
        assert!(step_a < step_b, "order of one row");
    }
    if a.unit == b.unit && !may_change_places(a, b) {
        assert!(step_a <= step_b, "order within a unit");
    }
    let free = a.free && b.free && a.table == b.table;
    if a.source.is_some() && a.source == b.source && !free {
        assert!(step_a <= step_b, "order within a source");
    }
    let fence = a.fence.max(b.fence);
    let meets = fence == Fence::All || (fence == Fence::Table && a.table == b.table);
    if meets && a.group != b.group {
        assert!(step_a < step_b, "order at a fence");
    }
}

proptest! {
    #[test]
    fn keeps_every_promise(samples in prop::collection::vec(sample(), 0..60)) {
        let items = items(&samples);
        let steps = plan(items.iter().copied());
        let places = place_of_each(&steps, items.len());
        for step in &steps {
            assert!(step.items.is_sorted());
            assert!(step.items.iter().all(|i| items[*i as usize].group == step.group));
        }
        for (i, a) in items.iter().enumerate() {
            for (j, b) in items.iter().enumerate().skip(i + 1) {
                check_pair(a, b, places[i], places[j]);
            }
        }
    }
}

fn item(group: u32, unit: u32, keys: &[u64]) -> Item<'_> {
    Item {
        group,
        unit,
        source: None,
        table: 0,
        keys,
        reads: false,
        fence: Fence::None,
        free: false,
        bonds: None,
    }
}

#[test]
fn scattered_writes_of_one_group_are_one_step() {
    let keys: Vec<u64> = (0..100).collect();
    let batch = keys.iter().enumerate().map(|(n, key)| {
        let n = u32::try_from(n).unwrap();
        item(n % 2, n, std::slice::from_ref(key))
    });
    let steps = plan(batch);
    assert_eq!(steps.len(), 2);
    assert_eq!(steps[0].items.len(), 50);
}

#[test]
fn a_repeated_key_opens_a_step_and_the_next_ones_join_the_first() {
    let steps = plan([
        item(0, 0, &[1]),
        item(0, 1, &[1]),
        item(0, 2, &[2]),
        item(0, 3, &[1]),
    ]);
    let items: Vec<_> = steps.iter().map(|s| s.items.clone()).collect();
    assert_eq!(items, [vec![0, 2], vec![1], vec![3]]);
}

#[test]
fn a_source_whose_writes_alternate_keeps_its_order() {
    let of = |group, unit, source| Item {
        source,
        ..item(group, unit, &[])
    };
    let steps = plan([
        of(0, 0, Some(0)),
        of(0, 1, None),
        of(1, 2, Some(0)),
        of(0, 3, Some(0)),
        of(0, 4, None),
        of(1, 5, Some(1)),
        of(1, 6, Some(1)),
    ]);
    let items: Vec<_> = steps.iter().map(|s| s.items.clone()).collect();
    assert_eq!(items, [vec![0, 1, 4], vec![2, 5, 6], vec![3]]);
}

#[test]
fn free_writes_of_one_table_change_places_within_their_source() {
    let keys: Vec<u64> = (0..100).collect();
    let batch = keys.iter().enumerate().map(|(n, key)| {
        let n = u32::try_from(n).unwrap();
        Item {
            source: Some(0),
            free: true,
            ..item(n % 2, n, std::slice::from_ref(key))
        }
    });
    assert_eq!(plan(batch).len(), 2);
    let of = |group, unit, table, free| Item {
        source: Some(0),
        table,
        free,
        ..item(group, unit, &[])
    };
    let steps = plan([
        of(0, 0, 0, true),
        of(1, 1, 1, true),
        of(0, 2, 0, true),
        of(1, 3, 1, false),
        of(1, 4, 1, true),
    ]);
    let items: Vec<_> = steps.iter().map(|s| s.items.clone()).collect();
    assert_eq!(items, [vec![0], vec![1], vec![2], vec![3, 4]]);
}

#[test]
fn writes_of_a_unit_to_tables_that_nothing_joins_become_one_step_for_each_table() {
    let unit = |bonds: [Option<Bonds>; 2]| {
        let items = (0..100_u32).map(move |n| Item {
            table: n % 2,
            bonds: bonds[n as usize % 2],
            ..item(n % 2, 7, &[])
        });
        plan(items).len()
    };
    assert_eq!(unit([Some(Bonds::Refers), Some(Bonds::Refers)]), 2);
    assert_eq!(unit([Some(Bonds::Referred), Some(Bonds::Referred)]), 2);
    assert_eq!(unit([Some(Bonds::Both), Some(Bonds::Neither)]), 2);
    for joined in [
        [Some(Bonds::Refers), Some(Bonds::Referred)],
        [Some(Bonds::Both), Some(Bonds::Refers)],
        [Some(Bonds::Both), Some(Bonds::Both)],
        [Some(Bonds::Refers), None],
        [None, None],
    ] {
        assert_eq!(unit(joined), 100, "{joined:?}");
    }
}

#[test]
fn free_writes_of_a_unit_change_places_within_their_table() {
    let steps = |free, bonds| {
        let items = (0..100_u32).map(move |n| Item {
            free,
            bonds,
            ..item(n % 2, 7, &[])
        });
        plan(items).len()
    };
    assert_eq!(steps(true, Some(Bonds::Both)), 2);
    assert_eq!(steps(false, Some(Bonds::Neither)), 100);
    assert_eq!(steps(true, None), 100);
}
