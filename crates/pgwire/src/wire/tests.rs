//! The wire against real servers, hostile peers and made-up bytes.

mod authentication;
mod encryption;
mod framing;
mod hostile;
mod hosts;
mod loss;
mod peer;
mod pieces;
mod pipeline;
mod support;
