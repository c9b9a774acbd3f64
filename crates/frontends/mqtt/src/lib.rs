//! The MQTT frontend: Windrow subscribes to topics of a broker, and writes their messages as rows.
//!
//! ```text
//!  broker --- PUBLISH ---> connection --- message ---> subscriber --- units ---> lane or spool
//!    ^                                                     |                          |
//!    '------ PUBACK, once the rows are safe ---------------'<------- outcomes --------'
//! ```
//!
//! **A message is acknowledged once all its rows are committed, stand in the spool, or are dead
//! letters.** Until then the broker keeps it in the session of this client, and sends it again
//! after a break of the connection. So each row is written at least once; a table with a key
//! ignores the second time ([`TopicConfig::on_conflict`]).
//!
//! | module | what it holds |
//! | --- | --- |
//! | `config` | the settings |
//! | `pattern` | topics with named levels |
//! | `rows` | a message to writes |
//! | `connection` | the connection to the broker, opened again when it breaks |
//! | `subscriber` | messages under way |
//! | `acknowledgements` | messages that are not acknowledged |
//! | `letters` | what the database refuses |
//! | `metrics` | what is counted |

mod acknowledgements;
mod config;
mod connection;
mod letters;
mod metrics;
mod pattern;
mod rows;
mod subscriber;

pub use self::config::{Broker, MqttConfig, TopicConfig};
pub use self::connection::check;
pub use self::metrics::MqttMetrics;
pub use self::pattern::Pattern;
pub use self::subscriber::{MqttSubscriber, Services};
