//! Reads the words after a program: which of them are files that it runs.

use super::not_known;
use super::programs::{FirstOperand, Runner, ScriptLanguage};
use crate::shell::state::join;
use crate::shell::word::Word;

/// Words of package managers that are followed by the name of a script.
const RUNS_SCRIPT: &[&str] = &["run", "run-script", "rum", "urn"];
/// Scripts that are run when packages are installed.
const ON_INSTALL: &[&str] =
    &["preinstall", "install", "postinstall", "prepublish", "preprepare", "prepare", "postprepare"];
/// Words of package managers that install.
const INSTALLS: &[&str] = &["install", "i", "ci", "add", "update", "rebuild", "link", "it", "install-test"];

/// What a command's words say that it runs.
#[derive(Default)]
pub(super) struct CommandFiles {
    pub(super) scripts: Vec<Word>,
    pub(super) files: Vec<Word>,
    pub(super) dir: Option<String>,
    /// Whether code or a module was given, so that no script is.
    pub(super) given: bool,
    pub(super) unbound: Vec<String>,
    pub(super) package_scripts: Vec<String>,
    /// Where a command begins that it runs in turn.
    pub(super) command_at: Option<usize>,
}

/// Where the value of an option is.
#[derive(Debug, PartialEq, Eq)]
enum OptionValue {
    Here(String),
    InNextWord,
}

impl OptionValue {
    fn word(self, mut next: impl FnMut() -> Option<Word>) -> Option<Word> {
        match self {
            Self::Here(value) => Some(Word::known(value)),
            Self::InNextWord => next(),
        }
    }
}

/// The value of one of these options, if the word is one of them.
fn value_of(options: &[&str], word: &str) -> Option<OptionValue> {
    options.iter().find_map(|option| {
        let rest = word.strip_prefix(option)?;
        match (rest, option.starts_with("--")) {
            ("", _) => Some(OptionValue::InNextWord),
            (rest, true) => rest.strip_prefix('=').map(|value| OptionValue::Here(value.to_owned())),
            (rest, false) if option.len() == 2 => Some(OptionValue::Here(rest.trim_start_matches('=').to_owned())),
            _ => None,
        }
    })
}

/// Whether a bundle of short options ends in one of these: `perl -ne`.
fn ends_bundle(options: &[&str], word: &str) -> bool {
    let is_bundle = word.len() > 2 && word.starts_with('-') && !word.starts_with("--");
    let letters = || word[1..].chars().all(|c| c.is_ascii_alphanumeric());
    is_bundle && letters() && options.iter().any(|option| option.len() == 2 && word.ends_with(&option[1..]))
}

/// Whether a bundle of short options has this one: `bash -es`.
fn is_bundle_with(option: char, word: &str) -> bool {
    let letters = word.strip_prefix('-').filter(|letters| letters.chars().all(|c| c.is_ascii_alphabetic()));
    letters.is_some_and(|letters| letters.contains(option))
}

