//! The settings of a tool layer.

use crate::agent::AgentSettings;
use crate::browser::BrowserSettings;
use crate::confined::Terms;
use crate::hooked::HookSettings;
use crate::making::Making;
use crate::media::MediaSettings;
use crate::memory::MemorySettings;
use crate::secrets::Secrets;
use crate::shelf::Folder;
use crate::skills::SkillFolder;
use crate::task::Keeper;
use crate::undo::UndoLimits;
use crate::web::WebSettings;
use haft_core::Policy;
use haft_core::approval::Chain;
use haft_core::shell::Table;
use haft_core::shell::rule::Rulebook;
use std::path::PathBuf;
use std::sync::Arc;

/// The settings of a [`Haft`](crate::Haft).
#[derive(Clone)]
pub struct Settings {
    pub(crate) policy: Arc<Policy>,
    /// Who has a say about a call. Add your own voices here.
    pub chain: Chain,
    /// Where outputs and before-images are kept.
    pub data_dir: PathBuf,
    /// How much undo keeps.
    pub undo: UndoLimits,
    /// How often a grant may be used.
    pub grant_uses: u32,
    /// On what terms programs run.
    pub terms: Terms,
    /// What shell commands do, besides what haft ships.
    pub table: Option<Arc<Table>>,
    /// The rules about shell commands, to say which of them match. They decide by the voice
    /// [`Ruled`](haft_core::approval::Ruled) in `chain`.
    pub rules: Arc<Rulebook>,
    /// Who keeps what goes on after its call.
    pub keeper: Keeper,
    /// What may be asked of the web.
    pub web: WebSettings,
    /// Settings of browsers.
    pub browser: BrowserSettings,
    /// Settings of media tools.
    pub media: MediaSettings,
    /// Settings of memory.
    pub memory: MemorySettings,
    /// Where tools that are files are found.
    pub folders: Vec<Folder>,
    /// Where skills are found. An earlier folder is stronger.
    pub skill_folders: Vec<SkillFolder>,
    /// Where secrets come from.
    pub secrets: Arc<Secrets>,
    /// What agents may make.
    pub making: Arc<Making>,
    /// Settings of agents.
    pub agent: Arc<AgentSettings>,
    /// The user's own programs that are asked about calls.
    pub hooks: Arc<HookSettings>,
}

impl Settings {
    /// The careful defaults: reading inside the project is free, everything else is asked.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self::with_policy(data_dir, Arc::new(Policy::default()))
    }

    /// The same under a policy. Its floor and its hooks speak in the chain from the start, so that neither
    /// can be forgotten.
    pub fn with_policy(data_dir: impl Into<PathBuf>, policy: Arc<Policy>) -> Self {
        let chain = Chain::under(&policy);
        let grant_uses = haft_core::grant::DEFAULT_USES;
        let (undo, terms) = (UndoLimits::default(), Terms::default());
        let (keeper, rules) = (Keeper::default(), Arc::default());
        let (web, browser, media) = (WebSettings::default(), BrowserSettings::default(), MediaSettings::default());
        Self {
            policy,
            chain,
            data_dir: data_dir.into(),
            undo,
            grant_uses,
            terms,
            table: None,
            rules,
            keeper,
            web,
            browser,
            media,
            memory: MemorySettings::default(),
            folders: Vec::new(),
            skill_folders: Vec::new(),
            secrets: Arc::default(),
            making: Arc::default(),
            agent: Arc::default(),
            hooks: Arc::default(),
        }
    }

    /// Which tools exist for whom.
    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }
}
