//! What the second look sees. Every expectation was compared with what bash does.

use super::{DEEPEST, Look, look};

/// The words at some offsets, each up to where it ends, for reading.
fn words<'a>(text: &'a str, offsets: &[usize]) -> Vec<&'a str> {
    let ends = |c: char| " \t\n;&|()<>`}\\".contains(c);
    offsets.iter().map(|&at| text[at..].split(ends).next().unwrap_or_default()).collect()
}

/// The names of the commands in text that bash accepts.
fn commands(text: &str) -> String {
    let look = look(text);
    assert_eq!(look.trouble, None, "{text}");
    words(text, &look.commands).join(" ")
}

fn substitutions(text: &str) -> Vec<usize> {
    look(text).substitutions
}

/// What stands at each redirection, of which a redirection is the first byte.
fn redirects(text: &str) -> String {
    let look = look(text);
    assert_eq!(look.trouble, None, "{text}");
    let operator = |c: char| "<>&|-".contains(c);
    look.redirects
        .iter()
        .map(|&at| text[at..].split(|c| !operator(c)).next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join(" ")
}

fn trouble(text: &str) -> (usize, &'static str) {
    look(text).trouble.unwrap_or_else(|| panic!("no trouble with {text:?}"))
}

#[test]
fn everyday_commands_are_found() {
    for (text, expected) in [
        ("ls -la", "ls"),
        ("", ""),
        ("  # only $(a) comment", ""),
        ("git log --oneline | head -n 5", "git head"),
        ("cd \"$(dirname \"$0\")\" && cargo test 2>&1 | tail", "cd dirname cargo tail"),
        ("for f in *.txt; do mv -- \"$f\" \"${f%.txt}.md\"; done", "mv"),
        ("while IFS= read -r l; do echo \"$l\"; done < <(ls)", "read echo ls"),
        ("find . \\( -name a -o -name b \\) -exec grep x {} \\;", "find"),
        ("if [[ -f x && ! -d y ]]; then a; elif b; then c; else d; fi", "a b c d"),
        ("case $x in a|b) c;; (d) e;; *) f; esac; g", "c e f g"),
        ("f() { a; }; function g { b; }; f; g", "a b f g"),
        ("a=1 b=$(c) d", "c d"),
        ("arr=(1 $(a) \"b c\") ; declare -A m=([x]=1 [y z]=$(d))", "a declare d"),
        ("git commit -m \"fix (a) & b; c | d > e\"", "git"),
        ("awk '{ print $1 > \"x\" }' f; sed 's/a/b/;s/c/d/' f", "awk sed"),
        ("time -p a; ! b; coproc c d; coproc N { e; }", "a b c e"),
        ("(a; b) & { c; } && d || e |& f", "a b c d e f"),
        ("for ((i=0; i<3; i++)); do a; done; ((x<<2)); echo $((1<<2))", "a echo"),
        ("select x in a b; do c; done", "c"),
    ] {
        assert_eq!(commands(text), expected, "{text}");
    }
}

#[test]
fn commands_hidden_in_words_are_found() {
    for (text, expected) in [
        ("echo $(a `b`) \"$(c \"$(d)\")\" ${x:-$(e)}", "a b c d e echo"),
        ("echo <(a) >(b) x<(c)y", "a b c echo"),
        ("a[$(b)]=1 c; echo ${x[$(d)]} $((y[$(e)]))", "b c d e echo"),
        ("a[1 + $(b)]=1 c", "b c"),
        ("echo ${x:-<(a)} ${x/$(b)/$(c)} ${x:$(d)}", "a b c d echo"),
        ("echo \"${x%<(a)} ${x/b/<(c)} ${x:-<(d)}\"", "a c echo"),
        ("[[ -v a[$(b)] || x =~ ($(c)) || x =~ (<(d)) ]]", "b c d"),
        ("echo $'a\\'$(b)' '$(c)' \"\\$(d)\" \\\\$(e)", "e echo"),
        ("echo $\"a $(b)\"", "b echo"),
        ("echo \"$$(a)\"", "echo"),
        ("echo ${ a; } ${| b; } \"${ c; }\"", "a b c echo"),
        ("echo \"$\\\n(a)\" $\\\n(b)", "a b echo"),
    ] {
        let found = look(text);
        let mut names = words(text, &found.commands);
        names.sort_unstable();
        let names = names.join(" ");
        assert_eq!((names.as_str(), found.trouble), (expected, None), "{text}");
    }
}

#[test]
fn backticks_end_without_regard_to_quotes() {
    assert_eq!(commands("echo `a b` \"`c \"d\"`\""), "echo a c");
    assert_eq!(commands("echo `a \\`b\\`` c"), "echo a b");
    assert_eq!(commands("echo `a \\`b \\\\\\`c\\\\\\`\\``"), "echo a b c");
    // A backslash before `$` is removed before the inside is read.
    assert_eq!(substitutions("echo `a \\$(b)`"), [5, 8]);
    assert_eq!(substitutions("echo `a '\\$(b)'`"), [5]);
    // In double quotes it is also removed before a quote.
    assert_eq!(commands("echo \"`a \\\"b;c\\\" d`\""), "echo a");
    assert_eq!(commands("x=`a # not ) a \"\nb` c"), "a b c");
    assert_eq!(trouble("echo `a \"`").1, "a double quote is not closed");
}

#[test]
fn double_parentheses_are_arithmetic_only_if_they_close_together() {
    assert_eq!(commands("echo $((1 + (2)))"), "echo");
    assert_eq!(commands("echo $((a); (b))"), "echo a b");
    assert_eq!(commands("echo $((a) | b) \"$((c) && (d))\""), "echo a b c d");
    assert_eq!(commands("((a); (b)); ( (c) )"), "a b c");
    assert_eq!(commands("((a = $(b))) && c"), "b c");
    assert_eq!(commands("!(a; b)"), "a b");
    assert_eq!(redirects("((a < b)) && c > d"), ">");
}

#[test]
fn redirections_are_found() {
    for (text, expected) in [
        ("a > b 2>> c <d >|e <>f", "> >> < >| <>"),
        ("a &> b &>>c >&2 <&- {fd}>d {fd[1]}<e", "&> &>> >& <&- > <"),
        ("a <<< b; c <(d) > >(e)", "<<< >"),
        ("[[ a < b && c > d ]]; ((a < b)); echo $((a > b)) $[a<b]", ""),
        ("echo 'a > b' \"c > d\" e\\>f", ""),
        (">a b; x=1 >c d; (e) >f; { g; } >h; f() { i; } >j", "> > > > >"),
        ("a \"$(b > c)\" `d < e`", "> <"),
        ("a <\\\n<E\nx\nE", "<"),
    ] {
        assert_eq!(redirects(text), expected, "{text}");
    }
    assert_eq!(look("a 12>b").redirects, [4]);
    assert_eq!(look("a x12>b").redirects, [5]);
    assert_eq!(look("a {x}>b").redirects, [5]);
}

#[test]
fn words_are_told_apart() {
    for (text, expected) in [
        ("find {x -delete", "find|{x|-delete"),
        ("cat {a,b /c }", "cat|{a,b|/c|}"),
        ("a x<(b)y 'c d'e\\ f", "a|x<(b)y|b|'c d'e\\ f"),
        ("a >b 2>&1 >&-c {d}>e", "a|b|1|-|c|e"),
        ("x=(1 'b c') y=$(d)z e", "x=(1 'b c')|1|'b c'|y=$(d)z|d|e"),
        ("x[1 + 2]=3 a b[c d]", "x[1 + 2]=3|a|b[c|d]"),
        ("if [[ a == b ]]; then c; fi", "if|[[|a|==|b|]]|then|c|fi"),
    ] {
        let mut words: Vec<_> = look(text).words.iter().map(|&(from, to)| &text[from..to]).collect();
        let mut expected: Vec<_> = expected.split('|').collect();
        words.sort_unstable();
        expected.sort_unstable();
        assert_eq!(words, expected, "{text}");
    }
}

#[test]
fn separators_are_found() {
    assert_eq!(look("a;b&c|d&&e||f|&g\nh").separators, [1, 3, 5, 7, 10, 13, 16]);
    assert_eq!(look("{ a;}").separators, [0, 3]);
    assert_eq!(look("(a)").separators, [0]);
    assert_eq!(look("echo $(a) `b` <(c)").separators, [5, 10, 14]);
    assert_eq!(look("case x in a) b;; (c) d;; esac").separators, [11, 14, 19, 22]);
    assert_eq!(look("[[ a && (b || c) ]]").separators, Vec::<usize>::new());
    assert_eq!(look("echo ';' \"|\" \\& @(a|b) ${x:-;}").separators, Vec::<usize>::new());
}

#[test]
fn bodies_of_here_documents_are_not_commands() {
    for (text, expected) in [
        ("cat <<E\n$(a) `b` ${c:-$(d)} ; e\nE\nf", "cat a b d f"),
        ("cat <<'E'\n$(a) ; b\nE\nf", "cat f"),
        ("cat <<\\E\n$(a)\nE\nf", "cat f"),
        ("cat <<\"E\"\n$(a)\nE\nf", "cat f"),
        ("cat <<E\"\"\n$(a)\nE\nf", "cat f"),
        ("cat <<-E\n\t$(a)\n\t\tE\nf", "cat a f"),
        ("cat <<A <<B; c\n$(a)\nA\n$(b)\nB\nd", "cat c a b d"),
        ("cat <<E | b\n; c\nE\nd", "cat b d"),
        ("x=$(cat <<E\n) $(a)\nE\n)\nb", "cat a b"),
        ("x=$(cat <<E\n$(a)\nE); b", "cat a b"),
        ("git commit -m \"$(cat <<'E'\nit's (a) `b` $(c)\nE\n)\"", "git cat"),
        // A backslash joins lines, so the first is not the end, and the second is.
        ("cat <<E\na\\\nE\nb\nE\nc", "cat c"),
        ("cat <<EOF\nEO\\\nF\nc", "cat c"),
        ("cat <<E\nE \n# $(a)\nE\nb", "cat a b"),
        ("cat <<E $(a\nb)\nc\nE\nd", "cat a b d"),
        ("cat <<E \"a\nb\"\nc\nE\nd", "cat d"),
        ("cat <<E\n\"$(a)\" '$(b)' \\$(c)\nE", "cat a b"),
        ("f() {\n  cat <<-E\n\t$(a)\n\tE\n}\nf", "cat a f"),
        ("cat <<A\n$(cat <<B\n$(c)\nB\n)\nA\nd", "cat cat c d"),
    ] {
        let mut expected: Vec<_> = expected.split(' ').collect();
        let mut found = look(text);
        assert_eq!(found.trouble.take(), None, "{text}");
        let mut names = words(text, &found.commands);
        names.sort_unstable();
        expected.sort_unstable();
        assert_eq!(names, expected, "{text}");
    }
}

#[test]
fn comments_begin_only_at_words() {
    for (text, expected) in [
        ("a #b; c", "a"),
        ("a#b; c", "a#b c"),
        ("a;#b\nc", "a c"),
        ("(a)#b; c", "a"),
        ("echo ${x#y} $# ${#x} $((16#ff)) 'a'#b; c", "echo c"),
        ("a \\\n# b\nc", "a c"),
        ("a &&\n# b\nc", "a c"),
        ("x=$(a # )\n); b", "a b"),
        ("x=(1 # )\n2); b", "b"),
        ("case a in # )\nb) c;; esac", "c"),
    ] {
        assert_eq!(commands(text), expected, "{text}");
    }
}

#[test]
fn braces_are_groups_only_where_a_command_begins() {
    for (text, expected) in [
        ("echo {a,b}_{ ; c", "echo c"),
        ("echo {a,b | c}", "echo c}"),
        ("echo {; a", "echo a"),
        ("a >{b; c", "a c"),
        ("x={ a", "a"),
        ("echo { a; }a", "echo }a"),
        ("{a,b} c; {a; d", "{a,b} {a d"),
        ("echo \\{} \\; b", "echo"),
        ("a=(b)c d", "d"),
        ("2>&-a b; c <& -d; e >&1-", "a c e"),
        ("a=1 if; b", "if b"),
        ("a | time b; i\\\nf c; then d; fi", "a time c d"),
    ] {
        let found = look(text);
        assert_eq!(found.trouble, None, "{text}");
        let names: Vec<_> =
            found.commands.iter().map(|&at| text[at..].split([' ', ';']).next().unwrap_or("")).collect();
        assert_eq!(names.join(" "), expected, "{text}");
    }
}

#[test]
fn patterns_are_not_commands() {
    assert_eq!(commands("ls !(a|$(b)) @(c|d)/* +(e) ?(f) *(g); h"), "ls b h");
    assert_eq!(commands("[[ $x == @(a|b) && $y =~ ^(c|d )+$ ]] && e"), "e");
    assert_eq!(commands("case x in @(a|b)) c;; !(d)) e;; esac"), "c e");
    assert_eq!(commands("f+() { a; }"), "a");
}

#[test]
fn what_bash_rejects_is_trouble() {
    for text in [
        "'a",
        "\"a",
        "`a",
        "$'a",
        "$(a",
        "${x",
        "$((1",
        "((1",
        "(a",
        "{ a",
        "{ a }",
        "a=(b",
        "[[ a",
        "[[ a ]",
        "a )",
        ")",
        "}",
        "a |",
        "a &&",
        "| a",
        "& a",
        "; a",
        "a ;; b",
        "a ; ; b",
        "a && && b",
        "a >",
        "a > ; b",
        "a <<",
        "a >(b",
        "<<E",
        "cat <<E\na",
        "if a; fi",
        "if a; then fi",
        "then",
        "fi",
        "done",
        "esac",
        "do",
        "in",
        "while a; done",
        "for x in a; done",
        "for",
        "case x in",
        "case x",
        "case x in a) b",
        "case x in a) b esac",
        "function",
        "function f",
        "f()",
        "f() a",
        "f(a) { b; }",
        "echo (a)",
        "echo a=(b)",
        "a=(b; c)",
        "a=(b | c)",
        "a=(b (c))",
        "{ a; } b",
        "(a) b",
        "[[ a ]] b",
        "( )",
        "[[ ( a ]]",
        "[[ a ; b ]]",
        "coproc",
        "a | ! b",
        "echo \"$(a\"",
        "echo $$(a)",
        "a\0b",
    ] {
        assert!(look(text).trouble.is_some(), "{text}");
    }
    assert_eq!(trouble("ls; echo \"a"), (9, "a double quote is not closed"));
    assert_eq!(trouble("a && echo $(b"), (10, "a substitution is not closed"));
    assert_eq!(trouble("a\0b"), (1, "a NUL byte"));
}

/// In these places bash finds the end of single quotes, but expands what stands in them.
#[test]
fn quotes_that_do_not_quote_are_trouble() {
    for text in
        ["echo \"${x:-'$(a)'}\"", "(( '$(a)' ))", "a['$(b)']=1", "cat <<E\n${x:-'$(a)'}\nE", "echo $(( '`a`' ))"]
    {
        assert_eq!(trouble(text).1, "single quotes that do not quote", "{text}");
    }
    assert_eq!(commands("echo ${x:-'$(a)'} \"${x#'$(a)'}\" \"${x:-'a'}\"; a['b']=1"), "echo");
}

/// Bash writes a substitution anew before it runs it, with redirections last: `$(! a > x)`.
#[test]
fn a_reserved_word_after_a_redirection_is_trouble() {
    assert_eq!(trouble("echo $(>x ! a)").1, "a reserved word after a redirection");
    assert_eq!(commands("echo $(>x a !)"), "echo a");
}

#[test]
fn depth_is_that_of_all_brackets() {
    assert_eq!(look("a").depth, 0);
    assert_eq!(look("a $(b)").depth, 1);
    assert_eq!(look("a \"$(b \"${c}\")\"").depth, 4);
    assert_eq!(look("{ if a; then ( b ); fi; }").depth, 3);
    assert_eq!(look("a `b \\`c\\``").depth, 2);
    assert_eq!(look("((((1))))").depth, 3);
}

#[test]
fn braces_that_stay_open_add_up() {
    assert_eq!(look("f() { echo ${x} '{' {a,b}; }").braces, 3);
    assert_eq!(look(&"echo {a\n".repeat(100)).braces, 100);
    assert_eq!(look(&"}{a,b} ".repeat(100)).braces, 1);
}

/// Were any of these not linear, the test would not end.
#[test]
fn nothing_is_too_deep_or_too_long() {
    let deep = [
        "$(",
        "( ",
        "{ ",
        "${a:-",
        "\"$(",
        "$((",
        "((",
        "[[ ( ",
        "if ",
        "<(",
        "@(",
        "`",
        "case a in b) ",
        "a[",
        "a=(",
        "cat <<E\n$(",
    ];
    for open in deep {
        let Look { depth, .. } = look(&open.repeat(20_000));
        assert!(depth <= DEEPEST + 1, "{open}");
    }
    look(&format!("{}x{}", "$((".repeat(3000), "); y)".repeat(3000)));
    look(&(0..20_000).map(|n| format!("cat <<A{n}\n$(")).collect::<String>());
    look(&format!("`{}`", "\\".repeat(500_000)));
    look(&format!("{}{}", "a".repeat(200_000), ".[=".repeat(100_000)));
}

/// Whatever stands where, the look ends, and says the same things only about the text.
#[test]
fn broken_text_never_panics() {
    let text = "f() { case $x in (a|b) c=(1 \"$(d `e \\`f\\``)\") ;; esac; } <<-E && [[ a =~ (b|c)$ ]] && for ((i=0;i<1;i++)) do g ${h:-'i'} $'j' <(k) @(l|é) {m}>n 2>&1; done\n\t$(o)\n\tE\n((p)|(q)) # r\n";
    for (start, _) in text.char_indices() {
        for (length, _) in text[start..].char_indices() {
            let part = &text[start..start + length];
            let look = look(part);
            for at in look.substitutions.iter().chain(&look.separators).chain(&look.redirects).chain(&look.commands) {
                assert!(*at <= part.len());
            }
        }
    }
}
