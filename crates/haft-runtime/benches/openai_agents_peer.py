"""The same conversation by the OpenAI Agents SDK: as many tools, as long a history, the same server.

    python openai_agents_peer.py BASE_URL TOOLS PAIRS

It is the server that measures: from one request to the next."""

import asyncio
import json
import sys

from agents import Agent, FunctionTool, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI


async def probe(_, arguments):
    return "noted"


def tool(name):
    schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "number": {"type": "integer", "description": "Which record"},
            "fields": {"type": "array", "items": {"type": "string"}, "description": "Only these fields of it"},
            "limit": {"type": "integer", "description": "How many neighbours at the most"},
        },
    }
    description = f"{name} looks up a record by its number and gives what is known of it, with its neighbours."
    return FunctionTool(
        name=name, description=description, params_json_schema=schema, on_invoke_tool=probe, strict_json_schema=False
    )


def history(pairs):
    items = [{"role": "user", "content": "Look at all of it."}]
    text = "let value = compute(number, &mut state)?; // as before\n" * 75
    for number in range(pairs):
        arguments = json.dumps({"path": f"src/{number}.rs"})
        call = {"type": "function_call", "call_id": f"old-{number}", "name": "file_read", "arguments": arguments}
        items += [call, {"type": "function_call_output", "call_id": f"old-{number}", "output": text}]
    items += [{"role": "assistant", "content": "I have."}, {"role": "user", "content": "Go."}]
    return items


async def main(url, tools, pairs):
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=url, api_key="none")
    names = ["probe"] + [f"lookup_{number}" for number in range(tools - 1)]
    model = OpenAIChatCompletionsModel(model="stub-1", openai_client=client)
    agent = Agent(name="peer", instructions="You look things up.", model=model, tools=[tool(name) for name in names])
    streamed = Runner.run_streamed(agent, input=history(pairs), max_turns=1000)
    async for _ in streamed.stream_events():
        pass


asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
