"""Reads skills as resources and prompts with the Python SDK 2.x and prints what came as JSON.

usage: skills.py PLAN   with PLAN = {"stdio": [PROGRAM, ARG…], "read": [URI…], "prompts": [{"name", "arguments"}…]}
"""

import json
import sys

import anyio
from mcp import Client, StdioServerParameters


def plain(model):
    return model.model_dump(by_alias=True, exclude_none=True, mode="json")


async def attempt(work):
    try:
        return plain(await work)
    except Exception as error:
        return {"error": str(error)}


async def tour(plan):
    server = StdioServerParameters(command=plan["stdio"][0], args=plan["stdio"][1:])
    async with Client(server, read_timeout_seconds=60) as client:
        resources = plain(await client.list_resources())["resources"]
        templates = plain(await client.list_resource_templates())["resourceTemplates"]
        prompts = plain(await client.list_prompts())["prompts"]
        read = [await attempt(client.read_resource(uri)) for uri in plan["read"]]
        filled = [await attempt(client.get_prompt(one["name"], one.get("arguments"))) for one in plan["prompts"]]
        return {"resources": resources, "templates": templates, "prompts": prompts, "read": read, "filled": filled}


print(json.dumps(anyio.run(tour, json.loads(sys.argv[1]))))
