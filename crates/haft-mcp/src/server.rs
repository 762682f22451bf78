//! haft as an MCP server: the same path of a call for every client.
