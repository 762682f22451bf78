"""Has other tools every time it is asked, and says so all the time."""
import itertools
import threading
import time
from common import send, serve, text, tool

count = itertools.count()


def nag():
    while True:
        time.sleep(0.001)
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})


def tools():
    number = next(count)
    if number == 0:
        threading.Thread(target=nag, daemon=True).start()
    return [tool("steady"), tool("tool_%d" % number)]


serve(tools, lambda name, args, number: text("%s %d" % (name, next(count))))
