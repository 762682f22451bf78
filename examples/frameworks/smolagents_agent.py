"""A smolagents agent that works with haft's tools: `python smolagents_agent.py "What does this project do?"`.

haft runs as a program of this one, or, where HAFT_URL is set (http://127.0.0.1:4747/mcp), as `haft serve`.
"""

import os
import sys

from mcp import StdioServerParameters
from smolagents import MCPClient, OpenAIModel, ToolCallingAgent


def haft():
    if url := os.environ.get("HAFT_URL"):
        headers = {"Authorization": f"Bearer {os.environ['HAFT_TOKEN']}"}
        return {"transport": "streamable-http", "url": url, "headers": headers}
    return StdioServerParameters(command="haft", args=["mcp", "--agent", "smolagents"], env=dict(os.environ))


with MCPClient(haft(), structured_output=True) as tools:
    for tool in tools:
        for parameter in tool.inputs.values():
            # smolagents takes every parameter for required, unless it may be null. haft says which one is missing.
            parameter["nullable"] = True
    model = OpenAIModel(os.environ.get("MODEL", "gpt-5"))
    print(ToolCallingAgent(tools=tools, model=model, max_steps=30).run(sys.argv[1]))
