use proptest::prelude::*;
use windrow_core::FaultClass;

use super::*;

fn parse(url: &str) -> Target {
    Target::parse_with(url, &|_| None).unwrap()
}

fn refusal(url: &str) -> String {
    let fault = Target::parse_with(url, &|_| None).unwrap_err();
    assert_eq!(fault.class, FaultClass::Invalid, "{fault}");
    fault.to_string()
}

fn hosts(target: &Target) -> Vec<String> {
    target.hosts.iter().map(ToString::to_string).collect()
}

#[test]
fn every_part_is_decoded() {
    let target = parse(
        "postgresql://us%40er:p%2Fw%3A@db.example:6543/da%20ta?application_name=a%26b&connect_timeout=7\
         &options=-c%20geqo%3Doff&sslmode=require&channel_binding=require&target_session_attrs=read-write",
    );
    assert_eq!(hosts(&target), ["db.example:6543"]);
    assert_eq!(target.user, "us@er");
    assert_eq!(target.hosts[0].password.as_ref().unwrap().reveal(), "p/w:");
    assert_eq!(target.database.as_deref(), Some("da ta"));
    assert_eq!(target.application_name, "a&b");
    assert_eq!(target.options.as_deref(), Some("-c geqo=off"));
    assert_eq!(target.connect_timeout, Some(Duration::from_secs(7)));
    assert_eq!(target.tls.mode, SslMode::Require);
    assert_eq!(target.binding, ChannelBinding::Require);
    assert_eq!(target.session, SessionKind::ReadWrite);
}

#[test]
fn hosts_and_ports_pair_as_in_libpq() {
    for (url, expected) in [
        ("postgres://u@h", &["h:5432"][..]),
        ("postgres://u@h:1,i:2/d", &["h:1", "i:2"]),
        ("postgres://u@h,i", &["h:5432", "i:5432"]),
        ("cockroachdb://u@h,i:7/d", &["h:26257", "i:7"]),
        ("cockroach://u@h", &["h:26257"]),
        ("postgres://u@h:,i:7", &["h:5432", "i:7"]),
        (
            "postgres://u@[::1]:9,[fe80::1]/d",
            &["[::1]:9", "[fe80::1]:5432"],
        ),
        ("postgres://u@/d?host=h,i&port=9", &["h:9", "i:9"]),
        ("postgres://u@/d?host=h,i&port=9,8", &["h:9", "i:8"]),
        ("postgres://u@%2Frun%2Fpg:9/d", &["/run/pg/.s.PGSQL.9"]),
        (
            "postgres:///d?host=/run/pg&user=u",
            &["/run/pg/.s.PGSQL.5432"],
        ),
        (
            "postgres://u@:9/d",
            &[
                "/var/run/postgresql/.s.PGSQL.9",
                "/tmp/.s.PGSQL.9",
                "localhost:9",
            ],
        ),
    ] {
        assert_eq!(hosts(&parse(url)), expected, "{url}");
    }
    assert!(refusal("postgres://u@h,i,j/d?port=1,2").contains("3 hosts and 2 ports"));
}

#[test]
fn tls_settings_mean_what_libpq_means() {
    let tls = |query: &str| parse(&format!("postgres://u@h/d?{query}")).tls;
    assert_eq!(tls("").mode, SslMode::Prefer);
    assert_eq!(
        tls("sslmode=require&sslrootcert=/r").mode,
        SslMode::VerifyCa
    );
    assert_eq!(tls("sslrootcert=system").mode, SslMode::VerifyFull);
    assert_eq!(tls("sslrootcert=system").roots, Roots::System);
    assert_eq!(
        tls("sslmode=verify-ca&sslrootcert=/r").roots,
        Roots::File("/r".into())
    );
    assert_eq!(
        tls("sslcert=/c&sslkey=/k").identity,
        Some(("/c".into(), "/k".into()))
    );
    assert!(refusal("postgres://u@h/d?sslcert=/c").contains("sslkey"));
    assert!(refusal("postgres://u@h/d?sslmode=require&sslrootcert=system").contains("verify-full"));
}

#[test]
fn what_urls_of_providers_contain_is_followed_or_passed_over() {
    for query in [
        "sslmode=require&channel_binding=require",
        "sslmode=verify-full&sslrootcert=system&sslnegotiation=direct",
        "gssencmode=disable&krbsrvname=postgres&sslsni=1",
        "keepalives=1&keepalives_idle=5&keepalives_interval=2&keepalives_count=3&tcp_user_timeout=7000",
        "keepalives=0&tcp_user_timeout=0",
        "load_balance_hosts=random&target_session_attrs=any",
        "passfile=/nowhere&fallback_application_name=x&client_encoding=UTF8",
        "ssl=true",
        "requiressl=1",
        "ssl_min_protocol_version=TLSv1.2&min_protocol_version=3.0&max_protocol_version=latest",
        "sslcertmode=allow&sslcompression=0&sslcrl=",
    ] {
        parse(&format!("postgres://u@h/d?{query}"));
    }
    let target = parse(
        "postgres://u@h,i/d?keepalives_idle=5&keepalives_count=3&tcp_user_timeout=7000&load_balance_hosts=random&ssl=true",
    );
    assert_eq!(target.tcp.idle, Some(Duration::from_secs(5)));
    assert_eq!(target.tcp.count, Some(3));
    assert_eq!(target.tcp.user_timeout, Some(Duration::from_secs(7)));
    assert!(target.is_balanced && !target.tcp.no_keepalive);
    assert_eq!(target.tls.mode, SslMode::Require);
    assert_eq!(
        parse("postgres://u@h/d?fallback_application_name=x").application_name,
        "x"
    );
}

