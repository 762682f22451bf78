"""The least that an MCP server has to say. Each server beside this one does one thing that no server should."""
import json
import sys


def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def tool(name, description="Does something", schema=None):
    return {"name": name, "description": description, "inputSchema": schema or {"type": "object"}}


def text(said, **more):
    return {"content": [{"type": "text", "text": said}], **more}


def serve(tools, call, others=lambda message: None, more=None):
    """Answers until the input ends. `tools` and `call` are asked for each list and call, `more` for all other requests."""
    for line in sys.stdin:
        message = json.loads(line)
        method, number = message.get("method"), message.get("id")
        if method is None or number is None:
            others(message)
        elif method == "initialize":
            version = message["params"]["protocolVersion"]
            capabilities = {"tools": {"listChanged": True}}
            if more:
                capabilities.update(resources={}, prompts={}, completions={}, logging={})
            info = {"name": "hostile", "version": "1"}
            result = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}
            send({"jsonrpc": "2.0", "id": number, "result": result})
        elif method == "tools/list":
            send({"jsonrpc": "2.0", "id": number, "result": {"tools": tools()}})
        elif method == "tools/call":
            result = call(message["params"]["name"], message["params"].get("arguments") or {}, number)
            if result is not None:
                send({"jsonrpc": "2.0", "id": number, "result": result})
        elif more and (result := more(method, message.get("params", {}))) is not None:
            send({"jsonrpc": "2.0", "id": number, "result": result})
        elif method in ("ping", "logging/setLevel"):
            send({"jsonrpc": "2.0", "id": number, "result": {}})
        else:
            send({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "what?"}})
