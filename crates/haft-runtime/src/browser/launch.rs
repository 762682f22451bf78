//! Starting a browser: confined like any program that haft runs, so that nothing of it reaches anything but the gate.
//!
//! It has a network of its own whose only way out is the gate's proxy, a root with the system's programs and no home of
//! anybody's, and a profile in memory that goes with it. Chromium's own sandbox cannot be built inside ours, so it is
//! told not to try.

use super::notes::Notes;
use super::stash::{Room, Stash};
use super::tabs::Tabs;
use super::visits::Visits;
use super::wire::Wire;
use super::{Browser, BrowserSettings, Reach};
use crate::confined::{Resident, Terms, explain, machine};
use crate::scene::Scene;
use crate::tool::Staging;
use haft_core::preview::{cut, inert};
use haft_core::web::Rules;
use haft_core::{CallError, ErrorKind};
use haft_sandbox::layer::Layer;
use haft_sandbox::net::{Inside, Told};
use haft_sandbox::{Bounds, Confinement, Level, Network, Program, Writes, roots};
use serde_json::json;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a browser may take to start.
const START: Duration = Duration::from_secs(30);
/// How much of its complaints is kept.
const COMPLAINTS: usize = 2000;
/// Its speech is on the third and fourth descriptor; what it is started with are the first three.
const SHELL: &str = "exec \"$@\" 3<&0 4>&1 1>&2 0</dev/null";
/// The gate's proxy, as it is known inside.
const PROXY: &str = "http://198.18.0.1:3128";
/// Hosts that Chromium asks for by itself, whatever one tells it. Not sent to the proxy they lead nowhere.
pub(super) const OWN_HOSTS: [&str; 4] =
    ["update.googleapis.com", "clients2.google.com", "optimizationguide-pa.googleapis.com", "edgedl.me.gvt1.com"];

const FLAGS: [&str; 27] = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
    "--user-data-dir=/tmp/profile",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-default-apps",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--disable-client-side-phishing-detection",
    "--disable-domain-reliability",
    "--disable-quic",
    "--disable-search-engine-choice-screen",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--no-pings",
    "--mute-audio",
    "--hide-scrollbars",
    "--password-store=basic",
    "--disable-prompt-on-repost",
    "--disable-hang-monitor",
    "--lang=en-US",
    "--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,AutofillServerCommunication,\
     CertificateTransparencyComponentUpdater,NetworkTimeServiceQuerying,HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,\
     AsyncDns,DnsOverHttpsUpgrade",
];

/// What a browser may use up.
fn bounds(settings: &BrowserSettings) -> Bounds {
    Bounds {
        memory: Some(4 << 30),
        processes: Some(1024),
        cpu: Some(Duration::from_hours(4)),
        wall: None,
        file_size: Some(settings.download_bytes.saturating_add(64 << 20)),
        disk: Some(4 << 30),
        output: None,
        temp: 1 << 30,
    }
}

/// Starts a browser for the session of a call.
pub(super) async fn start(scene: &Scene, settings: &BrowserSettings, rules: Rules) -> Result<Browser, CallError> {
    let program = settings.find()?;
    let data_dir = scene.terms().data_dir.clone();
    let machine = machine::known(&data_dir);
    if machine.level != Level::Full {
        let message = format!(
            "a browser runs only where all of it can be confined, and only `{}` is in force here",
            machine.level
        );
        return Err(CallError::new(ErrorKind::Confinement, message).hint("`haft doctor` says what would mend that"));
    }
    let session = &scene.call().session;
    let stash = if machine.layers { Some(stash(scene, session.as_str(), settings.download_bytes)?) } else { None };
    let notes = Arc::new(Notes::new(scene.store().clone(), scene.call().id.clone()));
    let wanted = confinement(&program, stash.as_ref(), settings, rules.clone());
    let wanted = roots::resolve(wanted, Path::new("/")).map_err(|error| explain(&error))?;
    let backend = haft_sandbox::backend();
    let mut plan = backend.plan(wanted).map_err(|error| explain(&error))?;
    let teller = Arc::clone(&notes);
    plan.told = Some(Told::new(move |contact| teller.note(contact)));
    let visits = Arc::new(Visits::default());
    let reach = Reach { open: settings.allow_private.clone(), visits: Arc::clone(&visits) };
    let judge = reach.clone();
    plan.inside = Some(Inside::new(move |target| judge.admits(target)));
    let held = stash.as_ref().map(Stash::staging);
    let (resident, pipes) = Resident::planned(backend, plan, order(&program, settings), held).await?;
    let complaints = listen(pipes.stderr).map_err(|error| no_line(&error))?;
    let tabs = Tabs::new(settings.viewport, settings.download_bytes, visits);
    let wire = Wire::open(pipes.stdin, pipes.stdout, tabs).map_err(|error| no_line(&error))?;
    let (refs, resident) = (Mutex::default(), Mutex::new(Some(resident)));
    let browser = Browser { wire, rules, reach, notes, refs, stash, resident };
    greet(&browser).await.map_err(|error| {
        let said = complaints.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let said = String::from_utf8_lossy(&said);
        let last = said.lines().rev().find(|line| !line.contains("dbus")).unwrap_or_default();
        CallError::failed(format!("the browser did not start: {}; it said: {}", error.message, cut(&inert(last), 300)))
            .hint(format!("{} --version should work; `browser.program` names another", program.display()))
    })?;
    Ok(browser)
}

