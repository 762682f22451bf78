//! A stage for tool tests: a temporary project, a real store, and calls that are always allowed.

use crate::confined::Terms;
use crate::events::Events;
use crate::halt::Halt;
use crate::maker::Maker;
use crate::memory::{Memory, MemorySettings};
use crate::registry::Catalogue;
use crate::scene::{Basis, Outfit, Scene};
use crate::shelf::Shelf;
use crate::skills::SkillCatalog;
use crate::task::{Desk, Keeper};
use crate::tool::{Reply, Tool};
use crate::undo::Vault;
use crate::web::{Web, WebSettings};
use crate::workspace::Workspace;
use haft_core::admit::{Checked, Facts, Ruling, decide};
use haft_core::approval::{Chain, Decision, Question, Resolver, ResolverError, Vote};
use haft_core::{Call, CallError, Policy, Schema};
use haft_store::Store;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Says yes to everything.
struct Anything;

impl Resolver for Anything {
    fn name(&self) -> &'static str {
        "test"
    }
    fn resolve(&self, _: Question<'_>) -> Result<Vote, ResolverError> {
        Ok(Some((Decision::Allow, "a test".to_owned())))
    }
}

/// Panics unless work of eight times the size takes at most about eight times as long. Each time is the best of three, so that
/// what else the machine does counts little.
pub(crate) fn assert_linear(small: usize, run: impl Fn(usize)) {
    let best = |size: usize| {
        let time = || {
            let begun = Instant::now();
            run(size);
            begun.elapsed()
        };
        (0..3).map(|_| time()).min().unwrap_or_default()
    };
    let (one, eight) = (best(small), best(small * 8));
    let most = one * 8 * 3 + Duration::from_millis(100);
    assert!(eight <= most, "{small} took {one:?}, and {} took {eight:?}", small * 8);
}

/// A temporary project with its own store.
pub(crate) struct Stage {
    dir: tempfile::TempDir,
    workspace: Arc<Workspace>,
    store: Store,
    terms: Arc<Terms>,
    desk: Arc<Desk>,
    outfit: Outfit,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("project/.git")).unwrap();
        let workspace = Arc::new(Workspace::new(&dir.path().join("project")).unwrap());
        let store = Store::open(&dir.path().join("haft.db")).unwrap();
        let terms = Arc::new(Terms { data_dir: dir.path().join("data"), ..Terms::default() });
        let limits = crate::UndoLimits::default();
        let maker = Maker {
            vault: Vault::new(&terms.data_dir, limits),
            store: store.clone(),
            workspace: Arc::clone(&workspace),
            policy: Arc::default(),
        };
        let desk = Arc::new(Desk::new(maker, Arc::clone(&terms), limits, Keeper::Thread));
        let outfit = Outfit {
            web: Arc::new(Web::new(WebSettings::default(), &terms.data_dir)),
            browsers: Arc::default(),
            media: Arc::default(),
            memory: Arc::new(Memory::new(MemorySettings::default(), &terms.data_dir)),
            room: crate::memory::Room::default(),
            shelf: Arc::new(Shelf::new(Vec::new(), workspace.root(), Arc::default(), store.clone())),
            skills: Arc::new(SkillCatalog::new(Vec::new(), workspace.root(), store.clone())),
            secrets: Arc::default(),
            interpreters: Arc::default(),
            making: Arc::default(),
            active: Arc::default(),
            finder: Arc::default(),
            agents: Arc::default(),
        };
        Self { dir, workspace, store, terms, desk, outfit }
    }

    /// The same with other settings of memory.
    pub(crate) fn remembering(mut self, settings: MemorySettings) -> Self {
        self.outfit.memory = Arc::new(Memory::new(settings, &self.terms.data_dir));
        self
    }

    /// Where haft keeps its own files.
    pub(crate) fn data_dir(&self) -> &Path {
        &self.terms.data_dir
    }

    /// The project's directory.
    pub(crate) fn root(&self) -> &Path {
        self.workspace.root()
    }

    /// A directory outside the project.
    pub(crate) fn outside(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a file of the project, with its directories.
    pub(crate) fn file(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Lets the default session know a file.
    pub(crate) fn seen(&self, path: &Path, sighting: haft_store::Sighting) {
        self.store.note_sighting(haft_core::SessionId::default(), path.to_owned(), sighting);
    }

    /// Validates a call, resolves its places and runs the tool. Changes are returned, not applied.
    pub(crate) fn act(&self, tool: &Arc<dyn Tool>, args: Value) -> Result<Reply, CallError> {
        self.act_until(tool, args, &Halt::new())
    }

    /// The same, with a way to stop it.
    pub(crate) fn act_until(&self, tool: &Arc<dyn Tool>, args: Value, halt: &Halt) -> Result<Reply, CallError> {
        let scene = self.scene(tool, args, halt)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(tool.act(&scene))
    }

    /// What the tool sees of a call that was let through.
    pub(crate) fn scene(&self, tool: &Arc<dyn Tool>, args: Value, halt: &Halt) -> Result<Scene, CallError> {
        let spec = Arc::clone(tool.spec());
        let schema = Schema::compile(&spec.shapes.input).unwrap();
        let call = Call::new(crate::new_call_id(), spec.name.as_str(), args.clone());
        let checked = Checked::new(call, Arc::clone(&spec), &schema, args.into())?;
        let places = self.workspace.places(&spec, checked.args())?;
        let mut chain = Chain::default();
        chain.add(Arc::new(Anything));
        let facts = Facts { places, ..Facts::default() };
        let Ruling::Admitted(admitted) = decide(checked, facts, &Policy::default(), &chain) else {
            panic!("the test resolver allows everything")
        };
        let catalogue = Catalogue { registry: Arc::default(), policy: Arc::default() };
        Ok(Scene::new(
            Basis::of(&admitted, None),
            (
                Arc::clone(&self.workspace),
                Arc::clone(&self.terms),
                Arc::clone(&self.desk),
                catalogue,
                self.outfit.clone(),
            ),
            self.store.clone(),
            Events::default(),
            halt.clone(),
        ))
    }
}
