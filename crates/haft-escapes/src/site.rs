//! The place where an act happens: a project, what may be read, what may not, and listeners that should
//! hear nothing. Every run has its own, so that runs do not see each other's traces.

use crate::acts::Prop;
use crate::acts::read::handle_of;
use crate::attack::MARK;
use crate::props::Props;
use crate::snapshot;
use crate::sys::{self, at, c, call, int, into};
use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Whoever runs haft.
pub(crate) struct Identity {
    pub(crate) name: &'static str,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Where its sites are.
    pub(crate) base: PathBuf,
    /// Copies that it may read.
    pub(crate) haft: PathBuf,
    pub(crate) attacker: PathBuf,
}

/// See the module.
pub(crate) struct Site {
    pub(crate) dir: PathBuf,
    /// What attackers and flags may name.
    pub(crate) facts: Vec<(String, String)>,
    pub(crate) token: String,
    pub(crate) props: Props,
    ears: Ears,
    before: Traces,
}

/// Everything that listens.
#[derive(Default)]
struct Ears {
    tcp: Vec<TcpListener>,
    udp: Vec<UdpSocket>,
    unix: Vec<UnixListener>,
    datagrams: Vec<UnixDatagram>,
    fifos: Vec<OwnedFd>,
    /// What a run inherits, and the other end of its socket.
    inherited: Vec<(OwnedFd, i32)>,
    pair: Option<UnixStream>,
    tmp_socket: PathBuf,
}

/// What is compared after a run.
#[derive(PartialEq, Eq)]
struct Traces {
    outside: String,
    protected: String,
    project: String,
}

static COUNT: AtomicUsize = AtomicUsize::new(0);

impl Site {
    pub(crate) fn new(who: &Identity, prop: Prop) -> std::io::Result<Self> {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = who.base.join(format!("s{number}"));
        let token = format!("{MARK}{}-{number}", nonce());
        trees(&dir, &token)?;
        let (ears, mut facts) = listen(&dir, number)?;
        for name in ["project", "reading", "outside", "home"] {
            facts.push((name.to_owned(), dir.join(name).display().to_string()));
        }
        facts.push(("marker".to_owned(), format!("lingering-{}-{number}", std::process::id())));
        facts.push(("attacker".to_owned(), who.attacker.display().to_string()));
        if let Ok(handle) = handle_of(dir.join("outside/secret.txt")) {
            facts.push(("handle".to_owned(), handle.iter().map(|byte| format!("{byte:02x}")).collect()));
        }
        give(&dir, who)?;
        let props = Props::new(who, prop, &dir, &token)?;
        facts.extend(props.facts.iter().cloned());
        let before = traces(&dir);
        Ok(Self { dir, facts, token, props, ears, before })
    }

    /// A text with every `{key}` replaced by what the site has of that name.
    pub(crate) fn fill(&self, text: &str) -> String {
        self.facts.iter().fold(text.to_owned(), |text, (key, value)| text.replace(&format!("{{{key}}}"), value))
    }

    pub(crate) fn fact(&self, key: &str) -> &str {
        self.facts.iter().find(|(name, _)| name == key).map_or("", |(_, value)| value)
    }

    /// Descriptors that a careless caller leaves open.
    pub(crate) fn inherited(&self) -> Vec<(i32, i32)> {
        self.ears.inherited.iter().map(|(fd, number)| (fd.as_raw_fd(), *number)).collect()
    }

    pub(crate) fn is_changed(&self) -> bool {
        traces(&self.dir).outside != self.before.outside
    }

    pub(crate) fn is_kept(&self) -> bool {
        traces(&self.dir).project != self.before.project
    }

    pub(crate) fn lost_protection(&self) -> bool {
        traces(&self.dir).protected != self.before.protected
    }

