//! How well tools are found: a labelled set, beside plain BM25 and the score that haft had before.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot set its scene has failed")]
#![expect(clippy::print_stderr, reason = "a test that is left out says so")]

#[path = "../../../../tests/real/needs.rs"]
mod needs;
mod set;

use haft_core::ToolSpec;
use haft_core::finding::{Asked, Meaning, Weights};
use haft_runtime::memory::{Table, setup};
use set::{Labelled, Measured, Plain, indexed, measured, once, questions, ranked, tools};
use std::collections::HashSet;
use std::path::Path;

/// What numbers may fall by before somebody should look.
const MARGIN: f64 = 0.02;

fn held_out(all: &[Labelled]) -> impl Iterator<Item = &Labelled> {
    all.iter().filter(|question| question.held_out)
}

/// Whether each number is at least what was measured, but for the margin.
fn is_no_less(what: &str, found: Measured, [first, five, ndcg, mrr]: [f64; 4]) {
    let pairs = [(found.first, first), (found.five, five), (found.ndcg, ndcg), (found.mrr, mrr)];
    assert!(pairs.iter().all(|(found, least)| *found >= least - MARGIN), "{what}: {found:.3?}");
}

#[test]
fn the_set_is_as_large_as_it_says_and_names_tools_that_there_are() {
    let (tools, questions) = (tools(), questions());
    let names: HashSet<&str> = tools.iter().map(|spec| spec.name.as_str()).collect();
    assert!(tools.len() >= 500 && names.len() == tools.len(), "{} of {}", names.len(), tools.len());
    assert!(questions.len() >= 300, "{}", questions.len());
    for question in &questions {
        assert!((1..=3).contains(&question.right.len()), "{}", question.query);
        assert!(question.right.iter().all(|name| names.contains(name.as_str())), "{:?}", question.right);
    }
    let held = held_out(&questions).count();
    assert!(held * 2 + 4 >= questions.len(), "half of each kind is held out: {held}");
    let paraphrased = questions.iter().filter(|question| question.kind == "paraphrase").count();
    assert!(paraphrased * 2 > questions.len(), "most share few words with what is right");
}

#[test]
fn words_alone_find_more_than_plain_bm25_and_than_before() {
    let (tools, questions) = (tools(), questions());
    let (index, plain, weights) = (indexed(&tools, None), Plain::new(&tools), Weights::default());
    let ours = measured(held_out(&questions), |query| ranked(&index, query, None, &weights));
    let peer = measured(held_out(&questions), |query| plain.ranked(query));
    let before = measured(held_out(&questions), |query| once(&tools, query));
    for other in [peer, before] {
        assert!(ours.ndcg > other.ndcg + 0.05 && ours.first > other.first + 0.05, "{ours:.3?} beside {other:.3?}");
    }
    is_no_less("words alone", ours, [0.408, 0.540, 0.497, 0.470]);
    let without = Weights { synonym: 0.0, ..Weights::default() };
    let bare = measured(held_out(&questions), |query| ranked(&index, query, None, &without));
    assert!(ours.ndcg > bare.ndcg + 0.01, "the synonyms are worth their lines: {ours:.3?} beside {bare:.3?}");
}

#[test]
fn words_and_meaning_together_find_most() {
    let Some(wheel) = needs::need("HAFT_TEST_WORDLLAMA") else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("words");
    setup::install(Path::new(&wheel), &file).unwrap();
    let table = Table::read(&file).unwrap();
    let (of, knows) = (|text: &str| table.embed_one(text), |word: &str| table.knows(word));
    let meaning = Some(Meaning { of: &of, knows: &knows });
    let (tools, questions) = (tools(), questions());
    let (index, plain, weights) = (indexed(&tools, meaning), Plain::new(&tools), Weights::default());
    let ours = measured(held_out(&questions), |query| ranked(&index, query, meaning, &weights));
    let peer = measured(held_out(&questions), |query| plain.ranked(query));
    assert!(ours.ndcg > peer.ndcg + 0.15 && ours.five > peer.five + 0.2, "{ours:.3?} beside {peer:.3?}");
    assert!(ours.first > peer.first + 0.08 && ours.mrr > peer.mrr + 0.12, "{ours:.3?} beside {peer:.3?}");
    is_no_less("both", ours, [0.451, 0.695, 0.607, 0.563]);
    let named = measured(questions.iter().filter(|question| question.kind == "name"), |query| {
        ranked(&index, query, meaning, &weights)
    });
    assert!(named.first > 0.99, "who knows the name gets the tool: {named:.3?}");
}

#[test]
fn only_what_is_wanted_is_found_and_a_name_comes_first() {
    let tools: Vec<ToolSpec> = tools();
    let (mut index, weights) = (indexed(&tools, None), Weights::default());
    let found = |index: &haft_core::finding::Index, text: &str, wanted: &dyn Fn(&str) -> bool| {
        let asked = Asked { text, meaning: None, wanted, limit: 5, weights: &weights };
        index.search(&asked).into_iter().map(|found| found.name).collect::<Vec<_>>()
    };
    let all = |_: &str| true;
    for (query, first) in [
        ("mcp:jira:create_issue", "mcp:jira:create_issue"),
        ("mcp__jira__create_issue", "mcp:jira:create_issue"),
        ("FILE.READ", "file.read"),
        ("Read", "file.read"),
    ] {
        assert_eq!(found(&index, query, &all)[0], first, "{query}");
    }
    let only_slack = |name: &str| name.starts_with("mcp:slack:");
    let seen = found(&index, "send a message", &only_slack);
    assert!(!seen.is_empty() && seen.iter().all(|name| only_slack(name)), "{seen:?}");
    assert!(found(&index, "send a message", &|_| false).is_empty());
    index.remove("mcp:jira:create_issue");
    assert!(!found(&index, "mcp:jira:create_issue", &all).contains(&"mcp:jira:create_issue".to_owned()));
    for nothing in ["", "   ", "?!", "qqqqzzzz", "\0"] {
        assert!(found(&index, nothing, &all).is_empty(), "{nothing:?}");
    }
}
