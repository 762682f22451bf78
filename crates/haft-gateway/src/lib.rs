//! The only crate that listens: HTTP and WebSocket, events, MCP over HTTP, and the page where a person decides.