#[test]
fn what_would_make_a_connection_less_safe_is_refused() {
    for (query, word) in [
        ("gssencmode=require", "GSSAPI"),
        ("sslnegotiation=direct", "sslmode=require"),
        ("sslmode=prefer&sslnegotiation=direct", "sslmode=require"),
        ("sslcrl=/c", "sslcrl"),
        ("sslcrldir=/c", "sslcrldir"),
        ("require_auth=scram-sha-256", "require_auth"),
        ("requirepeer=postgres", "requirepeer"),
        ("sslcertmode=require", "sslcertmode"),
        ("sslcertmode=disable", "sslcertmode"),
        (
            "ssl_min_protocol_version=TLSv1.3",
            "ssl_min_protocol_version",
        ),
        (
            "ssl_max_protocol_version=TLSv1.2",
            "ssl_max_protocol_version",
        ),
        ("min_protocol_version=3.2", "3.0"),
        ("replication=database", "replication"),
        ("keepalives=yes", "keepalives"),
        ("ssl=false", "ssl"),
        ("service=x", "service"),
    ] {
        let said = refusal(&format!("postgres://u@h/d?{query}"));
        assert!(said.contains(word), "{query}: {said}");
    }
}

#[test]
fn a_password_file_may_be_named() {
    use std::io::Write;

    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "*:*:*:u:named").unwrap();
    let url = format!("postgres://u@h/d?passfile={}", file.path().display());
    let elsewhere = |name: &str| (name == "PGPASSFILE").then(|| "/nowhere".to_owned());
    let target = Target::parse_with(&url, &elsewhere).unwrap();
    assert_eq!(target.hosts[0].password, Some(Secret::from("named")));
}

#[test]
fn what_is_not_known_is_refused_by_name() {
    assert!(refusal("postgres://u@h/d?sslmood=x").contains("sslmood"));
    assert!(refusal("postgres://u@h/d?sslmode=on").contains("verify-full"));
    assert!(refusal("postgres://u@h/d?connect_timeout=soon").contains("connect_timeout"));
    assert!(refusal("postgres://u@h/d?sslmode").contains("NAME=VALUE"));
    assert!(refusal("postgres://u@h:0/d").contains("1 to 65535"));
    assert!(refusal("mysql://u@h/d").contains("postgres://"));
    assert!(refusal("postgres://h/d").contains("no user"));
}

#[test]
fn a_password_that_was_not_encoded_is_not_repeated() {
    for url in [
        "postgres://user:12/hush@h/d",
        "postgres://user:hush/more@h/d",
        "postgres://user:12?hush=x@h/d",
        "postgres://user:hush%zz@h/d",
        "postgres://user:hush%00@h/d",
        "postgres://user:hush%ff@h/d",
        "postgres://user:h@hush:hush/d",
        "postgres://user@h/d?password=hush&port=hush",
        "postgres://user@h/d?password=hush&hush",
    ] {
        let message = refusal(url);
        assert!(!message.contains("hush"), "{url}: {message}");
    }
}

#[test]
fn the_environment_fills_in_what_the_url_leaves_out() {
    let env = |name: &str| match name {
        "PGUSER" => Some("env_user".to_owned()),
        "PGPASSWORD" => Some("env_word".to_owned()),
        _ => None,
    };
    let target = Target::parse_with("postgres://h/d", &env).unwrap();
    assert_eq!(target.user, "env_user");
    assert_eq!(target.hosts[0].password, Some(Secret::from("env_word")));
    let target = Target::parse_with("postgres://a:b@h/d", &env).unwrap();
    assert_eq!(target.user, "a");
    assert_eq!(target.hosts[0].password, Some(Secret::from("b")));
    assert!(!format!("{target:?}").contains("\"b\""));
}

#[test]
#[cfg(unix)]
fn the_password_file_has_a_password_for_each_host() {
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(
        file,
        "# h:5432:d:u:wrong\nh:5432:other:u:wrong\nh:5432:d:u:it\\:s:right\nlocalhost:*:d:*:local\n*:*:*:u:rest\n"
    )
    .unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    let env = move |name: &str| (name == "PGPASSFILE").then(|| path.clone());
    let url = "postgres://u@h,i/d";
    let target = Target::parse_with(url, &env).unwrap();
    let passwords: Vec<_> = target.hosts.iter().map(|h| h.password.clone()).collect();
    assert_eq!(
        passwords,
        [Some(Secret::from("it:s:right")), Some(Secret::from("rest"))]
    );
    let socket = Target::parse_with("postgres://v@/d?host=/run", &env).unwrap();
    assert_eq!(socket.hosts[0].password, Some(Secret::from("local")));

    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(file.path(), open).unwrap();
    let target = Target::parse_with(url, &env).unwrap();
    assert_eq!(target.hosts[0].password, None);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(tail in ".{0,60}") {
        // What matters is that it comes back.
        drop(Target::parse_with(&format!("postgres://{tail}"), &|_| None));
    }

    #[test]
    fn any_password_can_be_encoded(password in "[^\u{0}]{1,30}") {
        let encoded: String = password.bytes().map(|b| format!("%{b:02X}")).collect();
        let target = parse(&format!("postgres://u:{encoded}@h/d"));
        prop_assert_eq!(target.hosts[0].password.clone(), Some(Secret::from(password.as_str())));
    }
}
