//! The server's greeting. Clients get it before it is known who they are.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use windrow_mysqlwire::command;
use windrow_mysqlwire::connect::connect;
use windrow_mysqlwire::{ConnectError, Credential, Greeting, LoginRequest, Target};

/// The last greeting that a server connection got.
#[derive(Default)]
pub(crate) struct Profile(Mutex<Option<Arc<Greeting>>>);

impl Profile {
    /// Returns the greeting. Asks the server for one if there is none.
    pub(crate) async fn get(
        &self,
        target: &Target,
        limit: Duration,
    ) -> Result<Arc<Greeting>, ConnectError> {
        let known = self.0.lock().clone();
        if let Some(known) = known {
            return Ok(known);
        }
        // The server counts a connection that ends after the greeting as an error, and blocks this
        // machine after too many of them.
        let credential = Credential::Password(target.password.clone());
        let mut connected = connect(target, &LoginRequest::own(target), &credential, limit).await?;
        connected.wire.set_next(0);
        connected.wire.put(&[command::QUIT]);
        connected.wire.close().await;
        Ok(self.note(connected.greeting))
    }

    /// Returns true if the last greeting was that of MariaDB.
    pub(crate) fn is_mariadb(&self) -> bool {
        let known = self.0.lock();
        let version = known.as_ref().map(|greeting| &*greeting.version);
        version.is_some_and(|version| version.windows(7).any(|part| part == b"MariaDB"))
    }

    /// Notes the greeting of a connection that is logged in.
    pub(crate) fn note(&self, greeting: Greeting) -> Arc<Greeting> {
        let greeting = Arc::new(greeting);
        let mut known = self.0.lock();
        *known = Some(Arc::clone(&greeting));
        greeting
    }
}
