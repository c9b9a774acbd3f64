use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use windrow_core::{Fault, FaultClass};

use super::peer::{accept, listener, message, say, welcome};
use super::support::{TIMEOUT, connect, target};
use crate::wire::{Broken, Wire};

/// What a client says of a server that says these words at the start.
async fn start_with(words: Vec<u8>, hang_up: bool) -> Fault {
    let (listener, url) = listener().await;
    let (fault, ()) = tokio::join!(connect(&url), say(&listener, &words, hang_up));
    fault.map(drop).unwrap_err()
}

/// What an exchange says of a server that says these words after the start.
async fn go_on_with(words: Vec<u8>) -> Broken {
    let (listener, url) = listener().await;
    let talking = async {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut socket = accept(&listener).await;
        socket.write_all(&welcome()).await.unwrap();
        // The words come after the question, of which nothing may stay unread: that would reset the
        // connection.
        assert_eq!(socket.read_u8().await.unwrap(), b'Q');
        let len = socket.read_u32().await.unwrap();
        let mut question = vec![0; usize::try_from(len).unwrap() - 4];
        socket.read_exact(&mut question).await.unwrap();
        drop(socket.write_all(&words).await);
    };
    let asking = async {
        let mut wire = connect(&url).await.unwrap();
        let broken = wire.simple("select 1").await.unwrap_err();
        assert!(!wire.is_usable());
        broken
    };
    tokio::join!(asking, talking).0
}

#[tokio::test]
async fn a_start_that_makes_no_sense_is_refused() {
    for (words, expected) in [
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
            "announced a message",
        ),
        (vec![b'R', 0x7f, 0xff, 0xff, 0xff], "announced a message"),
        (vec![b'R', 0, 0, 0, 3], "announced a message"),
        (vec![b'R', 0xff, 0xff, 0xff, 0xff], "announced a message"),
        (message(b'R', &[0, 0]), "malformed"),
        (message(b'R', &[0, 0, 0, 99]), "not known"),
        (message(b'R', &[0, 0, 0, 5, 1]), "salt"),
        (message(b'R', &[0, 0, 0, 11]), "out of turn"),
        (message(b'R', &[0, 0, 0, 12]), "out of turn"),
        (message(b'R', b"\0\0\0\x0aSCRAM-SHA-9\0\0"), "SCRAM-SHA-256"),
        (message(b'Z', b"I"), "no place"),
        (message(b'D', &[0, 0]), "no place"),
        (message(b'E', b"Cno end"), "malformed"),
        (
            [message(b'R', &[0; 4]), message(b'K', &[0; 3])].concat(),
            "cancel key",
        ),
    ] {
        let fault = start_with(words.clone(), false).await;
        assert!(!fault.may_retry(), "{words:?}: {fault:?}");
        assert!(fault.message.contains(expected), "{words:?}: {fault:?}");
        assert!(!format!("{fault:?}").contains("secret"));
    }
}

#[tokio::test]
async fn a_start_that_ends_early_may_be_tried_again() {
    for words in [vec![], b"R\0\0".to_vec(), message(b'R', &[0; 4])] {
        let fault = start_with(words, true).await;
        assert_eq!(fault.class, FaultClass::Unavailable, "{fault}");
    }
}

#[tokio::test]
async fn a_server_that_cannot_prove_itself_is_not_believed() {
    let offer = message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0");
    let fault = start_with([offer, welcome()].concat(), false).await;
    assert!(fault.message.contains("proven"), "{fault}");
}

#[tokio::test]
async fn a_long_message_is_refused_at_the_start() {
    let words = message(b'S', &vec![b'x'; 100_000]);
    let fault = start_with(words, false).await;
    assert!(fault.message.contains("announced a message"), "{fault}");
}

