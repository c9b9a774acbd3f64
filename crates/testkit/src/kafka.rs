//! Kafka in KRaft mode: one broker or some, on loopback, on free ports, in a temporary directory,
//! gone afterwards. The program is its published jars in `target/kafka`, which `./test` fetches.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::{
    CreateTopicsRequest, CreateTopicsResponse, RequestHeader, TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};
use tempfile::TempDir;

use crate::left_out;
use crate::own_server::{Stop, Watched, free_port, run};
use crate::procfs;

/// The time limit for the start of a broker.
const BROKER_TIMEOUT: Duration = Duration::from_secs(120);

/// A cluster. It ends with this value, however the process ends.
#[derive(Debug)]
pub struct Kafka {
    dir: TempDir,
    jars: PathBuf,
    brokers: Vec<Broker>,
}

#[derive(Debug)]
struct Broker {
    port: u16,
    configuration: PathBuf,
    watched: Option<Watched>,
}

/// A listener that wants TLS, and a user by PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
#[derive(Debug)]
pub struct Secured {
    /// The listener's port.
    pub port: u16,
    /// A PEM file with the private key and the certificate for 127.0.0.1.
    pub certificate: PathBuf,
    /// The one user.
    pub user: &'static str,
    /// The user's password.
    pub password: &'static str,
}

impl Secured {
    /// Returns what a broker's configuration says of it: listener, protocol, and further lines.
    fn settings(&self) -> (String, &'static str, String) {
        let Self { user, password, .. } = self;
        let module = "org.apache.kafka.common.security";
        let certificate = self.certificate.display();
        let lines = [
            "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512".to_owned(),
            format!(
                "plain.sasl.jaas.config={module}.plain.PlainLoginModule required \
                 user_{user}=\"{password}\";"
            ),
            format!("scram-sha-256.sasl.jaas.config={module}.scram.ScramLoginModule required;"),
            format!("scram-sha-512.sasl.jaas.config={module}.scram.ScramLoginModule required;"),
            "ssl.keystore.type=PEM".to_owned(),
            format!("ssl.keystore.location={certificate}"),
        ];
        let lines = lines.map(|line| format!("listener.name.secured.{line}\n"));
        let listener = format!(",SECURED://127.0.0.1:{}", self.port);
        (listener, ",SECURED:SASL_SSL", lines.concat())
    }
}

/// Settings of a topic that loses nothing, but for how many brokers must have what was written.
pub const KEPT: [(&str, &str); 3] = [
    ("retention.ms", "-1"),
    ("retention.bytes", "-1"),
    ("unclean.leader.election.enable", "false"),
];

/// Starts brokers on free ports; notes why not, and returns `None`, if Kafka cannot be started
/// here.
///
/// # Errors
/// As [`Kafka::start`].
pub fn brokers(count: usize) -> Result<Option<Kafka>> {
    if let Some(why) = missing() {
        left_out::note(&why);
        return Ok(None);
    }
    let ports: Vec<u16> = (0..count)
        .map(|_| Kafka::free_port())
        .collect::<Result<_>>()?;
    Kafka::start(&ports, None).map(Some)
}

/// Why Kafka cannot be started here; `None` if it can.
pub fn missing() -> Option<String> {
    let java = Command::new("java").arg("-version").output();
    if !java.is_ok_and(|java| java.status.success()) {
        return Some("there is no java".to_owned());
    }
    let jars = jars();
    let there = std::fs::read_dir(&jars).is_ok_and(|mut jars| jars.next().is_some());
    (!there).then(|| format!("there are no jars in {}", jars.display()))
}

fn jars() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/kafka")
}

impl Kafka {
    /// Starts brokers, and waits until all of them answer. `advertised`: the ports that clients are
    /// sent to, where those are others' than the brokers' own; `None` for the brokers' own.
    ///
    /// # Errors
    /// A broker that does not start, with the end of its log.
    pub fn start(ports: &[u16], advertised: Option<&[u16]>) -> Result<Self> {
        Self::launch(ports, advertised, None)
    }

    /// Starts one broker with a second listener, which wants TLS and a login.
    ///
    /// # Errors
    /// As [`Kafka::start`].
    pub fn start_secured(port: u16, secured: &Secured) -> Result<Self> {
        Self::launch(&[port], None, Some(secured))
    }

