//! Logs in by the SASL mechanisms PLAIN (RFC 4616) and SCRAM (RFC 5802, 7677).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use kafka_protocol::messages::{SaslAuthenticateRequest, SaslHandshakeRequest};
use kafka_protocol::protocol::StrBytes;
use sha2::{Digest, Sha256, Sha512};

use crate::address::{Login, Mechanism};
use crate::failure::Failure;
use crate::wire::Wire;

/// The most rounds that a broker may ask for, because each takes time.
const MOST_ROUNDS: u32 = 1_000_000;

pub(crate) async fn log_in(wire: &mut Wire, login: &Login) -> Result<(), Failure> {
    let mechanism = StrBytes::from_static_str(login.mechanism.name());
    let handshake = SaslHandshakeRequest::default().with_mechanism(mechanism);
    let answer = wire.ask(&handshake, 1).await?;
    Failure::check(answer.error_code)?;
    let password = login.password.reveal();
    if login.mechanism == Mechanism::Plain {
        let shown = format!("\0{}\0{password}", login.user);
        return tell(wire, shown).await.map(drop);
    }
    let nonce = STANDARD.encode(rand::random::<[u8; 24]>());
    let user = login.user.replace('=', "=3D").replace(',', "=2C");
    let first = format!("n={user},r={nonce}");
    let challenge = tell(wire, format!("n,,{first}")).await?;
    let proved = match login.mechanism {
        Mechanism::Sha512 => prove::<Scram512>(password, &nonce, &first, &challenge),
        _ => prove::<Scram256>(password, &nonce, &first, &challenge),
    };
    let (proof, signature) = proved.map_err(Failure::lost)?;
    let answer = tell(wire, proof).await?;
    match answer.strip_prefix("v=") {
        Some(shown) if shown == signature => Ok(()),
        _ => Err(Failure::refused("it does not know the password itself")),
    }
}

async fn tell(wire: &mut Wire, shown: String) -> Result<String, Failure> {
    let request = SaslAuthenticateRequest::default().with_auth_bytes(Bytes::from(shown));
    let answer = wire.ask(&request, 1).await?;
    if answer.error_code != 0 {
        let why = answer.error_message.as_deref().unwrap_or("no reason given");
        return Err(Failure::refused(why));
    }
    let text = String::from_utf8(answer.auth_bytes.to_vec());
    text.map_err(|_| Failure::lost("its answer is not UTF-8"))
}

/// A hash for SCRAM.
trait Hash {
    fn hmac(key: &[u8], message: &[u8]) -> Vec<u8>;
    fn digest(message: &[u8]) -> Vec<u8>;
}

macro_rules! hash {
    ($name:ident, $digest:ty) => {
        struct $name;
        impl Hash for $name {
            fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
                // A key may have any length.
                let mac = <Hmac<$digest>>::new_from_slice(key);
                mac.map(|mac| mac.chain_update(message).finalize().into_bytes().to_vec())
                    .unwrap_or_default()
            }
            fn digest(message: &[u8]) -> Vec<u8> {
                <$digest>::digest(message).to_vec()
            }
        }
    };
}
hash!(Scram256, Sha256);
hash!(Scram512, Sha512);

/// Returns the last message of a client, and the answer that the broker must give.
fn prove<H: Hash>(
    password: &str,
    nonce: &str,
    first: &str,
    challenge: &str,
) -> Result<(String, String), &'static str> {
    let field = |name| {
        challenge
            .split(',')
            .find_map(|part| part.strip_prefix(name))
    };
    let both = field("r=").filter(|both| both.starts_with(nonce) && both.len() > nonce.len());
    let both = both.ok_or("its nonce does not continue ours")?;
    let salt = field("s=").and_then(|salt| STANDARD.decode(salt).ok());
    let salt = salt.ok_or("it sends no salt")?;
    let rounds = field("i=").and_then(|rounds| rounds.parse().ok());
    let rounds = rounds.filter(|rounds| (4096..=MOST_ROUNDS).contains(rounds));
    let rounds = rounds.ok_or("it asks for less than 4096 or more than 1000000 rounds")?;
    let salted = salted::<H>(password.as_bytes(), &salt, rounds);
    let client = H::hmac(&salted, b"Client Key");
    let last = format!("c=biws,r={both}");
    let told = format!("{first},{challenge},{last}");
    let signature = H::hmac(&H::digest(&client), told.as_bytes());
    let proof: Vec<u8> = client.iter().zip(&signature).map(|(a, b)| a ^ b).collect();
    let server = H::hmac(&H::hmac(&salted, b"Server Key"), told.as_bytes());
    Ok((
        format!("{last},p={}", STANDARD.encode(proof)),
        STANDARD.encode(server),
    ))
}

fn salted<H: Hash>(password: &[u8], salt: &[u8], rounds: u32) -> Vec<u8> {
    let mut round = H::hmac(password, &[salt, &[0, 0, 0, 1]].concat());
    let mut sum = round.clone();
    for _ in 1..rounds {
        round = H::hmac(password, &round);
        for (sum, byte) in sum.iter_mut().zip(&round) {
            *sum ^= byte;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677.
    #[test]
    fn a_password_is_proved_as_the_standard_says() {
        let nonce = "rOprNGfwEbeRWgbNEkqO";
        let first = format!("n=user,r={nonce}");
        let challenge = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                         s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let (last, server) = prove::<Scram256>("pencil", nonce, &first, challenge).unwrap();
        assert_eq!(
            last,
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
             p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        assert_eq!(server, "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
        let stranger = "r=another,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        assert!(prove::<Scram256>("pencil", nonce, &first, stranger).is_err());
    }
}
