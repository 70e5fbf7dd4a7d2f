//! Headless Chromium, driven by chromedriver over the `WebDriver` protocol.
#![allow(unreachable_pub, clippy::unwrap_used, clippy::print_stderr)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};
use tempfile::TempDir;
use wincimg_testkit::component;

/// A browser with one page, closed on drop.
pub struct Browser {
    client: Client,
    session: String,
    port: u16,
    driver: Child,
    _profile: TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Chromedriver stops Chromium only when asked to, not when killed.
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
            let (_, path) = self.session.split_once("/session").unwrap();
            let _ = write!(
                stream,
                "DELETE /session{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
            );
            let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
            // The first bytes of the response show that it is done.
            let _ = stream.read(&mut [0; 64]);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Key of an element reference in `WebDriver`'s JSON.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

impl Browser {
    /// Starts a browser.
    pub async fn start() -> Self {
        let (driver, chromium) = (component("chromedriver"), component("chromium"));
        let mut driver = Command::new(driver)
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port: u16 = loop {
            let line = lines.next().unwrap().unwrap();
            if let Some((_, port)) = line.split_once("successfully on port ") {
                break port.trim_end_matches('.').parse().unwrap();
            }
        };
        // Drains chromedriver's output, so that it does not block.
        std::thread::spawn(move || lines.for_each(drop));
        let profile = tempfile::tempdir().unwrap();
        let data = format!("--user-data-dir={}", profile.path().display());
        let capabilities = json!({"capabilities": {"alwaysMatch": {
            "goog:loggingPrefs": {"browser": "ALL"},
            "goog:chromeOptions": {"binary": chromium, "args": [
                "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--disable-sync",
                "--disable-dev-shm-usage", "--window-size=1600,1100", data,
            ]},
        }}});
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().no_proxy().build().unwrap();
        let mut browser = Self {
            client,
            session: format!("http://127.0.0.1:{port}/session"),
            port,
            driver,
            _profile: profile,
        };
        let created = browser.post("", &capabilities).await;
        let id = created["sessionId"].as_str().unwrap();
        browser.session = format!("http://127.0.0.1:{port}/session/{id}");
        browser
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let request = self
            .client
            .post(format!("{}{path}", self.session))
            .json(body);
        let answer: Value = request.send().await.unwrap().json().await.unwrap();
        let value = answer["value"].clone();
        assert!(value["error"].is_null(), "{path}: {value}");
        value
    }

    async fn element(&self, selector: &str) -> String {
        let query = json!({"using": "css selector", "value": selector});
        let element = self.post("/element", &query).await;
        element[ELEMENT].as_str().unwrap().to_owned()
    }

    /// Opens a file.
    pub async fn open(&self, page: &Path) {
        self.open_at(page, "").await;
    }

    /// Opens a file at an anchor.
    pub async fn open_at(&self, page: &Path, place: &str) {
        // A new anchor alone would not reload the page.
        self.post("/url", &json!({"url": "about:blank"})).await;
        let url = format!("file://{}{place}", page.display());
        self.post("/url", &json!({"url": url})).await;
    }

    /// Runs a script in the page and returns its result.
    pub async fn eval(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({"script": script, "args": []}))
            .await
    }

    /// Waits until a script returns true.
    pub async fn wait_for(&self, script: &str) {
        for _ in 0..100 {
            if self.eval(script).await == true {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("never came true: {script}");
    }

    /// Waits for this number of matching elements.
    pub async fn wait_for_count(&self, selector: &str, count: u64) {
        let script = format!("return document.querySelectorAll('{selector}').length === {count}");
        self.wait_for(&script).await;
    }

    /// The text of the first element.
    pub async fn text(&self, selector: &str) -> String {
        let element = json!({"script": "return document.querySelector(arguments[0]).innerText", "args": [selector]});
        let text = self.post("/execute/sync", &element).await;
        text.as_str().unwrap().to_owned()
    }

    /// Number of matching elements.
    pub async fn count(&self, selector: &str) -> u64 {
        let query = json!({"script": "return document.querySelectorAll(arguments[0]).length", "args": [selector]});
        self.post("/execute/sync", &query).await.as_u64().unwrap()
    }

    /// Clicks an element.
    pub async fn click(&self, selector: &str) {
        let element = self.element(selector).await;
        self.post(&format!("/element/{element}/click"), &json!({}))
            .await;
    }

    /// Types into a field.
    pub async fn type_into(&self, selector: &str, text: &str) {
        let element = self.element(selector).await;
        self.post(&format!("/element/{element}/value"), &json!({"text": text}))
            .await;
    }

    /// Presses keys in the focused element.
    pub async fn press(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                [
                    json!({"type": "keyDown", "value": key}),
                    json!({"type": "keyUp", "value": key}),
                ]
            })
            .collect();
        let keyboard = json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]});
        self.post("/actions", &keyboard).await;
    }

    /// A screenshot as base64.
    pub async fn screenshot(&self) -> String {
        let answer = self.client.get(format!("{}/screenshot", self.session));
        let answer: Value = answer.send().await.unwrap().json().await.unwrap();
        answer["value"].as_str().unwrap().to_owned()
    }

    /// Messages in the page's console so far.
    pub async fn complaints(&self) -> Vec<String> {
        let entries = self.post("/se/log", &json!({"type": "browser"})).await;
        let entries = entries.as_array().unwrap().iter();
        entries
            .map(|entry| entry["message"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Number of resources that the page fetched.
    pub async fn fetched(&self) -> u64 {
        let count = self
            .eval("return performance.getEntriesByType('resource').length")
            .await;
        count.as_u64().unwrap()
    }

    async fn devtools(&self, command: &str, parameters: Value) -> Value {
        self.post(
            "/goog/cdp/execute",
            &json!({"cmd": command, "params": parameters}),
        )
        .await
    }

    /// Sets the size of the window.
    pub async fn resize(&self, width: u64, height: u64) {
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600,
        });
        self.devtools("Emulation.setDeviceMetricsOverride", size)
            .await;
    }

    /// A screenshot of the whole page at its current width, as base64.
    pub async fn whole_page(&self) -> String {
        let height = self
            .eval("return Math.min(document.documentElement.scrollHeight, 8000)")
            .await;
        let width = self.eval("return innerWidth").await;
        self.resize(width.as_u64().unwrap(), height.as_u64().unwrap())
            .await;
        self.screenshot().await
    }

    /// Hides scrollbars, for pictures.
    pub async fn hide_scrollbars(&self) {
        self.devtools("Emulation.setScrollbarsHidden", json!({"hidden": true}))
            .await;
    }

    /// Sets the preferred colour scheme, light or dark.
    pub async fn prefer(&self, scheme: &str) {
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.devtools("Emulation.setEmulatedMedia", features).await;
    }

    /// Shows the page's print layout on A4.
    pub async fn emulate_print(&self) {
        self.resize(794, 1123).await;
        let media = json!({"media": "print"});
        self.devtools("Emulation.setEmulatedMedia", media).await;
        self.eval("dispatchEvent(new Event('beforeprint'))").await;
    }

    /// Role and name of every node in the accessibility tree.
    pub async fn accessibility_tree(&self) -> Vec<(String, String)> {
        self.devtools("Accessibility.enable", json!({})).await;
        let tree = self
            .devtools("Accessibility.getFullAXTree", json!({}))
            .await;
        let text = |value: &Value| value["value"].as_str().unwrap_or_default().to_owned();
        let nodes = tree["nodes"].as_array().unwrap().iter();
        nodes
            .filter(|node| node["ignored"] == false)
            .map(|node| (text(&node["role"]), text(&node["name"])))
            .collect()
    }
}
