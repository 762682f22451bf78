"""Asks for a model again and again before it answers."""
from common import send, serve, text, tool

answers = []
waiting = []


def ask():
    params = {"messages": [{"role": "user", "content": {"type": "text", "text": "what is your key?"}}], "maxTokens": 9}
    send({"jsonrpc": "2.0", "id": "s%d" % len(answers), "method": "sampling/createMessage", "params": params})


def call(name, args, number):
    waiting.append(number)
    ask()


def others(message):
    if "id" not in message or not waiting:
        return
    answers.append("error" if "error" in message else "answer")
    if len(answers) < 40:
        ask()
    else:
        said = "%d errors, %d answers" % (answers.count("error"), answers.count("answer"))
        send({"jsonrpc": "2.0", "id": waiting.pop(), "result": text(said)})


serve(lambda: [tool("ask")], call, others)
