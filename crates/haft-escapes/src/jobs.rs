//! Ordinary work that confinement must not break. A job whose program is not on this machine is skipped,
//! and one that fails without confinement proves nothing.

use crate::acts::Prop;
use crate::judge::Verdict;
use crate::run::{self, Mode};
use crate::site::{Identity, Site};
use std::path::Path;

/// A shell script that says `done` when all went well.
pub(crate) struct Job {
    pub(crate) name: &'static str,
    /// Programs without which it cannot be tried.
    needs: &'static [&'static str],
    script: &'static str,
    flags: &'static [&'static str],
    /// A file of the project that must be there afterwards.
    kept: Option<&'static str>,
    /// Where it differs without confinement, what is run there instead.
    free: Option<&'static str>,
    prop: Prop,
}

const fn job(name: &'static str, needs: &'static [&'static str], script: &'static str) -> Job {
    Job { name, needs, script, flags: &[], kept: None, free: None, prop: Prop::None }
}

impl Job {
    const fn keeps(mut self, path: &'static str) -> Self {
        self.kept = Some(path);
        self
    }

    const fn granted(mut self, flags: &'static [&'static str], prop: Prop) -> Self {
        self.flags = flags;
        self.prop = prop;
        self
    }

    /// Whether it still works.
    pub(crate) fn judge(&self, who: &Identity) -> Verdict {
        let missing = self.needs.iter().find(|need| !has(need));
        if let Some(missing) = missing {
            return Verdict::Inapplicable(format!("{missing} is not here"));
        }
        if let Err(why) = self.run(who, self.free.unwrap_or(self.script), Mode::Free) {
            return Verdict::Inapplicable(why);
        }
        self.run(who, self.script, Mode::Confined).map_or_else(Verdict::Out, |()| Verdict::Blocked)
    }

    fn run(&self, who: &Identity, text: &str, mode: Mode) -> Result<(), String> {
        let site = Site::new(who, self.prop).map_err(|error| error.to_string())?;
        let ran = run::script(who, &site, self.flags, &format!("set -e\n{text}\necho done\n"), mode);
        let kept = self.kept.is_none_or(|path| site.dir.join("project").join(path).exists());
        if ran.code == Some(0) && ran.stdout.trim_end().ends_with("done") && kept {
            return Ok(());
        }
        let said: Vec<&str> = ran.stderr.lines().rev().take(3).collect();
        Err(format!("{:?}, kept: {kept}, {}", ran.code, said.join(" | ")))
    }
}

fn has(program: &str) -> bool {
    ["/usr/local/bin", "/usr/bin", "/bin"].iter().any(|dir| Path::new(dir).join(program).exists())
}

