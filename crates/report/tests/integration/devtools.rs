//! One browser for all pages that a test program opens: to start Chromium takes more processor time than most pages. It is told what to
//! do by the Chrome DevTools Protocol through pipes, which open no port. It ends with the test program, however that ends, since then
//! the pipes are closed.
#![allow(dead_code, reason = "each of those who include it uses a part of it")]

use super::chromium;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// How long the browser may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Seconds that a page may take for each step, in one window after another: a window of Chromium may cease to draw.
const STEPS: [u64; 3] = [4, 15, 60];
/// How long is waited for a frame of a page after its time has passed.
const FRAME: Duration = Duration::from_millis(300);
/// How often a page may go elsewhere while it is asked for something.
const ANEW: u32 = 10;
/// Milliseconds of a page's time in the end, for what its last frame set off.
const STEP: u32 = 100;
/// A promise that is kept when the page draws.
const DRAWN: &str = "new Promise(requestAnimationFrame)";

/// A page as a browser has rendered it.
pub(crate) struct Seen {
    /// Its elements, as HTML.
    pub(crate) dom: String,
    /// The messages on its console, with exceptions that nothing caught and what the browser itself had to say.
    pub(crate) console: Vec<String>,
}

/// Opens `address` in a window whose page has this size (`1280,1000`), lets `millis` of the page's own time pass, and returns what is
/// there then. That time runs as fast as the page's scripts, and stands still while something is fetched. Nothing is left of the pages
/// that were opened before.
pub(crate) fn open(browser: &Path, address: &str, size: &str, millis: u32) -> Seen {
    static SHARED: OnceLock<Browser> = OnceLock::new();
    SHARED.get_or_init(|| Browser::start(browser)).open(address, size, millis)
}

struct Browser {
    requests: Mutex<Requests>,
    waiting: Arc<Mutex<Waiting>>,
    /// Windows that no test uses.
    windows: Mutex<Vec<Window>>,
    log: Mutex<File>,
}

/// A window with a profile of its own, so that it is in front, and draws, whatever other windows do.
struct Window {
    profile: String,
    /// The tab in which the last page is: without a tab there is no window.
    tab: Option<String>,
}

struct Requests {
    to: ChildStdin,
    last: u64,
}

/// Those who wait for messages. Without the browser nobody waits.
#[derive(Default)]
struct Waiting {
    ended: bool,
    /// For the answer to a request.
    answers: HashMap<u64, Sender<Value>>,
    /// For the events of a session.
    events: HashMap<String, Sender<Value>>,
}

