//! What is known of programs that are told secrets on their command lines: one row for each way.

/// What of a value is the secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// All of it.
    Whole,
    /// What follows this sign: `user:password`. Without the sign there is none.
    After(char),
    /// What follows the first `/`, up to an `@`: `user/password@database`.
    Login,
    /// What follows `pass:`, or `Password=`; other words name a source.
    Source,
    /// The value of each pair whose name is secret: `a=1,password=2`.
    Pairs,
}

/// Where a program is told it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The value of this option, attached or as the next word.
    Option(&'static str),
    /// The same, only attached: `-p` alone means something else.
    Attached(&'static str),
    /// This operand, counted from 0 and after the subcommand.
    Operand(usize),
    /// This operand and all that follow.
    Operands(usize),
    /// The last operand, if this letter is among the options.
    LastWith(char),
    /// The word after this one, or after one that continues it with a dot; in any case.
    Next(&'static str),
}

/// One way in which programs are told a secret.
#[derive(Debug)]
pub(super) struct Way {
    /// The programs.
    pub(super) programs: &'static [&'static str],
    /// The words of the subcommand, in order; others may stand between.
    pub(super) under: &'static [&'static str],
    pub(super) place: Place,
    pub(super) shape: Shape,
}

const fn way(programs: &'static [&'static str], under: &'static [&'static str], place: Place, shape: Shape) -> Way {
    Way { programs, under, place, shape }
}

use Place::{Attached, LastWith, Next, Operand, Operands, Option as Opt};
use Shape::{After, Login, Pairs, Source, Whole};

const MYSQL: &[&str] = &[
    "mysql",
    "mysqldump",
    "mysqladmin",
    "mysqlimport",
    "mysqlcheck",
    "mysqlshow",
    "mysqlbinlog",
    "mysqlslap",
    "mysql_upgrade",
    "mysqlpump",
    "mysqlsh",
    "mariadb",
    "mariadb-dump",
    "mariadb-admin",
    "mariadb-import",
    "mariadb-check",
    "mycli",
    "mytop",
    "xtrabackup",
    "innobackupex",
];
const MONGO: &[&str] = &[
    "mongosh",
    "mongo",
    "mongodump",
    "mongorestore",
    "mongoexport",
    "mongoimport",
    "mongostat",
    "mongotop",
    "mongofiles",
];
const CONTAINERS: &[&str] = &[
    "docker",
    "podman",
    "nerdctl",
    "buildah",
    "helm",
    "oras",
    "crane",
    "skopeo",
    "regctl",
    "singularity",
    "apptainer",
];
const LDAP: &[&str] = &[
    "ldapsearch",
    "ldapmodify",
    "ldapadd",
    "ldapdelete",
    "ldapwhoami",
    "ldapmodrdn",
    "ldapcompare",
    "ldapexop",
    "ldappasswd",
];
const SMB: &[&str] =
    &["smbclient", "rpcclient", "smbget", "smbtree", "smbcacls", "smbcquotas", "net", "nmblookup", "wbinfo", "wmic"];
const SEVEN_ZIP: &[&str] = &["7z", "7za", "7zr", "7zz", "rar", "unrar"];
const MSSQL: &[&str] = &["sqlcmd", "bcp", "osql", "tsql", "isql", "mssql-cli"];

/// Letters that take no value before an option in one word: `-su user:password`.
pub(super) fn flags(program: &str) -> &'static str {
    match program {
        "curl" => "sSfLkvigIGNjJlnaqRZ#0123460",
        "zip" | "unzip" => "rqjvoTum0123456789y",
        "htpasswd" => "cBmdsnivDp5",
        program if LDAP.contains(&program) => "xZLncvWAFPQCIuv",
        "redis-cli" | "wget" => "qxc",
        _ => "",
    }
}

