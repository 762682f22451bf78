//! Where the configuration and the data of a user and a project are.

use super::error::ConfigError;
use haft_runtime::shelf::{Folder, Whose};
use haft_runtime::skills::SkillFolder;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The places that haft looks at and keeps things in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    home: Option<PathBuf>,
    config: PathBuf,
    data: PathBuf,
    root: PathBuf,
}

impl Paths {
    /// The places of the user whom the environment describes, for the project at `root`.
    pub fn from_env(root: &Path) -> Result<Self, ConfigError> {
        Self::from_lookup(root, |name| std::env::var_os(name))
    }

    /// The places of a user with this home directory and no other wishes.
    pub fn new(home: &Path, root: &Path) -> Self {
        Self {
            home: Some(home.to_owned()),
            config: home.join(".config/haft"),
            data: home.join(".local/share/haft"),
            root: root.to_owned(),
        }
    }

    fn from_lookup(root: &Path, lookup: impl Fn(&str) -> Option<OsString>) -> Result<Self, ConfigError> {
        // The XDG specification: a relative path is invalid and has to be ignored.
        let absolute = |name: &str| lookup(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = absolute("HOME");
        let place = |variable: &'static str, below: &str, what: &'static str| {
            absolute(variable)
                .or_else(|| home.as_ref().map(|home| home.join(below)))
                .map(|base| base.join("haft"))
                .ok_or(ConfigError::NoHome { what, instead: variable })
        };
        let config = place("XDG_CONFIG_HOME", ".config", "the configuration")?;
        let data = place("XDG_DATA_HOME", ".local/share", "the log and grants")?;
        Ok(Self { config, data, root: root.to_owned(), home })
    }

    /// The user's configuration file.
    pub fn user_config(&self) -> PathBuf {
        self.config.join("config.yml")
    }

    /// The project's configuration file.
    pub fn project_config(&self) -> PathBuf {
        self.root.join(".haft/config.yml")
    }

    /// Where tools that are files are kept. An earlier folder is stronger.
    pub fn tool_folders(&self) -> Vec<Folder> {
        vec![
            // No project takes the place of what is the user's own.
            Folder { path: self.config.join("tools"), whose: Whose::Own },
            Folder { path: self.root.join(".haft/tools"), whose: Whose::Project },
            Folder { path: self.root.join(".glee/tools"), whose: Whose::Project },
        ]
    }

    /// Where skills are kept: the project's before the user's, and haft's own folder before those of other agents. An earlier
    /// folder is stronger.
    pub fn skill_folders(&self) -> Vec<SkillFolder> {
        let project = [".haft/skills", ".agents/skills", ".claude/skills"].map(|below| self.root.join(below));
        let home = |below: &str| self.home.as_ref().map(|home| home.join(below));
        let own = [Some(self.config.join("skills")), home(".agents/skills"), home(".claude/skills")];
        let project = project.into_iter().map(|path| SkillFolder { path, whose: Whose::Project });
        let own = own.into_iter().flatten().map(|path| SkillFolder { path, whose: Whose::Own });
        project.chain(own).collect()
    }

    /// Where the user keeps agents that are files.
    pub fn agents_dir(&self) -> PathBuf {
        self.config_dir().join("agents")
    }

    /// The directory of the user's configuration.
    pub fn config_dir(&self) -> &Path {
        &self.config
    }

    /// The directory of haft's own data.
    pub fn data_dir(&self) -> &Path {
        &self.data
    }

    /// The store that is used when nothing else is said.
    pub fn default_store(&self) -> PathBuf {
        self.data.join("haft.db")
    }

    /// The project's root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A path as a person would write it: `~` for the home directory.
    pub fn shown(&self, path: &Path) -> String {
        let inside = self.home.as_ref().and_then(|home| path.strip_prefix(home).ok());
        match inside {
            Some(rest) if !rest.as_os_str().is_empty() => format!("~/{}", rest.display()),
            _ => path.display().to_string(),
        }
    }

    /// Opens a leading `~`. None where the path begins with one and there is no home.
    pub(super) fn expand(&self, text: &str) -> Option<PathBuf> {
        match text.strip_prefix('~') {
            Some("") => self.home.clone(),
            Some(rest) if rest.starts_with('/') => {
                self.home.as_ref().map(|home| home.join(rest.trim_start_matches('/')))
            }
            _ => Some(PathBuf::from(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Result<(String, String), String> {
        let lookup = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        let paths = Paths::from_lookup(Path::new("/p"), lookup).map_err(|error| error.to_string())?;
        Ok((paths.shown(&paths.user_config()), paths.shown(&paths.default_store())))
    }

    #[test]
    fn xdg_variables_win_over_home_unless_relative() {
        let home = ("~/.config/haft/config.yml".to_owned(), "~/.local/share/haft/haft.db".to_owned());
        assert_eq!(found(&[("HOME", "/h")]).unwrap(), home);
        assert_eq!(found(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "relative")]).unwrap(), home);
        let both = found(&[("XDG_CONFIG_HOME", "/c"), ("XDG_DATA_HOME", "/d")]).unwrap();
        assert_eq!(both, ("/c/haft/config.yml".to_owned(), "/d/haft/haft.db".to_owned()));
    }

    #[test]
    fn a_missing_home_says_what_to_set() {
        assert_eq!(found(&[]).unwrap_err(), "HOME is not set, so there is no place for the configuration");
        let error = Paths::from_lookup(Path::new("/p"), |_| None).unwrap_err();
        assert_eq!(error.hint().unwrap(), "set HOME, or XDG_CONFIG_HOME to an absolute path");
        assert!(found(&[("XDG_CONFIG_HOME", "/c")]).unwrap_err().ends_with("the log and grants"));
    }
}