impl Browser {
    fn start(browser: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap().keep();
        let log = tempfile::tempfile().unwrap();
        // Chromium reads requests from descriptor 3 and writes answers to 4. The shell removes the profile once the browser has ended.
        let around = "trap : INT TERM; folder=$1; shift; \"$@\" 3<&0 4>&1 </dev/null >/dev/null; exec >/dev/null; rm -rf \"$folder\"";
        let mut started = Command::new("sh")
            .args(["-c", around, "sh"])
            .args([&folder, browser])
            .args(chromium::QUIET)
            .args([
                "--remote-debugging-pipe",
                "--disable-features=BackForwardCache",
                "--disable-backgrounding-occluded-windows",
                "--disable-renderer-backgrounding",
            ])
            .arg(format!("--user-data-dir={}", folder.join("profile").display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log.try_clone().unwrap())
            .spawn()
            .unwrap();
        let waiting = Arc::<Mutex<Waiting>>::default();
        let (to, from) = (started.stdin.take().unwrap(), started.stdout.take().unwrap());
        let told = waiting.clone();
        std::thread::spawn(move || {
            hand_out(BufReader::new(from), &told);
            *told.lock().unwrap() = Waiting { ended: true, ..Waiting::default() };
            started.wait().unwrap();
        });
        let requests = Mutex::new(Requests { to, last: 0 });
        Self { requests, waiting, windows: Mutex::default(), log: Mutex::new(log) }
    }

    fn open(&self, address: &str, size: &str, millis: u32) -> Seen {
        let mut why = vec![];
        for patience in STEPS {
            let idle = self.windows.lock().unwrap().pop();
            let mut window = idle.unwrap_or_else(|| Window { profile: self.profile(), tab: None });
            // Only in a new tab the clock runs as it does outside until its page has loaded and drawn.
            let blank = json!({ "url": "about:blank", "browserContextId": window.profile });
            let tab = text(&self.ask("Target.createTarget", blank)["targetId"]);
            let mut session = Session::new(self, &tab, Duration::from_secs(patience));
            if let Some(old) = window.tab.replace(tab) {
                self.ask("Target.closeTarget", json!({ "targetId": old }));
            }
            let seen = session.open(address, size, millis);
            session.end();
            match seen {
                Ok(seen) => {
                    self.windows.lock().unwrap().push(window);
                    return seen;
                }
                Err(error) => why.push(error),
            }
            self.ask("Target.disposeBrowserContext", json!({ "browserContextId": window.profile }));
        }
        panic!("{address} is not at rest: {why:?}: {}", self.said());
    }

    fn profile(&self) -> String {
        text(&self.ask("Target.createBrowserContext", json!({}))["browserContextId"])
    }

    /// The answer to a request that concerns no page.
    fn ask(&self, method: &str, parameters: Value) -> Value {
        let answer = self.send(None, method, parameters).recv_timeout(PATIENCE);
        result(method, &answer.unwrap_or_else(|error| panic!("{method}: {error}: {}", self.said())))
    }

    /// Sends a request. The answer comes over the channel.
    fn send(&self, session: Option<&str>, method: &str, parameters: Value) -> Receiver<Value> {
        let (sender, answer) = channel();
        let mut requests = self.requests.lock().unwrap();
        requests.last += 1;
        self.wait_for(|waiting| waiting.answers.insert(requests.last, sender));
        let mut message = json!({ "id": requests.last, "method": method, "params": parameters });
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let sent = requests.to.write_all(format!("{message}\0").as_bytes());
        drop(requests);
        sent.unwrap_or_else(|error| panic!("{method}: {error}: {}", self.said()));
        answer
    }

    fn wait_for<T>(&self, enter: impl FnOnce(&mut Waiting) -> T) {
        let mut waiting = self.waiting.lock().unwrap();
        if !waiting.ended {
            enter(&mut waiting);
        }
    }

    /// What Chromium has written to its stderr.
    fn said(&self) -> String {
        let (mut log, mut said) = (self.log.lock().unwrap(), vec![]);
        log.rewind().unwrap();
        log.read_to_end(&mut said).unwrap();
        String::from_utf8_lossy(&said).into_owned()
    }
}

/// Hands each message of the browser to the one who waits for it, until the browser ends.
fn hand_out(mut from: impl BufRead, waiting: &Mutex<Waiting>) {
    let mut message = vec![];
    while from.read_until(0, &mut message).is_ok_and(|length| length > 0) {
        let Ok(told) = serde_json::from_slice::<Value>(message.strip_suffix(b"\0").unwrap_or(&message))
        else {
            return;
        };
        message.clear();
        let mut waiting = waiting.lock().unwrap();
        // One who has given up does not listen any more.
        if let Some(sender) = told["id"].as_u64().and_then(|id| waiting.answers.remove(&id)) {
            let _ = sender.send(told);
        } else if let Some(sender) = told["sessionId"].as_str().and_then(|id| waiting.events.get(id)) {
            let _ = sender.send(told);
        }
    }
}

/// What is done in a window for one page. What was set for it ends with it. An error is a window that has answered nothing for too
/// long.
struct Session<'a> {
    browser: &'a Browser,
    id: String,
    patience: Duration,
    events: Receiver<Value>,
    console: Vec<String>,
}

impl<'a> Session<'a> {
    fn new(browser: &'a Browser, window: &str, patience: Duration) -> Self {
        let to_window = json!({ "targetId": window, "flatten": true });
        let id = text(&browser.ask("Target.attachToTarget", to_window)["sessionId"]);
        let (sender, events) = channel();
        browser.wait_for(|waiting| waiting.events.insert(id.clone(), sender));
        Self { browser, id, patience, events, console: vec![] }
    }