    fn launch(
        ports: &[u16],
        advertised: Option<&[u16]>,
        secured: Option<&Secured>,
    ) -> Result<Self> {
        let jars = jars();
        ensure!(missing().is_none(), "Kafka cannot be started here");
        let mut kafka = Self {
            dir: tempfile::Builder::new()
                .prefix("windrow-kafka-")
                .tempdir()?,
            jars,
            brokers: Vec::new(),
        };
        let controllers: Vec<u16> = ports.iter().map(|_| free_port()).collect::<Result<_>>()?;
        let voters = controllers.iter().zip(1..);
        let voters = voters.map(|(port, id)| format!("{id}@127.0.0.1:{port}"));
        let voters = voters.collect::<Vec<_>>().join(",");
        for (at, (port, controller)) in ports.iter().zip(&controllers).enumerate() {
            let shown = advertised.and_then(|all| all.get(at)).unwrap_or(port);
            let ports = (*port, *shown, *controller);
            let configuration = kafka.configure(at + 1, ports, &voters, secured)?;
            kafka.brokers.push(Broker {
                port: *port,
                configuration,
                watched: None,
            });
        }
        for broker in 0..ports.len() {
            kafka.format(broker, secured)?;
            kafka.run(broker)?;
        }
        for broker in 0..ports.len() {
            kafka.wait(broker)?;
        }
        Ok(kafka)
    }

    /// Finds a free port for a broker.
    ///
    /// # Errors
    /// None is free.
    pub fn free_port() -> Result<u16> {
        free_port()
    }

    /// Hosts and ports of all brokers, as a client is given them.
    pub fn brokers(&self) -> String {
        let ports = self.brokers.iter().map(|broker| broker.port);
        let each = ports.map(|port| format!("127.0.0.1:{port}"));
        each.collect::<Vec<_>>().join(",")
    }