/// The table.
pub(super) const WAYS: &[Way] = &[
    // Transfers.
    way(&["curl"], &[], Opt("-u"), After(':')),
    way(&["curl"], &[], Opt("--user"), After(':')),
    way(&["curl"], &[], Opt("-U"), After(':')),
    way(&["curl"], &[], Opt("--proxy-user"), After(':')),
    way(&["curl"], &[], Opt("-b"), After('=')),
    way(&["curl"], &[], Opt("--cookie"), After('=')),
    way(&["curl"], &[], Opt("-E"), After(':')),
    way(&["curl"], &[], Opt("--cert"), After(':')),
    way(&["curl"], &[], Opt("--oauth2-bearer"), Whole),
    way(&["curlie", "http", "https", "httpie", "xh", "xhs"], &[], Opt("-a"), After(':')),
    way(&["curlie", "http", "https", "httpie", "xh", "xhs"], &[], Opt("--auth"), After(':')),
    way(&["ab", "hey", "wrk", "siege", "oha"], &[], Opt("-A"), After(':')),
    way(&["ab", "hey"], &[], Opt("-a"), After(':')),
    way(&["aria2c"], &[], Opt("--http-passwd"), Whole),
    way(&["aria2c"], &[], Opt("--ftp-passwd"), Whole),
    way(&["yt-dlp", "youtube-dl"], &[], Opt("-p"), Whole),
    way(&["lftp"], &[], Opt("-u"), After(',')),
    way(&["ncftp", "ncftpget", "ncftpput", "ncftpls"], &[], Opt("-p"), Whole),
    way(&["swaks"], &[], Opt("-ap"), Whole),
    way(&["sendemail", "sendEmail"], &[], Opt("-xp"), Whole),
    way(&["mosquitto_pub", "mosquitto_sub", "mosquitto_rr"], &[], Opt("-P"), Whole),
    // Databases.
    way(MYSQL, &[], Attached("-p"), Whole),
    way(MONGO, &[], Opt("-p"), Whole),
    way(MSSQL, &[], Opt("-P"), Whole),
    way(&["redis-cli", "valkey-cli", "keydb-cli"], &[], Opt("-a"), Whole),
    way(&["redis-cli", "valkey-cli", "keydb-cli"], &[], Next("auth"), Whole),
    way(&["redis-cli", "valkey-cli", "redis-server", "valkey-server"], &[], Next("requirepass"), Whole),
    way(&["redis-server", "valkey-server"], &[], Opt("--requirepass"), Whole),
    way(&["redis-server", "valkey-server"], &[], Opt("--masterauth"), Whole),
    way(&["cqlsh"], &[], Opt("-p"), Whole),
    way(&["influx"], &[], Opt("-t"), Whole),
    way(&["influx", "etcdctl"], &[], Opt("--user"), After(':')),
    way(&["sqlplus", "expdp", "impdp", "exp", "imp", "sqlldr", "rman"], &[], Operands(0), Login),
    way(
        &["psql", "pg_dump", "pg_dumpall", "pg_restore", "pg_basebackup", "createdb", "dropdb"],
        &[],
        Operands(0),
        Pairs,
    ),
    way(&["psql", "pg_dump", "pg_dumpall", "pg_restore", "pg_basebackup"], &[], Opt("-d"), Pairs),
    way(&["rabbitmqadmin"], &[], Opt("-p"), Whole),
    way(&["rabbitmqctl"], &["add_user"], Operand(1), Whole),
    way(&["rabbitmqctl"], &["change_password"], Operand(1), Whole),
    way(&["rabbitmqctl"], &["authenticate_user"], Operand(1), Whole),
    // Registries, clusters and clouds.
    way(CONTAINERS, &["login"], Opt("-p"), Whole),
    way(CONTAINERS, &[], Opt("--creds"), After(':')),
    way(CONTAINERS, &[], Opt("--src-creds"), After(':')),
    way(CONTAINERS, &[], Opt("--dest-creds"), After(':')),
    way(&["oc"], &["login"], Opt("-p"), Whole),
    way(&["az"], &["login"], Opt("-p"), Whole),
    way(&["cf", "ibmcloud"], &["login"], Opt("-p"), Whole),
    way(&["cf"], &["auth"], Operand(1), Whole),
    way(&["vault", "bao"], &["login"], Operand(0), Whole),
    way(&["consul", "nomad", "vault", "bao"], &[], Opt("-token"), Whole),
    way(&["mc", "mcli"], &["alias", "set"], Operands(2), Whole),
    way(&["mc", "mcli"], &["config", "host", "add"], Operands(2), Whole),
    way(&["s3cmd"], &[], Opt("--secret_key"), Whole),
    way(&["op"], &["signin"], Opt("--secret-key"), Whole),
    way(&["doctl"], &[], Opt("-t"), Whole),
    way(&["pulumi"], &["config", "set"], Operand(1), Whole),
    way(&["kubectl", "oc", "k3s"], &["create", "secret"], Opt("--from-literal"), After('=')),
    way(&["heroku"], &["config:set"], Operands(0), After('=')),
    way(&["fly", "flyctl", "supabase", "doppler", "eas"], &["secrets", "set"], Operands(0), After('=')),
    way(&["gh"], &["secret", "set"], Opt("-b"), Whole),
    way(&["gh"], &["secret", "set"], Opt("--body"), Whole),
    way(&["wrangler"], &["secret", "put"], Operand(1), Whole),
    // Packages.
    way(&["cargo"], &["login"], Operand(0), Whole),
    way(&["wandb"], &["login"], Operand(0), Whole),
    way(&["twine"], &["upload"], Opt("-p"), Whole),
    way(&["poetry"], &["publish"], Opt("-p"), Whole),
    way(&["poetry", "composer"], &["config"], Operands(2), Whole),
    way(&["poetry"], &["config"], Next("pypi-token"), Whole),
    way(&["composer"], &["config"], Next("github-oauth"), Whole),
    way(&["composer"], &["config"], Next("gitlab-token"), Whole),
    way(&["uv"], &["publish"], Opt("-p"), Whole),
    way(&["uv"], &["publish"], Opt("-t"), Whole),
    way(&["nuget", "dotnet"], &["push"], Opt("-k"), Whole),
    way(&["nuget"], &["setapikey"], Operand(0), Whole),
    way(&["bundle"], &["config"], Operands(1), After(':')),
    // Archives and cryptography.
    way(&["zip", "unzip", "zipcloak"], &[], Opt("-P"), Whole),
    way(SEVEN_ZIP, &[], Attached("-p"), Whole),
    way(SEVEN_ZIP, &[], Attached("-hp"), Whole),
    way(&["openssl"], &[], Opt("-passin"), Source),
    way(&["openssl"], &[], Opt("-passout"), Source),
    way(&["openssl"], &[], Opt("-pass"), Source),
    way(&["openssl"], &[], Opt("-k"), Whole),
    way(&["openssl"], &[], Opt("-K"), Whole),
    way(&["openssl"], &[], Opt("-password"), Source),
    way(&["openssl"], &["dgst"], Opt("-hmac"), Whole),
    way(&["openssl"], &["passwd"], Operand(0), Whole),
    way(&["keytool", "jarsigner", "apksigner"], &[], Opt("-storepass"), Whole),
    way(&["keytool", "jarsigner"], &[], Opt("-keypass"), Whole),
    way(&["keytool"], &[], Opt("-new"), Whole),
    way(&["ssh-keygen"], &[], Opt("-N"), Whole),
    way(&["ssh-keygen"], &[], Opt("-P"), Whole),
    way(&["qpdf"], &["--encrypt"], Operands(0), Whole),
    way(&["pdftk"], &[], Next("input_pw"), Whole),
    way(&["pdftk"], &[], Next("user_pw"), Whole),
    way(&["pdftk"], &[], Next("owner_pw"), Whole),
    // Accounts and networks.
    way(&["sshpass"], &[], Opt("-p"), Whole),
    way(&["htpasswd"], &[], LastWith('b'), Whole),
    way(LDAP, &[], Opt("-w"), Whole),
    way(&["ldappasswd"], &[], Opt("-s"), Whole),
    way(&["ldappasswd"], &[], Opt("-a"), Whole),
    way(SMB, &[], Opt("-U"), After('%')),
    way(SMB, &[], Opt("--user"), After('%')),
    way(&["smbmap", "crackmapexec", "nxc", "netexec", "evil-winrm", "rdesktop", "hydra"], &[], Opt("-p"), Whole),
    way(&["xfreerdp", "xfreerdp3", "wlfreerdp"], &[], Attached("/p:"), Whole),
    way(&["mount", "mount.cifs", "sshfs", "s3fs"], &[], Opt("-o"), Pairs),
    way(&["useradd", "usermod"], &[], Opt("-p"), Whole),
    way(&["useradd", "usermod"], &[], Opt("--password"), Whole),
    way(&["wpa_passphrase"], &[], Operand(1), Whole),
    way(&["nmcli", "security"], &[], Next("password"), Whole),
    way(&["nmcli"], &[], Next("wifi-sec.psk"), Whole),
    way(&["nmcli"], &[], Next("802-11-wireless-security.psk"), Whole),
    way(&["security"], &[], Opt("-w"), Whole),
    way(&["ipmitool"], &[], Opt("-P"), Whole),
    way(&["snmpget", "snmpwalk", "snmpset", "snmpbulkwalk"], &[], Opt("-A"), Whole),
    way(&["snmpget", "snmpwalk", "snmpset", "snmpbulkwalk"], &[], Opt("-X"), Whole),
    way(&["snmpget", "snmpwalk", "snmpset", "snmpbulkwalk"], &[], Opt("-c"), Whole),
    way(&["rclone"], &["obscure"], Operand(0), Whole),
    way(&["rclone"], &[], Next("pass"), Whole),
    way(&["ansible-vault"], &["encrypt_string"], Operand(0), Whole),
    way(&["git"], &["config"], Next("http.extraheader"), Whole),
];

