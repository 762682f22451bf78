"""A server made with the Python SDK whose one tool returns a file's text: what haft's is measured beside."""

from pathlib import Path

from mcp.server.mcpserver import MCPServer

server = MCPServer("reader")


@server.tool()
def read(path: str) -> str:
    """Read a text file."""
    return Path(path).read_text()


server.run("stdio")
