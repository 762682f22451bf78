"""Carries out a plan with the Python SDK 2.x and prints what came of it as JSON.

usage: client.py PLAN   with PLAN = {"stdio": [PROGRAM, ARG…]} or {"http": URL, "token": TOKEN}, and
"calls": [{"tool", "args"}…], "answer": content of every answer to a question ("never": the question is left open),
"session": the name of the session over HTTP, "mode": as in the SDK
"""

import json
import sys

import anyio
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client


async def tour(plan):
    asked, calls = [], []

    async def on_question(context, params):
        asked.append({"message": params.message, "schema": getattr(params, "requested_schema", None)})
        if plan["answer"] == "never":
            print("asked", flush=True)
            await anyio.sleep_forever()
        await anyio.sleep(1)  # As long as a person reads: an instant answer does not count as theirs.
        return types.ElicitResult(action="accept", content=plan["answer"])

    if "http" in plan:
        headers = {"Authorization": "Bearer " + plan["token"]} if "token" in plan else {}
        if "session" in plan:
            headers["Haft-Session"] = plan["session"]
        server = streamable_http_client(plan["http"], http_client=create_mcp_http_client(headers=headers))
    else:
        server = StdioServerParameters(command=plan["stdio"][0], args=plan["stdio"][1:])
    settings = {"mode": plan.get("mode", "auto"), "read_timeout_seconds": 60}
    if "answer" in plan:
        settings["elicitation_callback"] = on_question
    async with Client(server, **settings) as client:
        tools, cursor = [], None
        while True:
            page = await client.list_tools(cursor=cursor)
            tools += [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in page.tools]
            cursor = page.next_cursor
            if not cursor:
                break
        for call in plan["calls"]:
            progress = []

            async def on_progress(done, total, message):
                progress.append(message)

            result = await client.call_tool(call["tool"], call["args"], progress_callback=on_progress)
            text = "".join(getattr(block, "text", "") for block in result.content)
            calls.append(
                {
                    "error": bool(result.is_error),
                    "text": text,
                    "data": result.structured_content,
                    "progress": progress,
                    "meta": result.meta,
                }
            )
        name = client.server_info.name if client.server_info else None
        return {"version": client.protocol_version, "server": name, "tools": tools, "calls": calls, "asked": asked}


print(json.dumps(anyio.run(tour, json.loads(sys.argv[1]))))
