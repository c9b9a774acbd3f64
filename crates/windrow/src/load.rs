//! Files into a table: what `windrow load` does, for programs.
//!
//! ```no_run
//! # async fn example() -> Result<(), windrow::load::LoadError> {
//! use windrow::load::{Files, Listener, LoadSettings, Loading};
//!
//! let settings = LoadSettings::new("postgres://app@localhost/app", "readings")?;
//! let files = Files::new(["readings.csv".into()]);
//! let listener: Listener = Box::new(|reject| eprintln!("{}", reject.sentence()));
//! let summary = Loading::open(settings, files, listener).await?.run().await?;
//! println!("{} rows", summary.counts.written);
//! # Ok(()) }
//! ```

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;
use windrow_core::{Budget, Fault, Intake, Key, Limits, OnConflict, Secret, TableName};
use windrow_database::Options;
use windrow_lanes::{Lane, LaneMetrics};
use windrow_load::source;
use windrow_load::{Identity, Input, Load, Run, Target};

pub use windrow_load::source::{Escape, Format, Options as SourceOptions};
pub use windrow_load::{
    Listener, LoadError, MadeColumn, Meter, OddText, Pick, Reading, Reason, Reject, Rejects,
    Summary,
};

use crate::databases;
use crate::lanes::LANE_CAPACITY;

/// The memory for rows that are written one by one. Portions have their own limit.
const LANE_MEMORY: usize = 64 << 20;

/// The time that a load waits for an unreachable database: longer than in a server, because no
/// client waits for an answer.
pub const AWAY_WAIT: Duration = Duration::from_secs(60);

/// The files of a load, and how they are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The files' paths; `-` is standard input.
    pub paths: Vec<String>,
    /// The options for reading the files.
    pub options: SourceOptions,
}

impl Files {
    /// Makes files that are read by their names and first bytes.
    pub fn new(paths: impl IntoIterator<Item = String>) -> Self {
        Self {
            paths: paths.into_iter().collect(),
            options: SourceOptions::default(),
        }
    }
}

/// The identity by which a later run recognizes a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    /// The files' paths.
    ByPath,
    /// A name, for a single file or standard input.
    As(String),
}

/// The destination of rows, and how they are loaded.
#[derive(Clone)]
pub struct LoadSettings {
    /// The database's URL.
    pub url: Secret,
    /// The load itself.
    pub load: Load,
    /// The identity of a load that can be continued; `None` if no marks are kept.
    pub resume: Option<Resume>,
    /// The file that keeps refused rows.
    pub rejects: Option<PathBuf>,
    /// The most refused rows; `None` for any number.
    pub max_rejects: Option<u64>,
}

impl LoadSettings {
    /// Makes settings for plain inserts into an existing table, with all columns by name.
    ///
    /// # Errors
    /// [`LoadError::Invalid`] if the table's name is invalid.
    pub fn new(url: impl Into<Secret>, table: &str) -> Result<Self, LoadError> {
        let table = TableName::parse(table).map_err(invalid)?;
        Ok(Self {
            url: url.into(),
            load: Load {
                table,
                columns: None,
                on_conflict: OnConflict::Error,
                key: Key::Primary,
                create: false,
                jobs: None,
                portion_rows: None,
                limit: None,
                away_wait: AWAY_WAIT,
            },
            resume: None,
            rejects: None,
            max_rejects: None,
        })
    }
}

/// A load that is ready to run.
pub struct Loading {
    run: Run,
    inputs: Vec<Input>,
    lane: Lane,
    bytes: Option<u64>,
}

