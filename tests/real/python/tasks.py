"""Lets a call become a task of the extension `io.modelcontextprotocol/tasks` with the Python SDK 2.x, and prints what
came of it as JSON.

usage: tasks.py PLAN   with PLAN = {"stdio": [PROGRAM, ARG…]} or {"http": URL, "token": TOKEN}, "name": the client's name,
and either "call": {"tool", "args"} or "task": the id of a task from before; "act": "answer" (as a person does), "cancel" (what
asks), "stop" (cancel at once) or "leave" (go as soon as there is a task)
"""

import json
import sys
from typing import Any, Literal

import anyio
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.extension import ClientExtension, ResultClaim
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError

EXTENSION = "io.modelcontextprotocol/tasks"
READING_TIME = 1.0


class CreatedTask(types.Result):
    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    ttl_ms: int | None
    poll_interval_ms: int | None = None
    status_message: str | None = None


class AnyResult(types.Result):
    model_config = {"extra": "allow"}


class TaskRequest(types.Request[dict[str, Any], str]):
    name_param = "taskId"


class Tasks(ClientExtension):
    identifier = EXTENSION

    def claims(self):
        async def resolve(created, context):
            raise RuntimeError("tasks are followed by hand here")

        return [ResultClaim(result_type="task", model=CreatedTask, resolve=resolve)]


async def ask(client, method, task, **more):
    request = TaskRequest(method=method, params={"taskId": task, **more})
    answer = await client.session.send_request(request, AnyResult)
    return answer.model_dump(by_alias=True, exclude_none=True, mode="json")


async def follow(client, task, act):
    """Asks how the task is until it is over."""
    states, form = [], None
    with anyio.fail_after(60):
        while True:
            state = await ask(client, "tasks/get", task)
            if not states or states[-1] != state["status"]:
                states.append(state["status"])
            if state["status"] in ("completed", "failed", "cancelled"):
                return {"states": states, "form": form, "end": state}
            if act == "stop":
                await ask(client, "tasks/cancel", task)
            if state["status"] == "input_required":
                form = state["inputRequests"]
                if act == "cancel":
                    await ask(client, "tasks/cancel", task)
                elif act == "answer":
                    await anyio.sleep(READING_TIME)
                    said = {"action": "accept", "content": {"decision": "approve once"}}
                    await ask(client, "tasks/update", task, inputResponses={key: said for key in form})
            await anyio.sleep(0.2)


async def run(plan):
    if "http" in plan:
        headers = {"Authorization": "Bearer " + plan["token"]} if "token" in plan else {}
        server = streamable_http_client(plan["http"], http_client=create_mcp_http_client(headers=headers))
    else:
        server = StdioServerParameters(command=plan["stdio"][0], args=plan["stdio"][1:])

    async def never(context, params):
        raise RuntimeError("a task asks with tasks/get")

    me = types.Implementation(name=plan["name"], version="1")
    settings = {"extensions": [Tasks()], "client_info": me, "elicitation_callback": never, "mode": "auto"}
    async with Client(server, **settings) as client:
        came = {"version": client.protocol_version}
        if "task" in plan:
            task = plan["task"]
        else:
            call = plan["call"]
            result = await client.session.call_tool(call["tool"], call["args"], allow_claimed=True)
            came["created"] = result.model_dump(by_alias=True, exclude_none=True, mode="json")
            task = came["created"]["taskId"]
        if plan["act"] == "leave":
            return came
        try:
            return came | await follow(client, task, plan["act"])
        except MCPError as error:
            return came | {"error": {"code": error.error.code, "message": error.error.message}}


print(json.dumps(anyio.run(run, json.loads(sys.argv[1]))))