    /// Makes a topic, with a replica on each broker.
    ///
    /// # Errors
    /// What Kafka says.
    pub fn topic(&self, name: &str, partitions: i32, settings: &[(&str, &str)]) -> Result<()> {
        let text = |text: &str| StrBytes::from_string(text.to_owned());
        let configs = settings.iter().map(|(name, value)| {
            CreatableTopicConfig::default()
                .with_name(text(name))
                .with_value(Some(text(value)))
        });
        let topic = CreatableTopic::default()
            .with_name(TopicName(text(name)))
            .with_num_partitions(partitions)
            .with_replication_factor(i16::try_from(self.brokers.len())?)
            .with_configs(configs.collect());
        let request = CreateTopicsRequest::default()
            .with_topics(vec![topic])
            .with_timeout_ms(30_000);
        let started = Instant::now();
        loop {
            let broker = self.brokers.first().context("there is no broker")?;
            match create(broker.port, &request) {
                Ok(()) => return Ok(()),
                Err(error) if started.elapsed() > BROKER_TIMEOUT => return Err(error),
                // A cluster that has just started does not have all its brokers yet.
                Err(_) => thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    /// Ends a broker as a crash would.
    ///
    /// # Errors
    /// It was not running.
    pub fn kill(&mut self, broker: usize) -> Result<()> {
        let broker = self.brokers.get_mut(broker).context("no such broker")?;
        let watched = broker.watched.take().context("it is not running")?;
        watched.stop(Stop::Kill)
    }

    /// Starts a broker again, and waits until it answers.
    ///
    /// # Errors
    /// It does not start.
    pub fn restart(&mut self, broker: usize) -> Result<()> {
        self.run(broker)?;
        self.wait(broker)
    }

    /// Ends all brokers as a crash would.
    ///
    /// # Errors
    /// One was not running.
    pub fn kill_all(&mut self) -> Result<()> {
        (0..self.brokers.len()).try_for_each(|broker| self.kill(broker))
    }

    /// Starts all brokers again, and waits until all answer: none does before most of them run.
    ///
    /// # Errors
    /// One does not start.
    pub fn restart_all(&mut self) -> Result<()> {
        (0..self.brokers.len()).try_for_each(|broker| self.run(broker))?;
        (0..self.brokers.len()).try_for_each(|broker| self.wait(broker))
    }

    fn configure(
        &self,
        id: usize,
        (port, shown, controller): (u16, u16, u16),
        voters: &str,
        secured: Option<&Secured>,
    ) -> Result<PathBuf> {
        let (listener, protocol, more) = secured.map_or_else(Default::default, Secured::settings);
        let data = self.dir.path().join(format!("data{id}"));
        let text = format!(
            "process.roles=broker,controller\nnode.id={id}\ncontroller.quorum.voters={voters}\n\
             listeners=BROKER://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}{listener}\n\
             advertised.listeners=BROKER://127.0.0.1:{shown}{listener}\n\
             listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT{protocol}\n\
             inter.broker.listener.name=BROKER\ncontroller.listener.names=CONTROLLER\n\
             log.dirs={}\nauto.create.topics.enable=false\n\
             broker.session.timeout.ms=3000\nbroker.heartbeat.interval.ms=500\n\
             replica.lag.time.max.ms=3000\nlog.cleaner.dedupe.buffer.size=4194304\n\
             offsets.topic.replication.factor=1\nnum.recovery.threads.per.data.dir=1\n{more}",
            data.display()
        );
        let path = self.dir.path().join(format!("broker{id}.properties"));
        std::fs::write(&path, text)?;
        Ok(path)
    }

    fn format(&self, broker: usize, secured: Option<&Secured>) -> Result<()> {
        let broker = self.brokers.get(broker).context("no such broker")?;
        let mut command = self.java("kafka.tools.StorageTool", 64);
        command.args(["format", "-t", "V2luZHJvd1Rlc3RzMDAwMA", "-c"]);
        command.arg(&broker.configuration);
        if let Some(Secured { user, password, .. }) = secured {
            for mechanism in ["SCRAM-SHA-256", "SCRAM-SHA-512"] {
                let user = format!("{mechanism}=[name={user},password={password}]");
                command.args(["--add-scram", &user]);
            }
        }
        run(&mut command)
    }

    fn run(&mut self, broker: usize) -> Result<()> {
        let log = self.log(broker);
        let java = self.java("kafka.Kafka", 256);
        let mut arguments = Vec::new();
        for argument in java.get_args() {
            arguments.push(argument.to_str().context("a path is not UTF-8")?.to_owned());
        }
        let broker = self.brokers.get_mut(broker).context("no such broker")?;
        arguments.push(broker.configuration.display().to_string());
        let (dir, java) = (self.dir.path(), Path::new("java"));
        let shell = Command::new("/bin/sh");
        broker.watched = Some(Watched::start(shell, dir, &log, java, &arguments)?);
        Ok(())
    }

    fn wait(&self, broker: usize) -> Result<()> {
        let log = self.log(broker);
        let broker = self.brokers.get(broker).context("no such broker")?;
        let started = Instant::now();
        loop {
            if TcpStream::connect(("127.0.0.1", broker.port)).is_ok() {
                return Ok(());
            }
            let pid = broker.watched.as_ref().map(Watched::pid);
            let runs = pid.is_some_and(procfs::is_running);
            if !runs || started.elapsed() > BROKER_TIMEOUT {
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                let from = said.len().saturating_sub(4000);
                let end = said.get(from..).unwrap_or(&said);
                bail!("Kafka does not start; its log ends with\n{end}");
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn log(&self, broker: usize) -> PathBuf {
        self.dir.path().join(format!("broker{}.log", broker + 1))
    }

    /// Java on Kafka's jars, with so many MiB of heap.
    fn java(&self, class: &str, heap: u32) -> Command {
        let mut command = Command::new("java");
        command.arg(format!("-Xmx{heap}m"));
        command.args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp"]);
        command.arg(format!("{}/*", self.jars.display())).arg(class);
        command
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        for broker in &mut self.brokers {
            if let Some(watched) = broker.watched.take() {
                watched.stop(Stop::Kill).ok();
            }
        }
    }
}

/// Asks a broker to make topics.
fn create(port: u16, request: &CreateTopicsRequest) -> Result<()> {
    const VERSION: i16 = 4;
    let header = RequestHeader::default()
        .with_request_api_key(CreateTopicsRequest::KEY)
        .with_request_api_version(VERSION);
    let mut bytes = BytesMut::new();
    header.encode(&mut bytes, CreateTopicsRequest::header_version(VERSION))?;
    request.encode(&mut bytes, VERSION)?;
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(BROKER_TIMEOUT))?;
    stream.write_all(&u32::try_from(bytes.len())?.to_be_bytes())?;
    stream.write_all(&bytes)?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut answer = vec![0; usize::try_from(u32::from_be_bytes(length))?];
    stream.read_exact(&mut answer)?;
    let mut answer = Bytes::from(answer).split_off(4);
    let answer = CreateTopicsResponse::decode(&mut answer, VERSION)?;
    match answer.topics.iter().find(|topic| topic.error_code != 0) {
        Some(topic) => bail!("a topic cannot be made: {:?}", topic.error_message),
        None => Ok(()),
    }
}
