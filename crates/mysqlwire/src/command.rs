//! The numbers of the commands that Windrow knows
//! (<https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_command_phase.html>).

#![expect(missing_docs, reason = "the names are the protocol's own")]

pub const QUIT: u8 = 0x01;
pub const INIT_DB: u8 = 0x02;
pub const QUERY: u8 = 0x03;
pub const FIELD_LIST: u8 = 0x04;
pub const STATISTICS: u8 = 0x09;
pub const PROCESS_INFO: u8 = 0x0a;
pub const PROCESS_KILL: u8 = 0x0c;
pub const PING: u8 = 0x0e;
pub const CHANGE_USER: u8 = 0x11;
pub const BINLOG_DUMP: u8 = 0x12;
pub const REGISTER_SLAVE: u8 = 0x15;
pub const STMT_PREPARE: u8 = 0x16;
pub const STMT_EXECUTE: u8 = 0x17;
pub const STMT_SEND_LONG_DATA: u8 = 0x18;
pub const STMT_CLOSE: u8 = 0x19;
pub const STMT_RESET: u8 = 0x1a;
pub const STMT_FETCH: u8 = 0x1c;
pub const BINLOG_DUMP_GTID: u8 = 0x1e;
pub const RESET_CONNECTION: u8 = 0x1f;
pub const CLONE: u8 = 0x20;
pub const SUBSCRIBE: u8 = 0x21;
pub const STMT_BULK_EXECUTE: u8 = 0xfa;
pub const MULTI: u8 = 0xfe;
