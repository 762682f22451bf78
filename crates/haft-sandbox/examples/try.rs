//! x
use haft_sandbox::*;
use std::time::{Duration, Instant};
fn main() {
    let t = Instant::now();
    let b = backend();
    let m = b.machine();
    eprintln!("{m:#?} {:?}", t.elapsed());
    let cwd = std::env::current_dir().unwrap();
    let dir = std::env::args().nth(1).unwrap();
    let mut c = Confinement { write: vec![cwd.clone()], bounds: Bounds::default(), ..Default::default() };
    if dir != "-" { std::fs::create_dir_all(format!("{dir}/0/upper")).unwrap(); std::fs::create_dir_all(format!("{dir}/0/work")).unwrap(); c.writes = Writes::Layered((&dir).into()); }
    let c = roots::resolve(c, &cwd).unwrap();
    let plan = b.plan(c).unwrap();
    let env = vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()), ("HOME".into(), "/home/me".into())];
    let argv: Vec<std::ffi::OsString> = std::env::args_os().skip(2).collect();
    let program = Program { argv, env, cwd };
    for _ in 0..20 {
    let t = Instant::now();
    let (out, w) = watch::pipe().unwrap();
    let (err, w2) = watch::pipe().unwrap();
    let mut run = b.start(&plan, &program, Stdio { stdin: watch::nothing().unwrap(), stdout: w, stderr: w2 }).unwrap();
    let got = watch::watch(&mut *run, watch::Watch { bounds: plan.bounds(), pipes: vec![out, err], stop: &|| false, signal: &|| None, wake: None, grace: Duration::from_secs(1) }).unwrap();
    eprintln!("{:?} {:?} {:?} {}{}", t.elapsed(), got.end, got.hit, String::from_utf8_lossy(&got.output[0]), String::from_utf8_lossy(&got.output[1]));
    if dir != "-" { break }
    }
}
