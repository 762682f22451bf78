"""An agent of the OpenAI Agents SDK that works with haft's tools: `python openai_agents.py "What does this project do?"`.

haft runs as a program of this one, or, where HAFT_URL is set (http://127.0.0.1:4747/mcp), as `haft serve`.
"""

import asyncio
import os
import sys

from agents import Agent, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp

# A call may wait for a person, so that a client's usual few seconds are not enough.
PATIENCE = 300


def haft():
    if url := os.environ.get("HAFT_URL"):
        headers = {"Authorization": f"Bearer {os.environ['HAFT_TOKEN']}"}
        return MCPServerStreamableHttp({"url": url, "headers": headers}, client_session_timeout_seconds=PATIENCE)
    program = {"command": "haft", "args": ["mcp", "--agent", "openai-agents"]}
    return MCPServerStdio(program, client_session_timeout_seconds=PATIENCE)


async def main(task: str) -> None:
    set_tracing_disabled(True)
    async with haft() as tools:
        agent = Agent("worker", model=os.environ.get("MODEL", "gpt-5"), mcp_servers=[tools])
        print((await Runner.run(agent, task, max_turns=30)).final_output)


asyncio.run(main(sys.argv[1]))
