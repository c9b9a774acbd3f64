//! A real Chromium without a window, driven over a pipe by its own protocol (DevTools).

#![expect(
    clippy::indexing_slicing,
    reason = "what is not there in a value of JSON is null"
)]

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// The names that it is installed under.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The time limit of one command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// Chromium with one page. It ends when it is dropped.
#[derive(Debug)]
pub struct Browser {
    _child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    session: Option<String>,
    next: u64,
    _profile: TempDir,
}

impl Browser {
    /// Starts it with an empty profile; `None` if it is not installed.
    ///
    /// # Errors
    /// It does not start, or does not answer.
    pub async fn start() -> Result<Option<Self>> {
        let Some(program) = NAMES.into_iter().find(|name| is_installed(name)) else {
            return Ok(None);
        };
        let profile = tempfile::tempdir()?;
        // It reads commands from descriptor 3 and answers on 4.
        let mut child = Command::new("sh")
            .args([
                "-c",
                "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1",
                "sh",
                program,
            ])
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
            ])
            .args([
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (commands, answers) = (child.stdin.take(), child.stdout.take());
        let mut browser = Self {
            commands: commands.context("it has no input")?,
            answers: BufReader::new(answers.context("it has no output")?),
            _child: child,
            session: None,
            next: 0,
            _profile: profile,
        };
        let made = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let target = made.await?["targetId"].clone();
        let how = json!({ "targetId": target, "flatten": true });
        let attached = browser.call("Target.attachToTarget", how).await?;
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        browser.call("Page.enable", json!({})).await?;
        Ok(Some(browser))
    }

    /// Goes to a page and waits until all of it is there.
    ///
    /// # Errors
    /// It cannot be reached.
    pub async fn open(&mut self, url: &str) -> Result<()> {
        let gone = self.call("Page.navigate", json!({ "url": url })).await?;
        match gone["errorText"].as_str() {
            Some(error) => bail!("{url}: {error}"),
            None => self.until("document.readyState === 'complete'").await,
        }
    }

    /// Makes the window so large, in CSS pixels, and prefers dark or light colours.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn look(&mut self, (width, height): (u32, u32), dark: bool) -> Result<()> {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", size)
            .await?;
        let scheme = if dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", media).await?;
        Ok(())
    }

    /// Lets no request through whose URL is like this (`*` stands for anything).
    ///
    /// # Errors
    /// It does not answer.
    pub async fn without(&mut self, url: &str) -> Result<()> {
        self.call("Network.enable", json!({})).await?;
        let blocked = json!({ "urls": [url] });
        self.call("Network.setBlockedURLs", blocked).await?;
        Ok(())
    }

    /// Returns the value of an expression; a promise is waited for.
    ///
    /// # Errors
    /// The expression throws, or takes longer than a minute.
    pub async fn evaluate(&mut self, expression: &str) -> Result<Value> {
        let how = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut given = self.call("Runtime.evaluate", how).await?;
        if let Some(thrown) = given.get("exceptionDetails") {
            bail!("{expression}: {thrown}");
        }
        Ok(given["result"]["value"].take())
    }

    /// Waits until an expression is true.
    ///
    /// # Errors
    /// It is not within a minute.
    pub async fn until(&mut self, expression: &str) -> Result<()> {
        let waited = format!(
            "new Promise(done => {{ const look = () => ({expression}) ? done(true) : setTimeout(look, 50); look(); }})"
        );
        let waited = self.evaluate(&waited).await;
        waited.with_context(|| format!("waiting for {expression}"))?;
        Ok(())
    }

    /// Presses a key and lets it go.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn press(&mut self, key: &str, code: u32) -> Result<()> {
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let event = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text });
            self.call("Input.dispatchKeyEvent", event).await?;
        }
        Ok(())
    }

    /// Types into what has the focus.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn write(&mut self, text: &str) -> Result<()> {
        self.call("Input.insertText", json!({ "text": text }))
            .await?;
        Ok(())
    }

    /// Returns a picture of the whole page (PNG).
    ///
    /// # Errors
    /// It gives none.
    pub async fn picture(&mut self) -> Result<Vec<u8>> {
        self.capture(json!({ "format": "png", "captureBeyondViewport": true }))
            .await
    }

    /// Returns a picture of the whole page that takes little room in a book (WebP, of two thirds
    /// its size).
    ///
    /// # Errors
    /// It gives none.
    pub async fn small_picture(&mut self) -> Result<Vec<u8>> {
        let page = self.call("Page.getLayoutMetrics", json!({})).await?;
        let size = &page["cssContentSize"];
        let clip = json!({ "x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 0.667 });
        let how =
            json!({ "format": "webp", "quality": 70, "captureBeyondViewport": true, "clip": clip });
        self.capture(how).await
    }

    async fn capture(&mut self, how: Value) -> Result<Vec<u8>> {
        let taken = self.call("Page.captureScreenshot", how).await?;
        let data = taken["data"].as_str().context("there is no picture")?;
        Ok(STANDARD.decode(data)?)
    }

    async fn call(&mut self, method: &str, params: Value) -> Result<Value> {
        let answered = timeout(COMMAND_TIMEOUT, self.exchange(method, params)).await;
        answered.with_context(|| format!("{method} has no answer"))?
    }

    async fn exchange(&mut self, method: &str, params: Value) -> Result<Value> {
        self.next += 1;
        let id = self.next;
        let mut command = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        let mut bytes = command.to_string().into_bytes();
        bytes.push(0);
        self.commands.write_all(&bytes).await?;
        loop {
            let mut bytes = Vec::new();
            self.answers.read_until(0, &mut bytes).await?;
            if bytes.pop().is_none() {
                bail!("Chromium has ended");
            }
            let mut said: Value = serde_json::from_slice(&bytes)?;
            // All else are events that nobody waits for.
            if said["id"] == id {
                if let Some(error) = said.get("error") {
                    bail!("{method}: {error}");
                }
                return Ok(said["result"].take());
            }
        }
    }
}

fn is_installed(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}