    /// Whether any listener has heard anything.
    pub(crate) fn is_reached(&self) -> bool {
        let mut buffer = [0u8; 64];
        let ears = &self.ears;
        let pair = ears.pair.as_ref().is_some_and(|mut pair| pair.read(&mut buffer).is_ok_and(|length| length > 0));
        let heard = |fd: &OwnedFd| {
            let mut byte = [0u8; 16];
            call(libc::SYS_read, &[int(fd.as_raw_fd()), into(&mut byte), 16]).is_ok_and(|length| length > 0)
        };
        pair || ears.tcp.iter().any(|ear| ear.accept().is_ok())
            || ears.unix.iter().any(|ear| ear.accept().is_ok())
            || ears.udp.iter().any(|ear| ear.recv(&mut [0u8; 64]).is_ok())
            || ears.datagrams.iter().any(|ear| ear.recv(&mut [0u8; 64]).is_ok())
            || ears.fifos.iter().any(heard)
    }

    /// Processes that the run left behind; they are ended here.
    pub(crate) fn lingering(&self) -> bool {
        let marker = self.fact("marker").as_bytes();
        let mut found = false;
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let mut words = line.split(|byte| *byte == 0).skip(1);
            if words.next() == Some(b"--linger") && words.next() == Some(marker) {
                found = true;
                let _ = call(libc::SYS_kill, &[int(pid), 9]);
            }
        }
        found
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.ears.tmp_socket);
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn nonce() -> String {
    let mut bytes = [0u8; 8];
    let _ = call(libc::SYS_getrandom, &[into(&mut bytes), 8, 0]);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn traces(dir: &Path) -> Traces {
    let mut outside = String::new();
    for name in ["outside", "reading", "home/.ssh"] {
        let _ = writeln!(outside, "{}", snapshot::whole(&dir.join(name)));
    }
    let mut protected = snapshot::protected(&dir.join("project"));
    protected.push_str(&snapshot::start_files(&dir.join("home")));
    Traces { outside, protected, project: snapshot::whole(&dir.join("project")) }
}

/// Every file of a fresh site.
fn trees(dir: &Path, token: &str) -> std::io::Result<()> {
    let put = |path: &str, text: &str| {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap_or(dir))?;
        fs::write(path, text)
    };
    for path in
        ["outside/empty", "project/dir", "project/.git/hooks", "project/.git/refs/heads", "project/.git/objects"]
    {
        fs::create_dir_all(dir.join(path))?;
    }
    fs::create_dir_all(dir.join("project/sub/.git"))?;
    put("outside/secret.txt", &format!("{token}\n"))?;
    put("outside/data.txt", "as it was\n")?;
    put(&format!("outside/{token}"), "a name\n")?;
    put("outside/tool", &format!("#!/bin/sh\necho {token}\n"))?;
    fs::set_permissions(dir.join("outside/tool"), fs::Permissions::from_mode(0o755))?;
    symlink(token, dir.join("outside/pointer"))?;
    put("reading/data.txt", "as it was\n")?;
    put("home/.ssh/id_ed25519", &format!("{token}\n"))?;
    put("home/.bashrc", "# as it was\n")?;
    put("home/.local/share/haft/notes.txt", &format!("{token}\n"))?;
    put("project/file.txt", "as it was\n")?;
    put("project/dir/data.txt", "as it was\n")?;
    put("project/kept/file.txt", "as it was\n")?;
    put("project/.git/HEAD", "ref: refs/heads/main\n")?;
    put("project/.git/config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n")?;
    put("project/.git/hooks/post-merge", "#!/bin/sh\n")?;
    put("project/sub/.git/HEAD", "ref: refs/heads/main\n")?;
    put("project/.haft/config.yml", "# as it was\n")?;
    symlink("../outside", dir.join("project/planted"))?;
    symlink("../outside/data.txt", dir.join("project/planted.txt"))?;
    let (path, name) = (c(dir.join("outside/secret.txt")), c("user.note"));
    // A file system without attributes makes the acts on them inapplicable, no more.
    let args = [path.as_ptr() as usize, name.as_ptr() as usize, at(token.as_bytes()), token.len(), 0];
    let _ = call(libc::SYS_setxattr, &args);
    Ok(())
}

/// An address of this machine that is not the loopback; nothing is sent to learn it.
fn own_address() -> Option<Ipv4Addr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    match socket.local_addr().ok()? {
        SocketAddr::V4(address) if !address.ip().is_loopback() => Some(*address.ip()),
        _ => None,
    }
}