/// Programs that run the command that follows them.
pub(super) const WRAPPERS: &[&str] = &[
    "sudo",
    "doas",
    "env",
    "nohup",
    "time",
    "nice",
    "ionice",
    "timeout",
    "gtimeout",
    "setsid",
    "stdbuf",
    "xargs",
    "watch",
    "exec",
    "command",
    "builtin",
    "strace",
    "ltrace",
    "flock",
    "chroot",
    "ssh",
    "docker",
    "podman",
    "nerdctl",
    "kubectl",
    "oc",
    "docker-compose",
    "podman-compose",
    "parallel",
    "find",
    "su",
    "runuser",
    "unshare",
    "nsenter",
    "sshpass",
    "script",
    "systemd-run",
    "caffeinate",
    "chronic",
    "unbuffer",
    "dotenv",
    "direnv",
    "npx",
    "uvx",
    "uv",
    "bunx",
    "pnpm",
    "yarn",
    "bundle",
    "poetry",
    "pipenv",
    "op",
    "doppler",
    "aws-vault",
    "chamber",
    "torsocks",
    "proxychains",
    "proxychains4",
    "retry",
    "then",
    "do",
    "else",
    "if",
    "while",
    "until",
    "!",
    "bash",
    "sh",
    "zsh",
    "dash",
    "ksh",
    "ash",
    "busybox",
    "eval",
    "trap",
    "vagrant",
    "lxc",
    "incus",
    "machinectl",
    "gosu",
    "su-exec",
    "tini",
    "dumb-init",
    "catchsegv",
    "valgrind",
    "perf",
    "hyperfine",
    "entr",
    "watchexec",
];

