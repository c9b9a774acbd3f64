use std::path::Path;

/// Tries what was kept for a target: inputs of many kinds, and those that once did harm.
pub(crate) fn each(target: &str, trial: fn(&[u8])) {
    let below = Path::new("fuzz/corpus").join(target);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.ancestors().map(|folder| folder.join(&below));
    let folder = folder.into_iter().find(|folder| folder.is_dir()).unwrap();
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        // The name stands in the test's output, should it be the last one.
        println!("{}", path.display());
        trial(&std::fs::read(path).unwrap());
        count += 1;
    }
    assert!(count > 5, "{} is nearly empty", folder.display());
}