fn listen(dir: &Path, number: usize) -> std::io::Result<(Ears, Vec<(String, String)>)> {
    let mut ears = Ears::default();
    let mut facts = Vec::new();
    let mut tell = |key: &str, value: String| facts.push((key.to_owned(), value));
    let tcp = TcpListener::bind("127.0.0.1:0")?;
    let udp = UdpSocket::bind("127.0.0.1:0")?;
    tell("tcp4", tcp.local_addr()?.port().to_string());
    tell("forbidden", tcp.local_addr()?.to_string());
    tell("udp", udp.local_addr()?.port().to_string());
    // A port that is free now, for the way back.
    tell("back", TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string());
    ears.tcp.push(tcp);
    ears.udp.push(udp);
    if let Ok(v6) = TcpListener::bind("[::1]:0") {
        tell("tcp6", v6.local_addr()?.port().to_string());
        ears.tcp.push(v6);
    }
    if let Some(own) = own_address() {
        let (tcp, udp) = (TcpListener::bind((own, 0))?, UdpSocket::bind((own, 0))?);
        tell("own", tcp.local_addr()?.to_string());
        tell("own_udp", udp.local_addr()?.to_string());
        ears.tcp.push(tcp);
        ears.udp.push(udp);
    }
    let hidden = format!("haft-escape-{}-{number}", std::process::id());
    let name = std::os::unix::net::SocketAddr::from_abstract_name(&hidden)?;
    ears.unix.push(UnixListener::bind_addr(&name)?);
    tell("abstract", hidden.clone());
    ears.tmp_socket = Path::new("/tmp").join(format!("{hidden}.sock"));
    tell("tmp_socket", ears.tmp_socket.display().to_string());
    for path in
        [dir.join("outside/s.sock"), dir.join("reading/s.sock"), dir.join("project/s.sock"), ears.tmp_socket.clone()]
    {
        ears.unix.push(UnixListener::bind(&path)?);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777))?;
    }
    for path in ["reading/d.sock", "project/d.sock"] {
        ears.datagrams.push(UnixDatagram::bind(dir.join(path))?);
    }
    for place in ["outside", "reading", "project"] {
        let path = dir.join(place).join("fifo");
        sys::on(libc::SYS_mknod, &path, &[(libc::S_IFIFO | 0o666) as usize, 0])?;
        ears.fifos.push(sys::own(sys::open(&path, libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC)?));
    }
    ears.hush()?;
    leave_open(dir, &mut ears)?;
    Ok((ears, facts))
}

impl Ears {
    /// Nobody waits for what should not come.
    fn hush(&self) -> std::io::Result<()> {
        self.tcp.iter().try_for_each(|ear| ear.set_nonblocking(true))?;
        self.udp.iter().try_for_each(|ear| ear.set_nonblocking(true))?;
        self.unix.iter().try_for_each(|ear| ear.set_nonblocking(true))?;
        self.datagrams.iter().try_for_each(|ear| ear.set_nonblocking(true))
    }
}

fn leave_open(dir: &Path, ears: &mut Ears) -> std::io::Result<()> {
    let open = |path: &str, flags: i32| sys::open(dir.join(path), flags | libc::O_CLOEXEC).map(sys::own);
    ears.inherited.push((open("outside/secret.txt", libc::O_RDONLY)?, 3));
    ears.inherited.push((open("outside", libc::O_RDONLY | libc::O_DIRECTORY)?, 4));
    ears.inherited.push((open("outside/data.txt", libc::O_RDWR)?, 5));
    ears.inherited.push((open("outside/data.txt", libc::O_RDWR)?, 300));
    let (mine, theirs) = UnixStream::pair()?;
    mine.set_nonblocking(true)?;
    ears.pair = Some(mine);
    ears.inherited.push((theirs.into(), 8));
    Ok(())
}

/// Everything belongs to whoever runs haft.
fn give(dir: &Path, who: &Identity) -> std::io::Result<()> {
    std::os::unix::fs::lchown(dir, Some(who.uid), Some(who.gid))?;
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let kind = fs::symlink_metadata(&path)?;
        if kind.is_dir() {
            give(&path, who)?;
        } else {
            std::os::unix::fs::lchown(&path, Some(who.uid), Some(who.gid))?;
        }
    }
    Ok(())
}
