//! Work on long texts that keeps no other client of its thread waiting.
//!
//! The readers of `windrow-sql` come here with every text, so their callers need not.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// The longest text that is read while the other tasks of its thread wait, in bytes.
const MAX_SHORT_BYTES: usize = 16 * 1024;

/// Runs what reads a text of this length. If the text is long, another thread goes on with the
/// tasks of this one meanwhile.
pub fn read<T>(bytes: usize, reads: impl FnOnce() -> T) -> T {
    let has_stand_in = || {
        let runtime = Handle::try_current();
        runtime.is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
    };
    if bytes > MAX_SHORT_BYTES && has_stand_in() {
        block_in_place(reads)
    } else {
        reads()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn other_tasks_go_on_while_a_long_text_is_read() {
        let mut runtime = Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).build().unwrap();
        let reading = runtime.spawn(async {
            let (sender, receiver) = mpsc::channel();
            let other = tokio::spawn(async move { sender.send(1).unwrap() });
            // Ends only if the other task runs in the same moment. One reader calls another.
            let inner = || read(MAX_SHORT_BYTES + 1, || receiver.recv().unwrap());
            let read = read(MAX_SHORT_BYTES + 1, inner);
            other.await.unwrap();
            read
        });
        assert_eq!(runtime.block_on(reading).unwrap(), 1);
    }

    #[tokio::test]
    async fn a_runtime_of_one_thread_reads_long_texts_too() {
        assert_eq!(read(MAX_SHORT_BYTES + 1, || 1), 1);
        assert_eq!(read(0, || 2), 2);
    }
}