fn no_line(error: &std::io::Error) -> CallError {
    CallError::internal(format!("no line to the browser: {error}"))
}

/// Where downloads go: what the browser sees is a view, and what it writes there lies in a layer.
fn stash(scene: &Scene, session: &str, most: u64) -> Result<Stash, CallError> {
    let lost = |error: std::io::Error| CallError::internal(format!("no place for downloads: {error}"));
    let data_dir = &scene.terms().data_dir;
    let staging = Staging::create(&Terms::staging_base(data_dir), &scene.call().id).map_err(lost)?;
    let seen = staging.path().join("downloads");
    std::fs::create_dir(&seen).map_err(lost)?;
    let layer = Layer::create(&staging.path().join("0"), &seen).map_err(lost)?;
    let room = Room { data_dir: data_dir.clone(), limits: scene.terms().kept };
    Ok(Stash::new(staging, seen, layer.upper, room, session, most))
}

fn confinement(program: &Path, stash: Option<&Stash>, settings: &BrowserSettings, rules: Rules) -> Confinement {
    const SYSTEM: [&str; 4] = ["/usr", "/bin", "/lib", "/nix/store"];
    let beside = program.parent().filter(|dir| !SYSTEM.iter().any(|system| dir.starts_with(system)));
    let writes = stash.map_or(Writes::Direct, |stash| Writes::Layered(stash.staging().path().to_owned()));
    Confinement {
        read: beside.map(Path::to_owned).into_iter().collect(),
        write: stash.map(|stash| stash.seen().to_owned()).into_iter().collect(),
        network: Network::Web(rules),
        writes,
        bounds: bounds(settings),
        ..Confinement::default()
    }
}

fn order(program: &Path, settings: &BrowserSettings) -> Program {
    let (width, height) = settings.viewport;
    let mut argv: Vec<OsString> = ["/bin/sh", "-c", SHELL, "sh"].map(OsString::from).into();
    argv.push(program.into());
    argv.extend(FLAGS.map(OsString::from));
    argv.push("--headless=new".into());
    argv.push(format!("--window-size={width},{height}").into());
    argv.push(format!("--proxy-server={PROXY}").into());
    argv.push(format!("--proxy-bypass-list=<-loopback>;{}", OWN_HOSTS.join(";")).into());
    argv.push("about:blank".into());
    let env = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", "/home/browser"),
        ("LANG", "C.UTF-8"),
        ("TMPDIR", "/tmp"),
        ("DBUS_SESSION_BUS_ADDRESS", "disabled:"),
    ];
    let env = env.map(|(name, value)| (name.into(), value.into())).into();
    Program { argv, env, shares_job: false, cwd: PathBuf::from("/tmp") }
}

/// Keeps the last that it complains about.
fn listen(stderr: OwnedFd) -> std::io::Result<Arc<Mutex<Vec<u8>>>> {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&kept);
    let work = move || {
        let (mut stderr, mut buffer) = (File::from(stderr), vec![0; 4096]);
        while let Ok(count @ 1..) = stderr.read(&mut buffer) {
            let mut kept = into.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(&buffer[..count]);
            let over = kept.len().saturating_sub(COMPLAINTS);
            kept.drain(..over);
        }
    };
    std::thread::Builder::new().name("haft-browser-err".to_owned()).spawn(work)?;
    Ok(kept)
}

/// Says how it is to behave, and waits for its first page.
async fn greet(browser: &Browser) -> Result<(), CallError> {
    let wire = &browser.wire;
    let refused = |error: String| CallError::failed(error);
    let attach = json!({
        "autoAttach": true,
        "waitForDebuggerOnStart": true,
        "flatten": true,
        "filter": [{ "type": "page" }, { "exclude": true }],
    });
    wire.ask(None, "Target.setAutoAttach", attach, START).await?.map_err(refused)?;
    let downloads = match &browser.stash {
        Some(stash) => json!({ "behavior": "allowAndName", "downloadPath": stash.seen(), "eventsEnabled": true }),
        None => json!({ "behavior": "deny", "eventsEnabled": true }),
    };
    wire.ask(None, "Browser.setDownloadBehavior", downloads, START).await?.map_err(refused)?;
    let ready = wire.until(START, |tabs| tabs.current().filter(|tab| !tab.loader.is_empty()).map(drop)).await;
    ready.ok_or_else(|| CallError::failed("it showed no page"))
}