/// Those of them that read a command from one word.
pub(super) const SHELLS: &[&str] = &[
    "bash", "sh", "zsh", "dash", "ksh", "ash", "busybox", "eval", "trap", "ssh", "su", "runuser", "watch", "script",
    "flock",
];

/// Programs that run a text in a place of their own: a terminal, a schedule.
pub(super) const RUNNERS: &[&str] =
    &["tmux", "screen", "crontab", "nix-shell", "xterm", "konsole", "gnome-terminal", "systemd-run"];

/// Programs whose operands `NAME=VALUE` are variables, whatever stands in the values.
pub(super) const ASSIGNERS: &[&str] = &["env", "export", "declare", "typeset", "readonly", "local", "sudo", "doas"];

/// Options whose value is such a variable.
pub(super) const VARIABLE_OPTIONS: &[&str] = &["--env", "--build-arg", "--env-add", "-var", "--var"];

/// Programs in which `-e` is one of those options.
pub(super) const CONTAINER_RUNNERS: &[&str] =
    &["docker", "podman", "nerdctl", "docker-compose", "podman-compose", "kubectl", "oc"];

/// Programs whose words are patterns or prose, in which a name before a sign means nothing.
pub(super) const SEARCHES: &[&str] =
    &["grep", "egrep", "fgrep", "rg", "ag", "ack", "find", "fd", "test", "[", "man", "which", "jq", "yq"];