impl Loading {
    /// Checks the settings and opens the database, which may still be unreachable. `listener` is
    /// called with every refused row.
    ///
    /// # Errors
    /// The settings are invalid, or the file of rejects cannot be used.
    pub async fn open(
        settings: LoadSettings,
        files: Files,
        listener: Listener,
    ) -> Result<Self, LoadError> {
        let inputs = inputs(&files, settings.resume.as_ref())?;
        let options = Options {
            create_tables: settings.load.create,
            extend_tables: settings.load.create,
            own_times: true,
            ..Options::default()
        };
        let sink = databases::open(settings.url.reveal(), &options)
            .await
            .map_err(invalid)?;
        let rejects = Arc::new(Rejects::new(settings.max_rejects, listener));
        if let Some(path) = &settings.rejects {
            rejects.keep(path, settings.resume.is_some())?;
        }
        let (intake, arrivals) = Intake::channel(Budget::new(LANE_MEMORY), LANE_CAPACITY);
        let limits = Limits {
            batch_rows: settings.load.portion_rows.map(NonZero::get),
            away_wait: settings.load.away_wait,
            ..Limits::default()
        };
        let metrics = LaneMetrics::register(&mut Registry::default());
        let lane = Lane::start(sink.clone(), limits, arrivals, metrics, "load".into());
        Ok(Self {
            run: Run {
                load: settings.load,
                target: Target { sink, intake },
                rejects,
                meter: Arc::default(),
                stop: CancellationToken::new(),
            },
            inputs,
            lane,
            bytes: sizes(&files.paths),
        })
    }

    /// Returns the counters, which may be read during the load.
    pub fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.run.meter)
    }

    /// Returns the bytes of all files on the disk; `None` if that is unknown.
    pub fn bytes(&self) -> Option<u64> {
        self.bytes
    }

    /// Returns the token that ends the load: portions under way are finished, and the load ends
    /// with [`LoadError::Interrupted`].
    pub fn stop(&self) -> CancellationToken {
        self.run.stop.clone()
    }

    /// Returns the destination of refused rows and their reasons.
    pub fn rejects(&self) -> Arc<Rejects> {
        Arc::clone(&self.run.rejects)
    }

    /// Loads all files.
    ///
    /// # Errors
    /// The reason why the load ended early. What was committed before stays.
    pub async fn run(self) -> Result<Summary, LoadError> {
        let Self {
            run, inputs, lane, ..
        } = self;
        let loaded = run.files(inputs).await;
        drop(run);
        lane.shutdown().await;
        loaded
    }
}

fn inputs(files: &Files, resume: Option<&Resume>) -> Result<Vec<Input>, LoadError> {
    let several = files.paths.len() > 1;
    if several && matches!(resume, Some(Resume::As(_))) {
        let told = "a name to continue by (--resume-as) is that of one file; give each file a run of its own";
        return Err(LoadError::Invalid(told.into()));
    }
    let input = |path: &String| {
        let (file, mut options) = (path.clone(), files.options.clone());
        if resume.is_some() {
            options.head = source::IDENTIFYING_BYTES;
            options.unfinished = true;
        }
        let is_stdin = path == "-";
        Ok(Input {
            name: match is_stdin {
                true => "standard input".into(),
                false => path.clone(),
            },
            open: Arc::new(move || source::open(&file, &options)),
            once: is_stdin,
            identity: resume.map(|resume| identity(resume, path)).transpose()?,
        })
    };
    files.paths.iter().map(input).collect()
}

fn identity(resume: &Resume, path: &str) -> Result<Identity, LoadError> {
    match resume {
        Resume::As(name) => Ok(Identity::Name(name.as_str().into())),
        Resume::ByPath if path == "-" => Err(LoadError::Invalid(
            "standard input has no path by which a load could be continued; give it a name with --resume-as".into(),
        )),
        Resume::ByPath => {
            let found = Path::new(path).canonicalize();
            let found = found.map_err(|error| {
                LoadError::Source(source::SourceFault::Io {
                    name: path.to_owned(),
                    error,
                })
            })?;
            Ok(Identity::Path(found.to_string_lossy().into()))
        }
    }
}

/// Returns the sum of all sizes. `None` if one is unknown, because a part of the sum would give a
/// wrong estimate.
fn sizes(paths: &[String]) -> Option<u64> {
    let size = |path: &String| {
        let about = std::fs::metadata(path).ok()?;
        about.is_file().then_some(about.len())
    };
    paths.iter().map(size).sum()
}

fn invalid(fault: Fault) -> LoadError {
    LoadError::Invalid(fault.message.into_string())
}
