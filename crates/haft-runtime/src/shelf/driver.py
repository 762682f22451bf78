# Runs one function at a time for haft, which starts this inside a confinement and speaks to it over what were its first
# two descriptors: frames of a length (four bytes, the lowest first) and so many bytes. What the function prints goes to
# the third descriptor, wherever it prints to. Python 3.8 and later; older ones get as far as saying what they are.
import os
import sys
from importlib.machinery import PathFinder, SourceFileLoader

FRAME_MAX = 8 << 20
TEXT_MAX = 4000
NAME_MAX = 200
FRAMES_SHOWN = 8
OWN_STEPS = ("<string>", "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")


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
    sys.meta_path.insert(0, Guard(*sys.argv[1:4], files=sys.argv[4:]))
    sys.argv = [""]
    # What an environment runs by itself is loaded under the same eyes.
    import site

    site.main()
    sys.path.insert(0, home)
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


def within(path, place):
    return path == place or path.startswith(place.rstrip(os.sep) + os.sep)


class Source(SourceFileLoader):
    # Compiles what is there. What lies compiled beside it is not what somebody looked at.
    def get_code(self, name):
        path = self.get_filename(name)
        return self.source_to_code(self.get_data(path), path)


class Guard:
    # Asks the others first, and lets nothing of the project be imported that was not accepted with the tool: its own
    # directory, its environment and the files that it was accepted with are all that there is.
    def __init__(self, venv, root, own, files):
        self.root = root
        self.ours = [place for place in (root, own, venv) if place]
        # A project may be somebody's home, with the interpreter itself in it.
        library = (os.path.dirname(os.__file__), sys.base_prefix, sys.base_exec_prefix)
        library = [os.path.realpath(place) for place in library]
        self.library = [place for place in library if place != root and within(place, root)]
        self.files = {os.path.realpath(file) for file in files}
        # A package stands for all that is in it.
        packages = [place for place in self.files if os.path.isdir(place)]
        self.free = self.ours[1:] + self.library + packages

    def find_spec(self, name, path=None, target=None):
        refused = None
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find and find(name, path, target)
            if spec and not self.accepts(spec.origin):
                refused = refused or spec.origin
                spec = finder is PathFinder and self.further(name, path, target)
            if spec:
                return self.from_source(spec)
        if refused:
            real = os.path.realpath(refused)
            said = "`%s` is a file of the project that was not accepted with this tool; put it beside the manifest or into the package"
            raise ImportError(said % os.path.relpath(real, self.root), name=name, path=real)
        return None

    def further(self, name, path, target):
        # What is not accepted does not hide what is found after it.
        places = []
        for place in list(sys.path if path is None else path):
            spec = PathFinder.find_spec(name, [place], target)
            if spec and self.accepts(spec.origin):
                places.append(place)
        spec = PathFinder.find_spec(name, places, target) if places else None
        return spec if spec and self.accepts(spec.origin) else None

    def accepts(self, origin):
        if not isinstance(origin, str) or os.sep not in origin:
            return True
        if origin.startswith(SHIPPED) and not self.root.startswith(SHIPPED):
            return True
        real = os.path.realpath(origin)
        if not within(real, self.root) or real in self.files:
            return True
        return any(within(real, place) for place in self.free) and "__pycache__" not in real.split(os.sep)

    def from_source(self, spec):
        if type(spec.loader) is SourceFileLoader:
            real = os.path.realpath(spec.loader.path)
            if any(within(real, place) for place in self.ours) and not any(within(real, place) for place in self.library):
                spec.loader = Source(spec.loader.name, spec.loader.path)
        return spec


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
        steps = [step for step in steps if step.filename not in OWN_STEPS]
        trace = "".join(traceback.format_list(steps))
    except BaseException:
        pass
    where = None
    if isinstance(error, SyntaxError) and error.filename:
        where, message = "%s:%s" % (error.filename, error.lineno), error.msg
    # Whoever hides secrets has to know where there may be half of one.
    cut = (("type", len(name) > NAME_MAX), ("message", len(message) > TEXT_MAX), ("trace", len(trace) > TEXT_MAX))
    return {
        "type": name[:NAME_MAX],
        "message": message[:TEXT_MAX],
        "trace": trace[-TEXT_MAX:],
        "where": where,
        "cut": [part for part, is_cut in cut if is_cut],
    }


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
        path = os.path.realpath(path)
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
