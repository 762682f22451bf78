"""Prints what is no MCP between its answers."""
import sys
from common import serve, text, tool

sys.stdout.write("Listening on stdio...\n\x1b[2J{\"level\": \"info\"}\n[1, 2]\n\n{\"jsonrpc\": \"2.0\"\n\xff\n")
sys.stdout.flush()


def call(name, args, number):
    print("about to answer \x1b]0;owned\x07")
    return text("fine")


serve(lambda: [tool("talk")], call)
