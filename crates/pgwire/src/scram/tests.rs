use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
use postgres_protocol::password::scram_sha_256;
use proptest::prelude::*;

use super::*;

fn verifier(password: &str) -> Verifier {
    scram_sha_256(password.as_bytes()).parse().unwrap()
}

fn binding() -> Vec<u8> {
    b"hash of a certificate".to_vec()
}

/// A client of somebody else's making against our server.
fn log_in(
    password: &str,
    server: Server,
    with: ChannelBinding,
    mechanism: Mechanism,
) -> Result<Keys, ScramError> {
    let mut client = ScramSha256::new(password.as_bytes(), with);
    let (begun, challenge) = server.begin(mechanism, client.message())?;
    client.update(challenge.as_bytes()).unwrap();
    let (last, keys) = begun.finish(client.message())?;
    client.finish(last.as_bytes()).unwrap();
    Ok(keys)
}

/// Our client from keys against our server.
fn pass_through(
    keys: Keys,
    server: Server,
    gs2: &'static str,
    data: Vec<u8>,
    mechanism: Mechanism,
) -> Result<(), ScramError> {
    let mut client = KeyClient::new(keys, gs2, data);
    let (begun, challenge) = server.begin(mechanism, client.first().as_bytes())?;
    let proof = client.prove(challenge.as_bytes()).unwrap();
    let (last, _) = begun.finish(proof.as_bytes())?;
    assert!(client.is_proven(last.as_bytes()));
    assert!(!client.is_proven(b"v=AAAA"));
    Ok(())
}

#[test]
fn the_example_of_rfc_7677() {
    // User `user`, password `pencil`.
    let verifier: Verifier = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
        .parse()
        .unwrap();
    let (begun, challenge) = Server::new(verifier, true, None)
        .begin_with(
            Mechanism::Plain,
            b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
            "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
        )
        .unwrap();
    assert_eq!(
        challenge,
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    );
    let (last, _) = begun
        .finish(b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
        .unwrap();
    assert_eq!(last, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
}

#[test]
fn the_keys_that_a_proof_gives_away_open_whoever_has_the_verifier() {
    let kept = verifier("pa:ss@wörd");
    let server = || Server::new(kept.clone(), true, None);
    let bound = || Server::new(kept.clone(), true, Some(binding()));
    let keys = log_in(
        "pa:ss@wörd",
        server(),
        ChannelBinding::unsupported(),
        Mechanism::Plain,
    )
    .unwrap();
    let again = log_in(
        "pa:ss@wörd",
        bound(),
        ChannelBinding::tls_server_end_point(binding()),
        Mechanism::Plus,
    );
    assert_eq!(again.as_ref(), Ok(&keys));
    pass_through(keys.clone(), server(), "n,,", Vec::new(), Mechanism::Plain).unwrap();
    pass_through(
        keys.clone(),
        bound(),
        "p=tls-server-end-point,,",
        binding(),
        Mechanism::Plus,
    )
    .unwrap();
    let other = Server::new(verifier("other"), true, None);
    assert_eq!(
        pass_through(keys.clone(), other, "n,,", Vec::new(), Mechanism::Plain),
        Err(ScramError::Denied)
    );
    assert!(!format!("{keys:?}{kept:?}").contains(char::is_numeric));
}

#[test]
fn nobody_else_comes_in() {
    let kept = verifier("right");
    let plain = |password: &str, known| {
        let server = Server::new(kept.clone(), known, None);
        log_in(
            password,
            server,
            ChannelBinding::unsupported(),
            Mechanism::Plain,
        )
        .err()
    };
    assert_eq!(plain("right", true), None);
    assert_eq!(plain("wrong", true), Some(ScramError::Denied));
    assert_eq!(plain("right", false), Some(ScramError::Denied));
    let bound = |with, mechanism| {
        let server = Server::new(kept.clone(), true, Some(binding()));
        log_in("right", server, with, mechanism).err()
    };
    // The offer of channel binding was taken away on the way.
    assert_eq!(
        bound(ChannelBinding::unrequested(), Mechanism::Plain),
        Some(ScramError::Negotiation)
    );
    assert_eq!(
        bound(
            ChannelBinding::tls_server_end_point(b"other".to_vec()),
            Mechanism::Plus
        ),
        Some(ScramError::Binding)
    );
    assert_eq!(bound(ChannelBinding::unsupported(), Mechanism::Plain), None);
}

#[test]
fn a_decoy_is_the_same_each_time() {
    let secret = [7; 32];
    assert_eq!(Verifier::decoy(&secret, "a"), Verifier::decoy(&secret, "a"));
    assert_ne!(
        Verifier::decoy(&secret, "a").salt,
        Verifier::decoy(&secret, "b").salt
    );
    assert_eq!(
        Verifier::decoy(&secret, "a").salt.len(),
        verifier("x").salt.len()
    );
    assert_eq!(
        Verifier::decoy(&secret, "a").iterations,
        verifier("x").iterations
    );
}

#[test]
fn what_is_no_verifier_is_refused() {
    let md5 = format!("md5{}", "0".repeat(32));
    assert_eq!(md5.parse::<Verifier>(), Err(BadVerifier::Md5));
    for text in [
        "",
        "secret",
        "SCRAM-SHA-256$4096:AAAA",
        "SCRAM-SHA-256$0:AAAA$AAAA:AAAA",
        "SCRAM-SHA-256$4096:AAAA$AAAA:AAAA",
        "SCRAM-SHA-256$4096:$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=",
    ] {
        assert_eq!(
            text.parse::<Verifier>(),
            Err(BadVerifier::Malformed),
            "{text}"
        );
    }
}

#[test]
fn messages_out_of_the_grammar_are_refused() {
    for (mechanism, first) in [
        (Mechanism::Plain, "n"),
        (Mechanism::Plain, "n,"),
        (Mechanism::Plain, "n,,"),
        (Mechanism::Plain, "n,,n=u"),
        (Mechanism::Plain, "n,,n=u,r="),
        (Mechanism::Plain, "n,,r=abc"),
        (Mechanism::Plain, "n,,m=x,n=u,r=abc"),
        (Mechanism::Plain, "n,a=me,n=u,r=abc"),
        (Mechanism::Plain, "x,,n=u,r=abc"),
        (Mechanism::Plain, "p=tls-server-end-point,,n=u,r=abc"),
        (Mechanism::Plus, "p=tls-server-end-point,,n=u,r=abc"),
        (Mechanism::Plus, "p=tls-unique,,n=u,r=abc"),
        (Mechanism::Plus, "n,,n=u,r=abc"),
    ] {
        let server = Server::new(verifier("x"), true, None);
        let error = server.begin(mechanism, first.as_bytes()).err();
        assert!(
            error.is_some_and(|error| error != ScramError::Denied),
            "{first}"
        );
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(first in "[npy=,ra-c]{0,20}", last in "[cprv=,bisw]{0,30}", raw: Vec<u8>) {
        let server = || Server::new(Verifier::decoy(&[1; 32], "u"), true, None);
        prop_assert!(server().begin(Mechanism::Plain, &raw).is_err() || raw.starts_with(b"n,"));
        if let Ok((begun, _)) = server().begin(Mechanism::Plain, first.as_bytes()) {
            prop_assert!(begun.finish(last.as_bytes()).is_err());
        }
        let mut client = KeyClient::new(Keys::new([1; 32], [2; 32]), "n,,", Vec::new());
        prop_assert!(client.prove(&raw).is_none());
        prop_assert!(!client.is_proven(&raw));
    }
}
