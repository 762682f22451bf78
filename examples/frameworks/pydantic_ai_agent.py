"""A Pydantic AI agent that works with haft's tools: `python pydantic_ai_agent.py "What does this project do?"`.

haft runs as a program of this one, or, where HAFT_URL is set (http://127.0.0.1:4747/mcp), as `haft serve`.
"""

import asyncio
import os
import sys

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset


# The model hears why a call was refused ("failed"). By default, Pydantic AI would have it try the call again.
OPTIONS = {"tool_error_behavior": "failed", "read_timeout": 300}


def haft() -> MCPToolset:
    if url := os.environ.get("HAFT_URL"):
        return MCPToolset(url, headers={"Authorization": f"Bearer {os.environ['HAFT_TOKEN']}"}, **OPTIONS)
    return MCPToolset(StdioTransport("haft", ["mcp", "--agent", "pydantic-ai"]), **OPTIONS)


async def main(task: str) -> None:
    agent = Agent(os.environ.get("MODEL", "openai:gpt-5"), toolsets=[haft()])
    async with agent:
        print((await agent.run(task)).output)


asyncio.run(main(sys.argv[1]))
