//! One connection through the proxy: two directions that end together.

use tokio::net::TcpStream;

use super::control::Control;
use super::delay::Delay;
use super::direction::Direction;
use super::pump::{End, pump};
use super::turns::Turns;

/// How long bytes take each way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delays {
    pub(crate) to_server: Delay,
    pub(crate) to_client: Delay,
}

/// Copies both ways until both sides have closed, one has failed, or it is cut.
pub(crate) async fn run(
    client: TcpStream,
    server: TcpStream,
    delays: Delays,
    control: &Control,
    seed: u64,
) {
    client.set_nodelay(true).ok();
    server.set_nodelay(true).ok();
    let cut = control.cut_comes();
    let ended = copy_both(&client, &server, delays, control, seed);
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
    delays: Delays,
    control: &Control,
    seed: u64,
) -> End {
    let turns = Turns::default();
    let out = pump(
        client,
        server,
        Direction::ToServer,
        delays.to_server.draws(seed),
        control,
        &turns,
    );
    let back = pump(
        server,
        client,
        Direction::ToClient,
        delays.to_client.draws(seed),
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