    fn open(&mut self, address: &str, size: &str, millis: u32) -> Result<Seen, String> {
        let (width, height) = size.split_once(',').unwrap();
        let [width, height] = [width, height].map(|number| number.parse::<u32>().unwrap());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.ask(&format!("{domain}.enable"), json!({}))?;
        }
        self.ask("Network.setCacheDisabled", json!({ "cacheDisabled": true }))?;
        // All pages from disk share one storage.
        let forget = "try { localStorage.clear(); sessionStorage.clear() } catch { }";
        self.ask("Page.addScriptToEvaluateOnNewDocument", json!({ "source": forget }))?;
        let screen = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.ask("Emulation.setDeviceMetricsOverride", screen)?;
        self.ask("Emulation.setFocusEmulationEnabled", json!({ "enabled": true }))?;
        let opened = self.ask("Page.navigate", json!({ "url": address }))?;
        assert_eq!(opened["errorText"], Value::Null, "{address}");
        self.evaluate("new Promise((done) => document.readyState === 'complete' ? done() : addEventListener('load', done))")?;
        // Sizes are observed when a frame is drawn.
        self.evaluate(DRAWN)?;
        for millis in [millis, STEP] {
            self.pass(millis)?;
            // While time stands still, not every page draws.
            let _ = self.send(DRAWN).recv_timeout(FRAME);
        }
        let dom = text(&self.evaluate("document.documentElement.outerHTML")?);
        while let Ok(event) = self.events.try_recv() {
            self.note(&event);
        }
        Ok(Seen { dom, console: std::mem::take(&mut self.console) })
    }

    /// Lets time pass for the page, as fast as its scripts run.
    fn pass(&mut self, millis: u32) -> Result<(), String> {
        let policy = "pauseIfNetworkFetchesPending";
        let budget =
            json!({ "policy": policy, "budget": millis, "maxVirtualTimeTaskStarvationCount": 10_000 });
        self.ask("Emulation.setVirtualTimePolicy", budget)?;
        loop {
            let event = self
                .events
                .recv_timeout(self.patience)
                .map_err(|error| format!("{millis} ms of time: {error}"))?;
            if event["method"] == "Emulation.virtualTimeBudgetExpired" {
                return Ok(());
            }
            self.note(&event);
        }
    }

    /// The value of an expression on the page, or of the promise that it is. A page that went elsewhere meanwhile is asked again.
    fn evaluate(&self, expression: &str) -> Result<Value, String> {
        for _ in 0..ANEW {
            let answer = self.send(expression).recv_timeout(self.patience);
            let answer = answer.map_err(|error| format!("{expression}: {error}"))?;
            if answer["error"].is_null() {
                return Ok(answer["result"]["result"]["value"].clone());
            }
        }
        Err(format!("{expression}: the page goes elsewhere"))
    }

    fn send(&self, expression: &str) -> Receiver<Value> {
        let question = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        self.browser.send(Some(&self.id), "Runtime.evaluate", question)
    }

    fn ask(&self, method: &str, parameters: Value) -> Result<Value, String> {
        let answer = self.browser.send(Some(&self.id), method, parameters).recv_timeout(self.patience);
        answer.map(|answer| result(method, &answer)).map_err(|error| format!("{method}: {error}"))
    }

    /// Keeps the message of an event of the console.
    fn note(&mut self, event: &Value) {
        let kinds = ["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"];
        if kinds.iter().any(|kind| event["method"] == *kind) {
            self.console.push(event["params"].to_string());
        }
    }

    fn end(self) {
        self.browser.ask("Target.detachFromTarget", json!({ "sessionId": self.id }));
        self.browser.wait_for(|waiting| waiting.events.remove(&self.id));
    }
}

/// What an answer holds.
fn result(method: &str, answer: &Value) -> Value {
    assert_eq!(answer["error"], Value::Null, "{method}");
    answer["result"].clone()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}
