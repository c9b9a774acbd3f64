//! One connection through the proxy: two directions that end together.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::net::TcpStream;

use super::control::Control;
use super::pump::{End, pump};
use super::{Builder, Direction};

/// Tells round trips apart: a client's burst followed by the server's.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// The client has sent something that the server has not begun to answer.
    asked: AtomicBool,
}

impl Turns {
    /// Bytes have been read that go this way; true where this is the beginning of an answer.
    pub(crate) fn answer_begins(&self, direction: Direction) -> bool {
        match direction {
            Direction::ToServer => {
                self.asked.store(true, Ordering::SeqCst);
                false
            }
            Direction::ToClient => self.asked.swap(false, Ordering::SeqCst),
        }
    }
}

/// Copies both ways until both sides have closed, one has failed, or it is cut.
pub(crate) async fn run(
    client: TcpStream,
    server: TcpStream,
    settings: &Builder,
    control: &Control,
    seed: u64,
) {
    client.set_nodelay(true).ok();
    server.set_nodelay(true).ok();
    let cut = control.cut_comes();
    let ended = copy_both(&client, &server, settings, control, seed);
    let end = tokio::select! {
        () = cut => End::Cut,
        end = ended => end,
    };
    if end == End::Cut {
        client.set_zero_linger().ok();
        server.set_zero_linger().ok();
    }
}

async fn copy_both(
    client: &TcpStream,
    server: &TcpStream,
    settings: &Builder,
    control: &Control,
    seed: u64,
) -> End {
    let turns = Turns::default();
    let out = pump(
        client,
        server,
        Direction::ToServer,
        settings.to_server.draws(seed),
        control,
        &turns,
    );
    let back = pump(
        server,
        client,
        Direction::ToClient,
        settings.to_client.draws(seed),
        control,
        &turns,
    );
    tokio::pin!(out, back);
    let (first, other_is_out) = tokio::select! {
        end = &mut out => (end, false),
        end = &mut back => (end, true),
    };
    match first {
        End::Cut => End::Cut,
        End::Closed if other_is_out => out.await,
        End::Closed => back.await,
    }
}
