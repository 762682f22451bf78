//! Pages of random pieces: nothing makes it crash, and every word is there once, in its order.

use haft_html::{Form, Options, markdown};
use proptest::prelude::*;

const PIECES: &[&str] = &[
    "<p>",
    "</p>",
    "<br>",
    "<sup>",
    "</sup>",
    "<sub>",
    "</sub>",
    "<del>",
    "</del>",
    "<s>",
    "</s>",
    "<q>",
    "</q>",
    "<b>",
    "</b>",
    "<a href=http://a/>",
    "</a>",
    "<code>",
    "</code>",
    "<pre>",
    "</pre>",
    "<ruby>",
    "<rt>",
    "</rt>",
    "</ruby>",
    "<table>",
    "</table>",
    "<tr>",
    "</tr>",
    "<td>",
    "<td rowspan=2>",
    "<td colspan=3>",
    "<th>",
    "<th rowspan=3 colspan=2>",
    "</td>",
    "<tbody>",
    "<ul>",
    "</ul>",
    "<ol reversed>",
    "<ol type=a>",
    "</ol>",
    "<li>",
    "</li>",
    "<blockquote>",
    "</blockquote>",
    "<h2>",
    "</h2>",
    "<img alt=\u{e9} src=http://i/>",
    "<input type=checkbox>",
    "<span style=text-decoration:line-through>",
    "</span>",
    " ",
    "\n",
    "~",
    "`",
    "é",
    "漢",
    "(",
    "[",
    "|",
    "#",
    "2",
    "-",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_word_is_there_once_and_in_its_order(choices in proptest::collection::vec(0..PIECES.len() + 20, 0..60)) {
        let (mut html, mut count) = (String::new(), 0);
        for choice in choices {
            match PIECES.get(choice) {
                Some(piece) => html.push_str(piece),
                None => {
                    html.push_str(&format!("w{count}x"));
                    count += 1;
                }
            }
        }
        for form in [Form::Markdown, Form::Text] {
            for main in [false, true] {
                let text = markdown(&html, &Options { form, main, base: None }).text;
                let mut rest = text.as_str();
                for number in 0..count {
                    let word = format!("w{number}x");
                    prop_assert_eq!(text.matches(&word).count(), 1, "{} in {} of {}", word, text, html);
                    let at = rest.find(&word);
                    prop_assert!(at.is_some(), "{} is out of order in {} of {}", word, text, html);
                    rest = &rest[at.unwrap_or(0)..];
                }
            }
        }
    }
}
