//! Which users may log in, and by which proof.

use std::collections::HashMap;

use parking_lot::RwLock;
use windrow_mysqlwire::auth::NATIVE;
use windrow_mysqlwire::{Credential, Target, Verifier};

use crate::config::UserConfig;

/// The users that are admitted.
pub(crate) struct Access {
    users: RwLock<HashMap<Vec<u8>, UserConfig>>,
    target: Target,
}

/// The condition for a user to be admitted.
pub(crate) enum Admittance {
    /// No proof: users are not configured, and the client is on this machine.
    Trusted(Credential),
    /// A proof. `password` is that at the server, if it is known.
    Proof {
        verifier: Verifier,
        password: Option<Credential>,
    },
    /// A proof that nobody can give: the user is not known, which a client cannot see.
    Refused(&'static str),
}

impl Access {
    pub(crate) fn new(users: Vec<UserConfig>, target: &Target) -> Self {
        let access = Self {
            users: RwLock::default(),
            target: target.clone(),
        };
        access.replace(users);
        access
    }

    /// Admits these users from now on.
    pub(crate) fn replace(&self, users: Vec<UserConfig>) {
        let named = users
            .into_iter()
            .map(|user| (user.name.clone().into_bytes(), user));
        *self.users.write() = named.collect();
    }

    /// Returns the condition for a user.
    pub(crate) fn of(&self, user: &[u8], is_local: bool) -> Admittance {
        let users = self.users.read();
        let own = (user == self.target.user.as_bytes())
            .then(|| Credential::Password(self.target.password.clone()));
        if users.is_empty() && is_local {
            return Admittance::Trusted(own.unwrap_or(Credential::Password("".into())));
        }
        match users.get(user) {
            Some(found) => Admittance::Proof {
                verifier: found.verifier.clone(),
                password: found
                    .server_password
                    .clone()
                    .map(Credential::Password)
                    .or(own),
            },
            None => {
                let any = users.values().next().map(|user| user.verifier.plugin());
                Admittance::Refused(any.unwrap_or(NATIVE))
            }
        }
    }

    /// Returns true if a user that logged in with this verifier may still.
    pub(crate) fn still_admits(&self, user: &[u8], verifier: Option<&Verifier>) -> bool {
        let users = self.users.read();
        match verifier {
            Some(verifier) => users
                .get(user)
                .is_some_and(|user| user.verifier == *verifier),
            None => users.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_that_are_configured_need_a_proof() {
        let target = Target::parse("mysql://app:p@h/d").unwrap();
        let access = Access::new(Vec::new(), &target);
        assert!(access.still_admits(b"x", None));
        assert!(matches!(access.of(b"x", true), Admittance::Trusted(_)));
        assert!(matches!(access.of(b"app", false), Admittance::Refused(_)));
        let verifier = Verifier::of("secret", NATIVE);
        access.replace(vec![UserConfig {
            name: "app".to_owned(),
            verifier: verifier.clone(),
            server_password: None,
        }]);
        assert!(matches!(access.of(b"x", true), Admittance::Refused(_)));
        let Admittance::Proof { password, .. } = access.of(b"app", true) else {
            panic!("no proof is asked for");
        };
        assert!(password.is_some());
        assert!(access.still_admits(b"app", Some(&verifier)));
        assert!(!access.still_admits(b"x", None));
        assert!(!access.still_admits(b"app", Some(&Verifier::of("other", NATIVE))));
    }
}
