# Runs one function at a time for haft, which starts this inside a confinement and speaks to it over what were its first
# two descriptors: frames of a length (four bytes, the lowest first) and so many bytes. What the function prints goes to
# the third descriptor, wherever it prints to. Python 3.8 and later; older ones get as far as saying what they are.
import os
import sys

FRAME_MAX = 8 << 20
TEXT_MAX = 4000
FRAMES_SHOWN = 8


def main():
    rx, tx = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    me, home = os.getpid(), os.getcwd()
    import json

    def send(head, body=b""):
        head = json.dumps(head).encode()
        if len(head) + len(body) > FRAME_MAX:
            body = b""
        frame = head + b"\n" + body
        frame = len(frame).to_bytes(4, "little") + frame
        while frame:
            frame = frame[os.write(tx, frame):]

    def take(size):
        pieces = []
        while size:
            piece = os.read(rx, min(size, 1 << 20))
            if not piece:
                return None
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    send({"version": list(sys.version_info[:3])})
    sys.path.insert(0, home)
    sys.argv = [""]
    while True:
        size = take(4)
        if size is None:
            return
        order = take(int.from_bytes(size, "little"))
        if order is None:
            return
        order = json.loads(order)
        head, body = act(order, json)
        if os.getpid() != me:
            # A child that came back where its parent is waited for.
            os._exit(0)
        flush()
        head["id"] = order["id"]
        head["left"] = left()
        head["files"] = files(home)
        send(head, body)
        if head["left"]:
            # Whoever waits for what was left may wait for ever.
            os._exit(0)
        restore(home)


def act(order, json):
    try:
        function = find(order["module"], order["function"])
    except Wrong as wrong:
        return {"wrong": str(wrong)}, b""
    except BaseException as error:
        return {"error": told(error), "while": "import"}, b""
    try:
        value = function(*order["args"], **order["kwargs"])
    except BaseException as error:
        head = {"error": told(error)}
        # It was never entered: the arguments are not those that it takes.
        if isinstance(error, TypeError) and error.__traceback__.tb_next is None:
            head["while"] = "call"
        return head, b""
    try:
        if order["return"] == "text":
            body = str(value).encode("utf-8")
        else:
            body = json.dumps(value, allow_nan=False, ensure_ascii=False).encode("utf-8")
    except BaseException as error:
        return {"error": told(error), "while": "result", "type": type(value).__name__}, b""
    if len(body) > FRAME_MAX - 65536:
        return {"large": len(body)}, b""
    return {}, body


class Wrong(Exception):
    pass


def find(name, function):
    import importlib

    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name == missing or name.startswith(missing + "."):
            raise Wrong("there is no module `%s`; it is looked for from cwd" % missing)
        raise
    found = module
    for part in function.split("."):
        found = getattr(found, part, None)
        if found is None:
            raise Wrong("the module `%s` has no function `%s`" % (name, function))
    if not callable(found):
        raise Wrong("`%s` in the module `%s` is not a function" % (function, name))
    return found


def told(error):
    kind = type(error)
    name = kind.__qualname__
    if kind.__module__ not in ("builtins", None):
        name = "%s.%s" % (kind.__module__, name)
    try:
        message = str(error)
    except BaseException:
        message = "(its message cannot be shown)"
    trace = ""
    try:
        import traceback

        steps = traceback.extract_tb(error.__traceback__, limit=-FRAMES_SHOWN)
        steps = [step for step in steps if step.filename not in ("<string>", "<frozen importlib._bootstrap>")]
        trace = "".join(traceback.format_list(steps))
    except BaseException:
        pass
    where = None
    if isinstance(error, SyntaxError) and error.filename:
        where, message = "%s:%s" % (error.filename, error.lineno), error.msg
    return {"type": name[:200], "message": message[:TEXT_MAX], "trace": trace[-TEXT_MAX:], "where": where}


def flush():
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            stream.flush()
        except BaseException:
            pass


def left():
    # What would outlive the call: threads, and children that nobody waited for.
    try:
        if len(os.listdir("/proc/self/task")) > 1:
            return "threads"
    except OSError:
        return "threads"
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except OSError:
            return ""
        if pid == 0:
            return "processes"


SEEN = set()
SHIPPED = os.path.dirname(os.__file__) + os.sep


def files(home):
    # Each file that was loaded and is not of a library, and its directory, as they were: what was edited since asks for a
    # fresh interpreter.
    fresh = []
    for name, module in list(sys.modules.items()):
        if name in SEEN:
            continue
        SEEN.add(name)
        path = getattr(module, "__file__", None)
        if not isinstance(path, str) or path.startswith(SHIPPED) or "-packages" + os.sep in path:
            continue
        for place, is_file in ((path, True), (os.path.dirname(path), False)):
            try:
                stat = os.stat(place)
            except OSError:
                continue
            if place != home:
                fresh.append([place, stat.st_mtime_ns, stat.st_size if is_file else 0])
    return fresh


def restore(home):
    sys.stdout, sys.stderr, sys.stdin = sys.__stdout__, sys.__stderr__, sys.__stdin__
    os.chdir(home)
    if not sys.path or sys.path[0] != home:
        sys.path.insert(0, home)


main()
