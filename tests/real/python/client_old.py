"""Carries out a plan with the Python SDK of 2025-06-18 and prints what came of it as JSON. The plan is as in client.py."""

import json
import sys
from contextlib import AsyncExitStack
from datetime import timedelta

import anyio
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


async def tour(plan):
    asked, calls = [], []

    async def on_question(context, params):
        asked.append({"message": params.message, "schema": params.requestedSchema})
        await anyio.sleep(1)  # As long as a person reads: an instant answer does not count as theirs.
        return types.ElicitResult(action="accept", content=plan["answer"])

    async with AsyncExitStack() as stack:
        if "http" in plan:
            headers = {"Authorization": "Bearer " + plan["token"]}
            server = streamablehttp_client(plan["http"], headers=headers)
            reader, writer, _ = await stack.enter_async_context(server)
        else:
            server = StdioServerParameters(command=plan["stdio"][0], args=plan["stdio"][1:])
            reader, writer = await stack.enter_async_context(stdio_client(server))
        settings = {"read_timeout_seconds": timedelta(seconds=60)}
        if "answer" in plan:
            settings["elicitation_callback"] = on_question
        session = await stack.enter_async_context(ClientSession(reader, writer, **settings))
        greeting = await session.initialize()
        page = await session.list_tools()
        tools = [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in page.tools]
        for call in plan["calls"]:
            progress = []

            async def on_progress(done, total, message):
                progress.append(message)

            result = await session.call_tool(call["tool"], call["args"], progress_callback=on_progress)
            text = "".join(getattr(block, "text", "") for block in result.content)
            calls.append(
                {"error": bool(result.isError), "text": text, "data": result.structuredContent, "progress": progress}
            )
        return {
            "version": greeting.protocolVersion,
            "server": greeting.serverInfo.name,
            "tools": tools,
            "calls": calls,
            "asked": asked,
        }


print(json.dumps(anyio.run(tour, json.loads(sys.argv[1]))))
