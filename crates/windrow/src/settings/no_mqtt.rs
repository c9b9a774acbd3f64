//! A build without MQTT: `[mqtt]` can be read, but not be used.

use windrow_http::Ack;

use super::faults::Faults;
use super::file::File;

/// No value of this type exists.
#[derive(Clone)]
pub enum MqttSettings {}

impl MqttSettings {
    /// Describes which topics of which broker are written.
    pub fn greeting(&self) -> String {
        match *self {}
    }

    /// Connects to the broker and disconnects.
    #[expect(clippy::unused_async, reason = "a build with MQTT awaits an answer")]
    pub async fn try_connect(&self) -> Result<(), String> {
        match *self {}
    }
}

pub(super) fn settings(
    file: &File,
    _: bool,
    _: (usize, Ack),
    faults: &mut Faults,
) -> Option<MqttSettings> {
    if file.mqtt.url.is_some() {
        faults.note::<()>(Err(anyhow::anyhow!(
            "mqtt.url is set, but this build has no MQTT: it was made without the feature `mqtt`"
        )));
    }
    None
}
