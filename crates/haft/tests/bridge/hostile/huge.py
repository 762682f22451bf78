"""Answers a call with 50 MB on one line."""
import sys
from common import serve, text, tool


def call(name, args, number):
    if name == "small":
        return text("small")
    sys.stdout.write('{"jsonrpc": "2.0", "id": %d, "result": {"content": [{"type": "text", "text": "' % number)
    for _ in range(50):
        sys.stdout.write("x" * 1_000_000)
    sys.stdout.write('"}]}}\n')
    sys.stdout.flush()


serve(lambda: [tool("huge"), tool("small")], call)