pub(crate) const JOBS: &[Job] = &[
    job("work.pipeline", &["sort", "uniq"], "printf 'b\\na\\nb\\n' | sort | uniq -c | grep -q '2 b'"),
    job("work.write_project", &[], "echo new > made.txt; mkdir -p a/b; echo x > a/b/c").keeps("a/b/c"),
    job("work.delete_and_rename", &[], "rm dir/data.txt; mv file.txt renamed.txt; test ! -e file.txt").keeps("renamed.txt"),
    job("work.git_new", &["git"], concat!("export GIT_CONFIG_GLOBAL=/dev/null; cd \"$(mktemp -d)\"; git init -q .; echo a > a; git add a; ",
        "git -c user.name=a -c user.email=a@b commit -qm one; git log --oneline | grep -q one")),
    job("work.git_project", &["git"], concat!("export GIT_CONFIG_GLOBAL=/dev/null; git status --short > /dev/null; git add file.txt; ",
        "git -c user.name=a -c user.email=a@b commit -qm one; git log --oneline | grep -q one")).keeps(".git/refs/heads/main"),
    job("work.git_stash_branch", &["git"], concat!("export GIT_CONFIG_GLOBAL=/dev/null; g() { git -c user.name=a -c user.email=a@b \"$@\"; }; ",
        "g add file.txt; g commit -qm one; echo more >> file.txt; g stash -q; g checkout -qb other; g stash pop -q; grep -q more file.txt")),
    job("work.python", &["python3"], concat!("python3 -c 'import subprocess, tempfile; f = tempfile.NamedTemporaryFile(); ",
        "assert subprocess.run([\"echo\", \"x\"], capture_output=True).stdout == b\"x\\n\"'")),
    job("work.python_pool", &["python3"], "cat > p.py <<'E'\nimport multiprocessing as m\ndef f(x): return x*x\nif __name__ == '__main__':\n    with m.Pool(2) as p: assert p.map(f, [1,2,3]) == [1,4,9]\n    q = m.Queue(); c = m.Process(target=q.put, args=(7,)); c.start(); assert q.get(timeout=5) == 7; c.join()\nE\npython3 p.py"),
    job("work.python_threads", &["python3"], "python3 -c 'import threading as t; r=[]; a=[t.Thread(target=r.append,args=(i,)) for i in range(8)]; [x.start() for x in a]; [x.join() for x in a]; assert len(r)==8'"),
    job("work.python_sqlite", &["python3"], "python3 -c 'import sqlite3; d=sqlite3.connect(\"x.db\"); assert d.execute(\"pragma journal_mode=wal\").fetchone()[0]==\"wal\"; d.execute(\"create table t(a)\"); d.execute(\"insert into t values(1)\"); d.commit(); assert d.execute(\"select count(*) from t\").fetchone()[0]==1; d.close()'").keeps("x.db"),
    job("work.python_asyncio", &["python3"], "python3 -c 'import asyncio; asyncio.run(asyncio.wait_for(asyncio.create_subprocess_exec(\"true\"), 5))'"),
    job("work.node", &["node"], "node -e 'require(\"fs\").writeFileSync(\"n.txt\", String([3,1,2].sort()))'; grep -q 1,2,3 n.txt"),
    job("work.node_child_worker", &["node"], "node -e 'const {execSync}=require(\"child_process\"); const {Worker}=require(\"worker_threads\"); if(String(execSync(\"echo hi\"))!==\"hi\\n\") process.exit(1); new Worker(\"1\",{eval:true}).on(\"exit\",c=>process.exit(c))'"),
    job("work.compile", &["cc"], "printf '#include <stdio.h>\\nint main(){puts(\"hello\");return 0;}' > h.c; cc -o h h.c; ./h | grep -q hello").keeps("h"),
    job("work.make", &["make"], "printf 'all:\\n\\techo built > out.txt\\n' > Makefile; make -s -j2; grep -q built out.txt"),
    job("work.tar_gzip", &["tar", "gzip"], "tar czf t.tgz file.txt dir; mkdir x; tar xzf t.tgz -C x; cmp file.txt x/file.txt"),
    job("work.sed_in_place", &["sed"], "sed -i s/was/is/ file.txt; grep -q 'as it is' file.txt"),
    job("work.find_xargs", &["find", "xargs"], "find . -type f -name '*.txt' -print0 | xargs -0 -n1 -P2 wc -c > /dev/null"),
    job("work.loopback", &["python3"], "python3 -c 'import socket,threading; s=socket.socket(); s.bind((\"127.0.0.1\",0)); s.listen(); threading.Thread(target=lambda: s.accept()[0].sendall(b\"x\")).start(); c=socket.create_connection(s.getsockname(),5); assert c.recv(1)==b\"x\"'"),
    job("work.unix_socket", &["python3"], "python3 -c 'import socket,threading,os,tempfile; p=os.path.join(tempfile.mkdtemp(),\"s\"); s=socket.socket(socket.AF_UNIX); s.bind(p); s.listen(); threading.Thread(target=lambda: s.accept()[0].sendall(b\"x\")).start(); c=socket.socket(socket.AF_UNIX); c.connect(p); assert c.recv(1)==b\"x\"'"),
    job("work.unix_socket_on_the_network", &["python3"], "python3 -c 'import socket,os,tempfile; p=os.path.join(tempfile.mkdtemp(),\"s\"); s=socket.socket(socket.AF_UNIX); s.bind(p); s.listen(); c=socket.socket(socket.AF_UNIX); c.connect(p)'").granted(&["--net", "all"], Prop::None),
    job("work.trace", &["strace"], "strace -f -e trace=execve -o t.log sh -c 'true; ls > /dev/null'; grep -q execve t.log").keeps("t.log"),
    job("work.shared_memory_segment", &["python3"], "python3 -c 'import ctypes as c; l=c.CDLL(None,use_errno=True); l.shmat.restype=c.c_void_p; i=l.shmget(0,4096,0o1600); assert i>=0, c.get_errno(); a=l.shmat(i,None,0); c.memset(a,7,4096); assert l.shmctl(i,0,None)==0'"),
    job("work.localhost_name", &["python3"], "python3 -c 'import socket; assert socket.getaddrinfo(\"localhost\",80)'"),
    job("work.terminal", &["script"], "script -qec 'tty && echo inner' /dev/null | grep -q inner"),
    job("work.fifo", &["mkfifo"], "d=$(mktemp -d); mkfifo $d/f; (echo hi > $d/f) & read -r x < $d/f; test \"$x\" = hi; wait"),
    job("work.large_file", &["dd"], "dd if=/dev/zero of=big bs=1M count=24 2>/dev/null; test $(stat -c %s big) = 25165824").keeps("big"),
    job("work.symlinks", &["ln"], "ln -s file.txt l; cat l > /dev/null; ln file.txt hard; rm l").keeps("hard"),
    job("work.execute_own", &["chmod"], "printf '#!/bin/sh\\necho ran' > run.sh; chmod +x run.sh; ./run.sh | grep -q ran; d=$(mktemp -d); cp run.sh $d/run.sh; $d/run.sh | grep -q ran").keeps("run.sh"),
    job("work.mapped_file", &["python3"], "python3 -c 'import mmap; f=open(\"m\",\"w+b\"); f.write(b\"\\0\"*4096); f.flush(); m=mmap.mmap(f.fileno(),4096); m[0:4]=b\"abcd\"; m.flush(); assert open(\"m\",\"rb\").read(4)==b\"abcd\"'").keeps("m"),
    job("work.sort_temp", &["sort", "seq"], "seq 200000 | sort -S 1M -r | head -1 | grep -q 99999"),
    job("work.locale_date", &["date"], "TZ=Europe/Berlin date +%Z > /dev/null; date > /dev/null; LC_ALL=C.UTF-8 printf x > /dev/null"),
    job("work.who_am_i", &["python3", "id"], "id -u > /dev/null; python3 -c 'import pwd,os; print(os.getuid())'"),
    job("work.perl_awk", &["perl", "awk"], "perl -e 'print 6*7' | grep -q 42; echo 1 2 | awk '{exit $1+$2!=3}'"),
    job("work.background", &[], "sleep 0.1 & p=$!; wait $p; sh -c 'exit 3' & wait $! || test $? = 3"),
    job("work.signals", &[], "sleep 5 & p=$!; kill -TERM $p; wait $p || test $? = 143; d=$(mktemp -d); trap 'echo got > $d/t' USR1; kill -USR1 $$; test -s $d/t"),
    job("work.shared_memory_files", &[], "f=/dev/shm/escape-$$; echo x > $f; grep -q x $f; rm $f"),
    job("work.locks", &["flock"], "flock lock.file -c 'echo locked' | grep -q locked; flock -s file.txt true"),
    job("work.home_writable", &[], "test -n \"$HOME\"; mkdir -p \"$HOME/.cache/x\"; echo y > \"$HOME/.cache/x/y\""),
    job("work.devices", &[], "echo x > /dev/null; head -c4 /dev/urandom | wc -c | grep -q 4; head -c4 /dev/zero > /dev/null"),
    job("work.proc", &[], "test -r /proc/self/status; test -r /proc/cpuinfo; test -r /proc/meminfo; ls /proc/self/fd > /dev/null"),
    job("work.bash", &["bash"], "bash -c 'diff <(echo a) <(echo a) && cat <<< here | grep -q here'"),
    job("work.exit_status", &[], "(exit 0)"),
    job("work.curl_fails_fast", &["curl"], "curl -s -m 5 http://192.0.2.77:1/ && exit 1; true"),
    job("work.secret_passed", &[], "test -n \"$FOO_TOKEN\"; test -n \"$HOME\"").granted(&["--secret", "FOO_TOKEN"], Prop::None),
    job("work.allowed_direct", &[], "{attacker} --fetch direct {friend}").granted(&["--net", "{friend}"], Prop::Friend),
    Job {
        free: Some("{attacker} --fetch direct {friend}"),
        ..job("work.allowed_by_proxy", &[], "{attacker} --fetch proxy {friend}").granted(&["--net", "{friend}"], Prop::Friend)
    },
];