/// Programs whose words are prose: messages.
pub(super) const PROSE: &[&str] = &["git", "gh", "glab", "hg", "svn", "jj"];

/// Programs whose options have one dash and are never bundled, nor their values attached.
pub(super) const SINGLE_DASH: &[&str] = &[
    "openssl",
    "keytool",
    "jarsigner",
    "apksigner",
    "vault",
    "bao",
    "consul",
    "nomad",
    "swaks",
    "sendemail",
    "sendEmail",
];

/// Words that make a program read a secret from its standard input.
pub(super) const FROM_STDIN: &[&str] = &[
    "--password-stdin",
    "--with-token",
    "--token-stdin",
    "--pass-stdin",
    "--secret-stdin",
    "--passphrase-fd",
    "--password-fd",
];

/// Programs that have such options. Another program may run what it reads, whatever options it is given.
pub(super) const LOGINS: &[&str] = &[
    "apptainer",
    "aws",
    "az",
    "borg",
    "buildah",
    "bw",
    "cosign",
    "crane",
    "docker",
    "doctl",
    "flyctl",
    "gcloud",
    "gh",
    "glab",
    "gpg",
    "gpg2",
    "helm",
    "heroku",
    "kubectl",
    "nerdctl",
    "notation",
    "npm",
    "op",
    "oras",
    "podman",
    "rclone",
    "regctl",
    "restic",
    "singularity",
    "skopeo",
    "twine",
    "vault",
];

/// Programs that run what they are given, besides shells. A version may follow the name.
pub(super) const INTERPRETERS: &[&str] = &[
    "at",
    "awk",
    "batch",
    "bun",
    "csh",
    "deno",
    "elixir",
    "expect",
    "fish",
    "gawk",
    "ghci",
    "groovy",
    "irb",
    "julia",
    "lua",
    "make",
    "mawk",
    "node",
    "nodejs",
    "nsenter",
    "osascript",
    "parallel",
    "perl",
    "php",
    "psql",
    "pwsh",
    "python",
    "rscript",
    "ruby",
    "tclsh",
    "tcsh",
    "xargs",
];

/// Programs that read a secret from it, with the word that makes them, if one does.
pub(super) const READERS: &[(&str, &str)] = &[
    ("chpasswd", ""),
    ("passwd", ""),
    ("smbpasswd", ""),
    ("kinit", ""),
    ("su", ""),
    ("sudo", "-S"),
    ("cryptsetup", ""),
    ("openssl", "stdin"),
    ("gh", "secret"),
    ("docker", "secret"),
    ("podman", "secret"),
    ("wrangler", "secret"),
    ("vercel", "env"),
    ("secret-tool", "store"),
    ("pass", "insert"),
    ("haft", "secret"),
    ("gcloud", "secrets"),
];