impl Runner {
    /// Reads the words after the program.
    pub(super) fn read(&self, args: &[Word]) -> CommandFiles {
        let mut said = CommandFiles::default();
        let mut words = args.iter().enumerate();
        let mut after_first = match self.first {
            FirstOperand::ScriptAfter(_) | FirstOperand::CommandAfter(_) | FirstOperand::PackageScript => false,
            FirstOperand::Ignored | FirstOperand::Script => true,
        };
        let mut options_end = false;
        while let Some((at, word)) = words.next() {
            let text = word.start();
            if !options_end && text == "--" && word.literal().is_some() {
                options_end = true;
                continue;
            }
            let is_option = !options_end && text.len() > 1 && text.starts_with(['-', '+']);
            if !is_option {
                match self.operand(word, at, &mut after_first, args, &mut said) {
                    Reading::GoesOn => continue,
                    Reading::Ends => break,
                }
            }
            // Only a word that is known can be read as an option.
            let Some(text) = word.literal() else {
                let leads = [self.code, self.modules, self.files].iter().any(|all| value_of(all, text).is_some());
                if leads && !text.is_empty() {
                    said.unbound.push(not_known(word));
                }
                continue;
            };
            let mut next = || words.next().map(|(_, word)| word.clone());
            if value_of(self.code, text).is_some() || ends_bundle(self.code, text) {
                said.given = true;
                // The code is the first word after it that is no option: `bash -c -e 'ls'`.
                let code = words.clone().map(|(_, word)| word).find(|word| !word.start().starts_with(['-', '+']));
                said.unbound.extend(code.filter(|word| word.literal().is_none()).map(not_known));
                if matches!(self.first, FirstOperand::Script) {
                    break;
                }
            } else if self.reads == ScriptLanguage::Shell && is_bundle_with('s', text) {
                // The script comes from the input, and the words that follow are its arguments.
                break;
            } else if let Some(value) = value_of(self.modules, text) {
                let module = value.word(&mut next);
                let module = module.map(|word| word.shown().to_owned()).unwrap_or_default();
                said.unbound.push(format!("the module `{}`", crate::shell::cut(&module)));
                said.given = true;
                break;
            } else if let Some(value) = value_of(self.files, text) {
                said.files.extend(value.word(&mut next));
            } else if let Some(value) = value_of(self.dirs, text) {
                match value.word(&mut next) {
                    Some(word) if word.literal().is_some() => {
                        let to = word.shown();
                        said.dir = Some(said.dir.take().map_or_else(|| to.to_owned(), |from| join(&from, to)));
                    }
                    _ => said.unbound.push("what it finds in a directory that is not known".to_owned()),
                }
            } else if value_of(self.takes, text) == Some(OptionValue::InNextWord) || ends_bundle(self.takes, text) {
                next();
            }
        }
        said
    }

    /// Reads a word that is no option.
    fn operand(
        &self,
        word: &Word,
        at: usize,
        after_first: &mut bool,
        args: &[Word],
        said: &mut CommandFiles,
    ) -> Reading {
        match self.first {
            FirstOperand::Ignored => {}
            FirstOperand::Script => {
                // `-` stands for the input.
                if word.literal() != Some("-") {
                    said.scripts.push(word.clone());
                }
                return Reading::Ends;
            }
            FirstOperand::ScriptAfter(words) => {
                if *after_first {
                    said.scripts.push(word.clone());
                    return Reading::Ends;
                }
                *after_first = word.literal().is_some_and(|text| words.contains(&text));
            }
            FirstOperand::CommandAfter(words) => {
                if *after_first {
                    said.command_at = Some(at);
                    return Reading::Ends;
                }
                *after_first = word.literal().is_some_and(|text| words.contains(&text));
            }
            FirstOperand::PackageScript => {
                package_scripts(word, args.get(at + 1..).unwrap_or_default(), said);
                return Reading::Ends;
            }
        }
        Reading::GoesOn
    }
}

/// Whether the words after this one matter.
#[derive(PartialEq, Eq)]
enum Reading {
    GoesOn,
    Ends,
}

/// The scripts of `package.json` that a package manager runs for these words.
fn package_scripts(word: &Word, rest: &[Word], said: &mut CommandFiles) {
    let Some(text) = word.literal() else {
        said.unbound.push(format!("what `{}` stands for", crate::shell::cut(&word.text)));
        return;
    };
    let named = || rest.iter().find(|word| !word.start().starts_with('-'));
    let mut scripts: Vec<String> = match text {
        text if RUNS_SCRIPT.contains(&text) => named().and_then(Word::literal).map(str::to_owned).into_iter().collect(),
        text if INSTALLS.contains(&text) => ON_INSTALL.iter().map(ToString::to_string).collect(),
        "exec" | "x" | "dlx" => {
            said.unbound.push(format!("the package that `{text}` runs"));
            Vec::new()
        }
        "t" => vec!["test".to_owned()],
        // `npm test`, `yarn build`, `bun build.ts`.
        text => vec![text.to_owned()],
    };
    let around: Vec<String> = scripts.iter().flat_map(|name| [format!("pre{name}"), format!("post{name}")]).collect();
    scripts.extend(around);
    if (text.contains('/') || text.contains('.')) && !text.starts_with('@') {
        said.scripts.push(word.clone());
    }
    said.package_scripts = scripts;
}
