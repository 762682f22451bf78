"""Prints a labelled set as JSON lines: what Python's standard library says of itself.

The question is the first paragraph of a docstring, the one relevant text is the rest of it, without that paragraph.
"""

import importlib
import inspect
import io
import json
import pkgutil
import re
import sys
import warnings

SKIPPED = {"antigravity", "this", "idlelib", "test", "turtledemo", "lib2to3", "tkinter", "turtle"}
seen, found = set(), []


def add(name, text):
    if not isinstance(text, str):
        return
    parts = re.split(r"\n\s*\n", inspect.cleandoc(text), maxsplit=1)
    if len(parts) < 2:
        return
    query, rest = " ".join(parts[0].split()), parts[1].strip()
    # What begins with a signature is no question.
    usable = 25 <= len(query) <= 200 and len(rest) >= 200 and "->" not in query and "(" not in query.split(" ")[0]
    if usable and query not in seen and rest not in seen:
        seen.update((query, rest))
        found.append({"name": name, "query": query, "text": rest})


def modules():
    for name in sorted(sys.stdlib_module_names):
        if name in SKIPPED or name.startswith("_"):
            continue
        try:
            module = importlib.import_module(name)
        except BaseException:
            continue
        yield module
        for inner in pkgutil.iter_modules(getattr(module, "__path__", [])):
            if inner.name.startswith("_") or inner.name in ("test", "tests"):
                continue
            try:
                yield importlib.import_module(f"{name}.{inner.name}")
            except BaseException:
                pass


def main():
    warnings.simplefilter("ignore")
    stdout, sys.stdout = sys.stdout, io.StringIO()
    for module in modules():
        add(module.__name__, module.__doc__)
        for name, value in sorted(vars(module).items()):
            if getattr(value, "__module__", None) != module.__name__:
                continue
            if inspect.isclass(value):
                add(f"{module.__name__}.{name}", value.__dict__.get("__doc__"))
                for inner, function in sorted(vars(value).items()):
                    function = getattr(function, "__func__", function)
                    if inspect.isfunction(function):
                        add(f"{module.__name__}.{name}.{inner}", function.__doc__)
            elif inspect.isfunction(value) or inspect.isbuiltin(value):
                add(f"{module.__name__}.{name}", value.__doc__)
    for item in found:
        print(json.dumps(item), file=stdout)


main()
