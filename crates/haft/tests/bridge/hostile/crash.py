"""Dies in the middle of a call, or right after one."""
import os
import sys
from common import send, serve, text, tool


def call(name, args, number):
    if name == "after":
        send({"jsonrpc": "2.0", "id": number, "result": text("last words")})
    sys.stderr.write("out of luck\n")
    sys.stderr.flush()
    os._exit(3)


serve(lambda: [tool("during"), tool("after")], call)
