"""A LangChain agent that works with haft's tools: `python langchain_agent.py "What does this project do?"`.

haft runs as a program of this one, or, where HAFT_URL is set (http://127.0.0.1:4747/mcp), as `haft serve`.
"""

import asyncio
import os
import sys

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from langchain_openai import ChatOpenAI


def haft() -> dict:
    if url := os.environ.get("HAFT_URL"):
        headers = {"Authorization": f"Bearer {os.environ['HAFT_TOKEN']}"}
        return {"transport": "streamable_http", "url": url, "headers": headers}
    return {"transport": "stdio", "command": "haft", "args": ["mcp", "--agent", "langchain"]}


async def main(task: str) -> None:
    # One session for all calls: `client.get_tools()` would open another one for each of them.
    async with MultiServerMCPClient({"haft": haft()}).session("haft") as session:
        tools = await load_mcp_tools(session)
        agent = create_agent(ChatOpenAI(model=os.environ.get("MODEL", "gpt-5")), tools)
        result = await agent.ainvoke({"messages": [("user", task)]}, {"recursion_limit": 100})
        print(result["messages"][-1].text)


asyncio.run(main(sys.argv[1]))
