//! An HTTP connection with authentication: sends a request, receives its answer.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde::Deserialize;
use tokio::time::Instant;
use windrow_core::{Fault, FaultClass, Secret, Tally};
use windrow_database::web::{Answer, Ask, Client, Loss, Origin, push_text, secret};

use super::plan::in_path;
use crate::answer::Failure;
use crate::fault::refusal;

/// Bytes of the largest answer.
const ANSWER: usize = 64 << 20;

/// The authentication method of a connection.
#[derive(Clone, Debug)]
pub(crate) enum Identity {
    /// By the URL's user and password in every request, if the URL has them.
    Basic,
    /// By a token that the server issues for the URL's user, and again after it has expired.
    Session,
    /// By the URL's own token.
    Token(Secret),
}

/// An HTTP connection to a database.
#[derive(Debug)]
pub(crate) struct Session {
    client: Client,
    identity: Identity,
    pub(crate) database: Arc<str>,
}

/// An answer, or the server's error.
pub(crate) type Answered = Result<Answer, Failure>;

#[derive(Deserialize)]
struct Given {
    jwt: String,
}

impl Session {
    pub(crate) fn new(origin: Arc<Origin>, identity: Identity, database: Arc<str>) -> Self {
        let mut client = Client::new(origin, HeaderMap::new());
        match &identity {
            Identity::Basic => {}
            Identity::Session => client.authorize(None),
            Identity::Token(token) => client.authorize(secret("Bearer", token.reveal())),
        }
        Self {
            client,
            identity,
            database,
        }
    }

    /// Authenticates, and checks that the database answers.
    ///
    /// # Errors
    /// [`FaultClass::Unavailable`] if another attempt may succeed.
    pub(crate) async fn greet(&mut self) -> Result<(), Fault> {
        if matches!(self.identity, Identity::Session) {
            self.log_in().await?;
        }
        let mut tally = Tally::default();
        let answered = self
            .ask(Method::GET, "/_api/version", Bytes::new(), &mut tally)
            .await;
        match answered.map_err(Loss::harmless)? {
            Ok(_) => Ok(()),
            Err(failure) => Err(self.refused(&failure)),
        }
    }

    fn refused(&self, failure: &Failure) -> Fault {
        let mut fault = refusal(failure, &self.database).fault;
        if matches!(fault.class, FaultClass::Unknown | FaultClass::Conflict) {
            fault.class = FaultClass::Unavailable;
            fault.code = "08001".into();
        }
        fault
    }

    /// Requests a token. Servers without authentication do not have this path.
    async fn log_in(&mut self) -> Result<(), Fault> {
        let Some(login) = self.client.origin().login() else {
            return Ok(());
        };
        let mut body = b"{\"username\":".to_vec();
        push_text(&mut body, &login.user);
        body.extend_from_slice(b",\"password\":");
        push_text(&mut body, login.password.reveal());
        body.push(b'}');
        self.client.authorize(None);
        let ask = Ask {
            method: Method::POST,
            path: "/_open/auth".to_owned(),
            body: Bytes::from(body),
            most: 1 << 20,
        };
        let answer = self.client.exchange(&ask).await.map_err(Loss::harmless)?;
        if answer.status == http::StatusCode::NOT_FOUND {
            return Ok(());
        }
        if !answer.status.is_success() {
            return Err(self.refused(&Failure::of(&answer)));
        }
        let given: Given = serde_json::from_slice(&answer.body)
            .map_err(|_| Fault::new(FaultClass::Denied, "28000", "ArangoDB gave no token"))?;
        self.client.authorize(secret("Bearer", &given.jwt));
        Ok(())
    }

    /// Sends a request and returns its answer. `path` is relative to the database.
    pub(crate) async fn ask(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
        tally: &mut Tally,
    ) -> Result<Answered, Loss> {
        let ask = Ask {
            method,
            path: format!("/_db/{}{path}", in_path(&self.database)),
            body,
            most: ANSWER,
        };
        let start = Instant::now();
        let mut answered = self.client.exchange(&ask).await;
        tally.round_trips += 1;
        let expired = |answer: &Answer| answer.status == http::StatusCode::UNAUTHORIZED;
        if matches!(self.identity, Identity::Session) && answered.as_ref().is_ok_and(expired) {
            // A token lasts an hour. A refused request has written nothing.
            self.log_in().await.map_err(Loss::NotSent)?;
            answered = self.client.exchange(&ask).await;
            tally.round_trips += 2;
        }
        tally.in_database += start.elapsed();
        let answer = answered?;
        Ok(match answer.status.is_success() {
            true => Ok(answer),
            false => Err(Failure::of(&answer)),
        })
    }
}
