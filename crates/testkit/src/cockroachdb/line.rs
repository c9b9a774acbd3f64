//! One connection through the stand-in.

use std::sync::Arc;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::back::Back;
use super::front::Front;
use super::shared::{Fates, Troubles, Upstream};
use crate::pgclient::backend::{Message, split};

/// A question whether there is TLS, or GSSAPI's encryption.
const QUESTIONS: [u32; 2] = [80_877_103, 80_877_104];

/// Bytes that are read at once.
const CHUNK: usize = 64 * 1024;

/// No first packet is longer.
const LONGEST_STARTUP: u32 = 10_000;

/// Serves one connection until either side ends.
pub(super) async fn run(
    mut client: TcpStream,
    upstream: &Arc<Upstream>,
    troubles: &Troubles,
) -> Result<()> {
    client.set_nodelay(true)?;
    let first = startup(&mut client).await?;
    let mut server = TcpStream::connect(&upstream.address).await?;
    server.set_nodelay(true)?;
    server.write_all(&first).await?;
    let fates = Fates::default();
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let out = async {
        let mut front = Front::new(upstream, troubles, &fates);
        let mut input = Input::default();
        while let Some(message) = input.next(&mut from_client).await? {
            let bytes = front.pass(message).await?;
            to_server.write_all(&bytes).await?;
        }
        anyhow::Ok(())
    };
    let back = async {
        let mut back = Back::new(upstream, &fates);
        let mut input = Input::default();
        while let Some(message) = input.next(&mut from_server).await? {
            to_client.write_all(&back.pass(&message)).await?;
        }
        anyhow::Ok(())
    };
    // Whichever side ends first ends the other.
    tokio::select! {
        ended = out => ended,
        ended = back => ended,
    }
}

/// Returns the first packet after questions for encryption, with its length. Questions for
/// encryption are answered with no.
async fn startup(client: &mut TcpStream) -> Result<Vec<u8>> {
    loop {
        let length = client.read_u32().await?;
        anyhow::ensure!(
            (8..LONGEST_STARTUP).contains(&length),
            "a first packet of {length} bytes"
        );
        let mut packet = length.to_be_bytes().to_vec();
        packet.resize(usize::try_from(length)?, 0);
        let body = packet.get_mut(4..).context("a packet without a body")?;
        client.read_exact(body).await?;
        let code = body
            .first_chunk::<4>()
            .map(|code| u32::from_be_bytes(*code));
        if !code.is_some_and(|code| QUESTIONS.contains(&code)) {
            return Ok(packet);
        }
        client.write_all(b"N").await?;
    }
}

/// Messages of one direction.
#[derive(Default)]
struct Input {
    read: Vec<u8>,
    taken: usize,
}

impl Input {
    async fn next(&mut self, from: &mut (impl AsyncReadExt + Unpin)) -> Result<Option<Message>> {
        loop {
            if let Some((message, length)) = split(self.read.get(self.taken..).unwrap_or_default())?
            {
                self.taken += length;
                return Ok(Some(message));
            }
            self.read.drain(..self.taken);
            self.taken = 0;
            self.read.reserve(CHUNK);
            if from.read_buf(&mut self.read).await? == 0 {
                return Ok(None);
            }
        }
    }
}
