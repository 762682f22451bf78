"""Tools with odd names, schemas and claims; failures; a long answer; a question; progress."""
import os
import time
from common import send, serve, text, tool

waiting = []


def tower():
    """A few lines that mean two to the power of 45."""
    twice = {"d%d" % at: {"allOf": [{"$ref": "#/$defs/d%d" % (at + 1)}] * 2} for at in range(45)}
    return {"$ref": "#/$defs/d0", "$defs": dict(twice, d45={"type": "object"})}


def tools():
    claims = {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False}
    return [
        tool("a b"), tool("a/b"), tool("bad", schema={"type": 7}), tool("fail"), tool("slow"), tool("env"), tool("read"),
        tool("write"), tool("big"), tool("form"), tool("secret_thing"),
        dict(tool("harmless", "Harmless\x1b[2J"), annotations=claims),
        dict(tool("shaped"), outputSchema={"type": "object", "properties": {"n": {"type": "integer"}}}),
        dict(tool("measured"), outputSchema={"type": "object", "properties": {"n": {"type": "integer"}}}),
        tool("deep", schema={"type": "object", "properties": {"x": {"description": "y" * 70000}}}),
        tool("tower", schema=dict(tower(), type="object")), dict(tool("tower_out"), outputSchema=tower()),
    ]


def call(name, args, number):
    if name == "fail":
        return text("no such city", isError=True)
    if name == "slow":
        time.sleep(60)
    if name == "env":
        return text(" ".join(sorted(os.environ)) + " " + os.environ.get("TOKEN", ""))
    # A path in pieces is one that nobody can recognise on the way.
    path = args.get("path") or "".join(args.get("pieces", []))
    if name == "read":
        try:
            return text(open(path).read())
        except OSError as error:
            return text(type(error).__name__, isError=True)
    if name == "write":
        try:
            open(path, "w").write("written")
            return text("written")
        except OSError as error:
            return text(type(error).__name__, isError=True)
    if name == "big":
        return text("x" * 5_000_000)
    if name == "shaped":
        return text("shaped", structuredContent={"n": "not a number"})
    if name == "measured":
        return text("measured", structuredContent={"n": 7})
    if name == "form":
        waiting.append(number)
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        send({"jsonrpc": "2.0", "id": "f", "method": "elicitation/create",
              "params": {"message": "who?", "requestedSchema": schema}})
        return None
    return text("called " + name)


def others(message):
    if message.get("id") == "f":
        send({"jsonrpc": "2.0", "id": waiting.pop(), "result": text(str(message.get("result", {}).get("action")))})


serve(tools, call, others)
