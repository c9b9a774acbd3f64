//! The extended protocol at the console: statements without parameters, and portals that are
//! executed completely.

use bytes::BufMut;
use windrow_core::{Fault, FaultClass};

use super::command::Command;
use super::console_session::{ConsoleEnd, ConsoleSession, columns};
use super::prepared::unknown;
use super::table;
use crate::codec::answer;
use crate::codec::message::{Bind, Kind, Message, Parse};

type Done = Result<(), Fault>;

impl ConsoleSession<'_> {
    /// Handles one message of the extended protocol.
    pub(super) async fn extended(&mut self, message: Message<'_>) -> Result<Done, ConsoleEnd> {
        let done = match message {
            Message::Parse(parse) => self.parse(&parse),
            Message::Bind(bind) => self.bind(&bind),
            Message::Describe(kind, name) => self.describe(kind, name),
            Message::Execute(portal, _) => match self.prepared.portals.get(portal).cloned() {
                Some(command) => return self.execute(&command).await,
                None => Err(unknown(Kind::Portal, portal)),
            },
            Message::Close(kind, name) => {
                self.prepared.of(kind).remove(name);
                self.out.put_slice(answer::CLOSE_COMPLETE);
                Ok(())
            }
            _ => Err(Fault::new(
                FaultClass::Unsupported,
                "0A000",
                "the console does not know this message",
            )),
        };
        Ok(done)
    }

    fn parse(&mut self, parse: &Parse<'_>) -> Done {
        let command = Command::parse(&String::from_utf8_lossy(parse.text))?;
        self.prepared.put(Kind::Statement, parse.name, command)?;
        self.out.put_slice(answer::PARSE_COMPLETE);
        Ok(())
    }

    fn bind(&mut self, bind: &Bind<'_>) -> Done {
        let command = self.prepared.statements.get(bind.statement).cloned();
        let command = command.ok_or_else(|| unknown(Kind::Statement, bind.statement))?;
        if bind.count > 0 {
            let text = "commands of the console have no parameters";
            return Err(Fault::new(FaultClass::Invalid, "08P01", text));
        }
        self.prepared.put(Kind::Portal, bind.portal, command)?;
        self.out.put_slice(answer::BIND_COMPLETE);
        Ok(())
    }

    fn describe(&mut self, kind: Kind, name: &[u8]) -> Done {
        let command = self.prepared.of(kind).get(name);
        let command = command.ok_or_else(|| unknown(kind, name))?;
        let columns = columns(command);
        if kind == Kind::Statement {
            answer::parameters(&mut self.out, &[]);
        }
        match columns {
            Some(columns) => table::fields(&mut self.out, columns),
            None => self.out.put_slice(answer::NO_DATA),
        }
        Ok(())
    }
}