#[tokio::test]
async fn answers_that_make_no_sense_break_the_connection() {
    for (words, expected) in [
        (vec![b'D', 0x7f, 0xff, 0xff, 0xff], "announced a message"),
        (vec![b'D', 0, 0, 0, 0], "announced a message"),
        (message(b'D', &[0, 9, 1]), "layout"),
        (message(b'Z', b""), "layout"),
        (message(b'~', b""), "layout"),
        (message(b'S', b"half"), "layout"),
        (message(b'N', b"half"), "layout"),
        (message(b'C', b"\xff\0"), "layout"),
        (message(b'D', &[0, 0])[..4].to_vec(), "closed"),
        (vec![], "closed"),
    ] {
        let broken = go_on_with(words.clone()).await;
        assert_eq!(broken.sent, 14);
        assert!(broken.cause.contains(expected), "{words:?}: {broken}");
    }
}

#[tokio::test]
async fn an_answer_that_nobody_asked_for_is_not_taken_for_another() {
    let (listener, url) = listener().await;
    let words = [
        welcome(),
        message(b'C', b"INSERT 0 1\0"),
        message(b'Z', b"I"),
    ]
    .concat();
    let asking = async {
        let mut wire = connect(&url).await.unwrap();
        wire.simple("insert").await.unwrap_err()
    };
    let (broken, ()) = tokio::join!(asking, say(&listener, &words, false));
    assert_eq!(broken.sent, 0);
    assert!(broken.cause.contains("not asked"), "{broken}");
}

#[tokio::test]
async fn a_server_that_does_not_read_is_noticed_when_it_closes() {
    let (listener, url) = listener().await;
    let deaf = async {
        use tokio::io::AsyncWriteExt;
        let mut socket = accept(&listener).await;
        socket.write_all(&welcome()).await.unwrap();
        // Some of it is in flight once the first byte can be read; the rest never fits.
        socket.peek(&mut [0]).await.unwrap();
        let fatal = b"SFATAL\0VFATAL\0C57P01\0Menough\0\0";
        socket.write_all(&message(b'E', fatal)).await.unwrap();
        socket.shutdown().await.unwrap();
        socket
    };
    let asking = async {
        let mut wire = connect(&url).await.unwrap();
        let sql = "x".repeat(50_000_000);
        wire.simple(&sql).await.unwrap_err()
    };
    let (broken, _socket) = tokio::join!(asking, deaf);
    assert!(broken.sent > 0 && broken.sent < 50_000_000);
    assert_eq!(broken.error.unwrap().message, "enough");
}

#[tokio::test]
async fn a_server_that_resets_the_connection_while_it_is_sent_to_is_noticed() {
    let (listener, url) = listener().await;
    let rude = async {
        use tokio::io::AsyncWriteExt;
        let mut socket = accept(&listener).await;
        socket.write_all(&welcome()).await.unwrap();
        socket.peek(&mut [0]).await.unwrap();
        // Closing with something unread resets the connection.
    };
    let asking = async {
        let mut wire = connect(&url).await.unwrap();
        wire.simple(&"x".repeat(50_000_000)).await.unwrap_err()
    };
    let (broken, ()) = tokio::join!(asking, rude);
    assert!(broken.sent > 0 && broken.sent < 50_000_000);
    assert!(broken.cause.contains("failed"), "{broken}");
}

#[test]
fn random_words_are_survived() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut runner = TestRunner::new(Config::with_cases(64));
    let words = proptest::collection::vec(any::<u8>(), 0..400);
    runner
        .run(&(words, any::<bool>()), |(words, started)| {
            runtime.block_on(async {
                if started {
                    // Random words that happen to be a whole, good answer are not to be expected.
                    go_on_with(words).await;
                } else {
                    start_with(words, true).await;
                }
            });
            Ok(())
        })
        .unwrap();
}

#[tokio::test]
async fn plain_text_behind_the_consent_to_tls_is_not_taken_for_encrypted() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (listener, url) = listener().await;
    let url = url.replace("disable", "require");
    let injecting = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = [0; 8];
        socket.read_exact(&mut request).await.unwrap();
        let words = [b"S".to_vec(), welcome()].concat();
        drop(socket.write_all(&words).await);
        socket
    };
    let target = target(&url);
    let (fault, _socket) = tokio::join!(Wire::connect(&target, &[], TIMEOUT), injecting);
    assert!(fault.unwrap_err().message.contains("TLS"));
}
