//! Laws of manifests: what is filled in stays in its part, and whatever is read is read within bounds.

use haft_core::manifest::template::{Unfit, Values, pieces};
use haft_core::manifest::{Flaw, Manifest, Severity, Written, fix, lint};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use url::Url;

const PIECES: &[&str] = &[
    "/", "..", "?", "#", "&", "=", "%2e", "%2F", "\\", ":", "@", "\r\n", "\0", " ", "+", ";", "${q}", "é", "a", "..;",
    "//", "'",
];

/// Texts that would like to be more than a value.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        prop::collection::vec(prop::sample::select(PIECES), 0..12).prop_map(|parts| parts.concat())
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        hostile().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
        prop::collection::vec(hostile(), 0..4).prop_map(Value::from),
        hostile().prop_map(|text| json!({"a": text})),
    ]
}

fn with<T>(inputs: &[(&str, Value)], look: impl FnOnce(Values<'_>) -> T) -> T {
    let inputs: Map<String, Value> = inputs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let secrets = BTreeMap::new();
    look(Values { inputs: &inputs, secrets: &secrets })
}

proptest! {
    #[test]
    fn a_filled_url_has_the_shape_of_its_template(id in any_value(), q in any_value(), r in any_value()) {
        let template = "https://api.example.com:8443/v1/${id}/items/x-${id}.json?q=${q}&fixed=1&r=${r}";
        let filled = with(&[("id", id.clone()), ("q", q), ("r", r)], |values| values.url(template));
        let url = match filled {
            Ok(text) => Url::parse(&text).unwrap(),
            Err(Unfit::Unset(_) | Unfit::Elsewhere(..)) => return Ok(()),
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        };
        prop_assert_eq!((url.scheme(), url.host_str(), url.port()), ("https", Some("api.example.com"), Some(8443)));
        prop_assert_eq!(url.path_segments().unwrap().count(), 4, "{}", url);
        prop_assert!(url.path().starts_with("/v1/") && url.path().contains("/items/x-"));
        let keys: Vec<String> = url.query_pairs().map(|(key, _)| key.into_owned()).collect();
        prop_assert_eq!(keys, ["q", "fixed", "r"]);
        prop_assert!(url.fragment().is_none() && url.username().is_empty() && url.password().is_none());
        prop_assert!(!url.as_str().contains(['\r', '\n', '\0', ' ']));
    }

    #[test]
    fn what_was_put_into_a_url_comes_out_of_it(q in hostile()) {
        let filled = with(&[("q", json!(q))], |values| values.url("https://a.test/?q=${q}"));
        let url = Url::parse(&filled.unwrap()).unwrap();
        let found: Vec<String> = url.query_pairs().map(|(_, value)| value.into_owned()).collect();
        prop_assert_eq!(found, [q]);
    }

    #[test]
    fn the_host_is_never_an_input(value in any_value(), place in 0..5_usize) {
        let template = ["https://${h}/", "https://${h}.a.test/", "https://a.test:${h}/", "${h}", "https://a.test${h}/x"][place];
        let filled = with(&[("h", value)], |values| values.url(template));
        prop_assert!(matches!(filled, Err(Unfit::Host(_))), "{:?}", filled);
    }

    #[test]
    fn arguments_are_as_many_as_their_templates(a in hostile(), b in hostile(), list in prop::collection::vec(hostile(), 0..5)) {
        let templates = [json!("-x"), json!("${a}"), json!("--b=${b}"), json!("${list}"), json!("${gone}"), json!("tail")];
        let inputs = [("a", json!(a)), ("b", json!(b)), ("list", json!(list))];
        let args = with(&inputs, |values| values.arguments(&templates)).unwrap();
        let expected = [vec!["-x".to_owned(), a, format!("--b={b}")], list, vec!["tail".to_owned()]].concat();
        prop_assert_eq!(args, expected);
    }

    #[test]
    fn a_text_without_templates_is_itself(text in hostile(), value in any_value()) {
        prop_assume!(!text.contains("${"));
        let filled = with(&[("q", value)], |values| values.fill(&json!({"k": [text.clone()]})));
        prop_assert_eq!(filled.unwrap().unwrap(), json!({"k": [text]}));
    }

    #[test]
    fn a_lone_template_keeps_its_value_and_is_not_filled_again(value in any_value()) {
        let filled = with(&[("v", value.clone()), ("q", json!("never"))], |values| values.fill(&json!("${v}"))).unwrap();
        prop_assert_eq!(filled, if value.is_null() { None } else { Some(value) });
    }

    #[test]
    fn pieces_of_anything_end(text in "[$a{}. -]{0,40}") {
        let _ = pieces(&text);
    }

    #[test]
    fn any_text_is_read_within_bounds(text in "[ \\-a-c:&*!\\[\\]{}\"'\n\t#|>,.0-9]{0,200}") {
        if let Err(flaws) = Manifest::read(&text) {
            prop_assert!(!flaws.is_empty() && flaws.iter().all(|flaw| flaw.line > 0 && flaw.column > 0));
        }
    }

    #[test]
    fn mending_keeps_what_it_does_not_mend(
        name in "[a-z]{1,8}", comment in "[a-z ]{0,10}", read in prop::collection::vec("[a-z]{1,4}", 0..3), flow in any::<bool>(),
        indent in 1..5_usize,
    ) {
        let pad = " ".repeat(indent);
        let list = if flow || read.is_empty() {
            format!(" [{}] # {comment}", read.join(", "))
        } else {
            read.iter().map(|path| format!("\n{pad}{pad}- {path} # {comment}")).collect()
        };
        let text = format!(
            "# {comment}\nname: {name} # {comment}\ndescription: d\nkind: http\nversion: 1\n\
             inputs: {{schema: {{type: object}}}}\noutputs: {{format: json}}\n\
             exec:\n{pad}http: {{method: GET, url: \"https://a.test/\"}}\n\
             permissions:\n{pad}network: true\n{pad}fs:\n{pad}{pad}read:{}\n{pad}{pad}write: []\n\
             approval: {{required: true}} # {comment}\n",
            list.replace(&format!("\n{pad}{pad}-"), &format!("\n{pad}{pad}{pad}-"))
        );
        let manifest = Manifest::read(&text).unwrap();
        let flaws = lint::lint(&manifest, &Written::new(&text), "dir", &lint::Found::default());
        let (mended, _) = fix::mend(&text, &flaws);
        let after = Manifest::read(&mended).unwrap();
        let left = lint::lint(&after, &Written::new(&mended), "dir", &lint::Found::default());
        prop_assert!(left.is_empty(), "{}\n{}", left[0], mended);
        prop_assert_eq!(mended.matches('#').count(), text.matches('#').count() - if flow { 0 } else { read.len().min(text.matches("- ").count()) });
        prop_assert_eq!(fix::mend(&mended, &flaws).1, 0);
    }
}

/// What is put into a manifest where it does not belong.
const STRANGE: &[&str] = &[
    "\t",
    "\n",
    "\r",
    "\r\n",
    " ",
    ": ",
    "- ",
    "#",
    " # x",
    "\"",
    "'",
    "[",
    "]",
    "{",
    "}",
    ",",
    "|",
    ">",
    "&a ",
    "*a",
    "!x ",
    "!!int ",
    "? ",
    "<<: ",
    "---\n",
    "...\n",
    "%",
    "@",
    "`",
    "~",
    "\u{feff}",
    "\u{2028}",
    "\u{85}",
    "\0",
    "ä",
    "💣",
    "${",
    "}",
    "$${q}",
    "true",
    "null",
    "0x1F",
    ".inf",
    "1e999",
    "9999999999999999999999",
    "\n  ",
    "\n\t",
    "network: true\n",
    "name: x\n",
    "permissions: {}\n",
    "    SPARE: {type: string}\n",
    "required: true\n",
    "  # why\n",
];

/// A manifest that somebody has edited badly: lines and characters gone, doubled, moved and put in.
fn mutated() -> impl Strategy<Value = String> {
    let edit = (0..7_usize, any::<prop::sample::Index>(), any::<prop::sample::Index>(), prop::sample::select(STRANGE));
    (0..DOCUMENT.len(), prop::collection::vec(edit, 0..6)).prop_map(|(which, edits)| {
        let mut text = DOCUMENT[which].1.to_owned();
        for (what, one, other, strange) in edits {
            let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
            let chars: Vec<char> = text.chars().collect();
            if lines.is_empty() {
                break;
            }
            let (a, b) = (one.index(lines.len()), other.index(lines.len()));
            let at = one.index(chars.len());
            let joined = |parts: &[&[char]]| parts.concat().into_iter().collect::<String>();
            text = match what {
                0 => {
                    lines.remove(a);
                    lines.concat()
                }
                1 => {
                    lines.insert(b, lines[a]);
                    lines.concat()
                }
                2 => {
                    lines.swap(a, b);
                    lines.concat()
                }
                3 => joined(&[&chars[..at], &chars[at + 1..]]),
                4 => joined(&[&chars[..at]]),
                5 => text.replace('\n', "\r\n"),
                _ => joined(&[&chars[..at], &strange.chars().collect::<Vec<_>>(), &chars[at..]]),
            };
        }
        text
    })
}

fn flaws(text: &str) -> Vec<Flaw> {
    match Manifest::read(text) {
        Ok(manifest) => lint::lint(&manifest, &Written::new(text), "dir", &lint::Found::default()),
        Err(flaws) => flaws,
    }
}

/// Whether a flaw stands in the text, or right behind it.
fn is_placed(flaw: &Flaw, text: &str) -> bool {
    let lines = text.split(['\n', '\r']).count() as u64;
    let longest = text.split('\n').map(|line| line.chars().count()).max().unwrap_or_default() as u64;
    (1..=lines + 1).contains(&flaw.line) && (1..=longest + 2).contains(&flaw.column)
}

proptest! {
    #[test]
    fn a_bad_edit_is_placed_and_mending_it_ends(text in mutated()) {
        let mut text = text;
        for round in 0.. {
            let found = flaws(&text);
            prop_assert!(Manifest::read(&text).is_ok() || !found.is_empty(), "refused without a reason");
            for flaw in &found {
                prop_assert!(is_placed(flaw, &text), "{}:{}: {}", flaw.line, flaw.column, flaw);
            }
            let (mended, count) = fix::mend(&text, &found);
            prop_assert_eq!(count == 0, mended == text);
            if count == 0 {
                break;
            }
            prop_assert_eq!(fix::mend(&mended, &found).1, 0, "mended twice: {}", mended);
            prop_assert!(round < 8, "mending does not end");
            text = mended;
        }
    }
}

/// A manifest as the document has it, unchanged.
const DOCUMENT: &[(&str, &str)] = &[
    ("web_search", include_str!("../tools/web_search/tool.yml")),
    ("slack_notify", include_str!("../tools/slack_notify/tool.yml")),
    ("repo_scan", include_str!("../tools/repo_scan/tool.yml")),
    ("repo_stats", include_str!("../tools/repo_stats/tool.yml")),
];

#[test]
fn the_documents_manifests_are_read_unchanged_and_are_clean() {
    for (name, text) in DOCUMENT {
        let manifest = Manifest::read(text).unwrap_or_else(|flaws| unreadable(name, &flaws[0].to_string()));
        let flaws = lint::lint(&manifest, &Written::new(text), name, &lint::Found::default());
        // What could be narrower is worth a word, and no error: it is written so by others.
        let advice = ["option-like", "permissions-wide"];
        let worse = flaws.iter().filter(|flaw| flaw.severity == Severity::Error || !advice.contains(&flaw.rule));
        let errors: Vec<String> = worse.map(ToString::to_string).collect();
        assert_eq!(errors, [""; 0], "{name}");
    }
    let weather: Value = serde_json::from_str(include_str!("../tools/weather/tool.json")).unwrap();
    let manifest = Manifest::of(weather).unwrap_or_else(|flaws| unreadable("weather", &flaws[0].to_string()));
    let flaws = lint::lint(&manifest, &Written::default(), "weather", &lint::Found::default());
    assert!(flaws.iter().all(|flaw| flaw.rule == "permissions-wide"), "{}", flaws[0]);
}

#[expect(clippy::panic, reason = "a test that cannot set its scene has failed")]
fn unreadable(name: &str, why: &str) -> Manifest {
    panic!("{name}: {why}")
}
