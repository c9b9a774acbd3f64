//! `COM_CHANGE_USER`: the session continues as another user, over another server connection.

use std::io;

use tokio::time::timeout;
use windrow_mysqlwire::command;
use windrow_mysqlwire::{LoginRequest, Wire};

use super::client_session::{Session, SessionEnd};
use crate::admit::{AdmittedClient, MAX_LOGIN_BYTES, NotAdmitted, open, prove};

/// Logs the session in again, as another user, over another server connection.
pub(super) async fn log_in(session: &mut Session) -> Result<(), SessionEnd> {
    let content = session.admitted.client.packet(MAX_LOGIN_BYTES).await?;
    let content = content.ok_or(SessionEnd::Gone)?;
    let is_mariadb = session.shared.is_mariadb();
    let request = session.admitted.request.changed(&content, is_mariadb);
    let request = request.ok_or(SessionEnd::Gone)?;
    let ok = match log_in_again(session, &request).await {
        Ok(ok) => ok,
        Err(NotAdmitted::Gone) => return Err(SessionEnd::Gone),
        Err(NotAdmitted::Refused(error)) => {
            session.admitted.client.put(&error.encode());
            session.admitted.client.flush().await?;
            return Err(SessionEnd::Gone);
        }
    };
    session.admitted.request = request;
    session.begin_again(session.admitted.server.status);
    session.admitted.client.put(&ok);
    Ok(session.admitted.client.flush().await?)
}

/// Has the client prove the password of another user, and opens that user's server connection once
/// the server has undone the work of the previous user.
async fn log_in_again(
    session: &mut Session,
    request: &LoginRequest,
) -> Result<Vec<u8>, NotAdmitted> {
    let AdmittedClient {
        client,
        server,
        host,
        is_local,
        entry,
        ..
    } = &mut session.admitted;
    let shared = &*session.shared;
    let proven = prove(shared, client, request, None, (&**host, *is_local)).await?;
    // A server connection that does not answer is dropped anyway.
    drop(timeout(shared.config.connect_timeout, leave(&mut server.wire)).await);
    let (opened, ok) = open(shared, request, proven, entry).await?;
    *server = opened;
    Ok(ok)
}

/// Ends a server connection, after its transaction, locks and temporary tables are gone.
async fn leave(server: &mut Wire) -> io::Result<()> {
    server.set_next(0);
    server.put(&[command::RESET_CONNECTION]);
    server.flush().await?;
    server.packet(MAX_LOGIN_BYTES).await?;
    server.set_next(0);
    server.put(&[command::QUIT]);
    server.flush().await
}
