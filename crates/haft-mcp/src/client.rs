//! The other way: any MCP server's tools as tools of haft.

/// A server whose tools are offered.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// Its name here.
    pub name: String,
}
