# How file.edit and file.batch replace a text, written down a second time: with regular expressions.
import os, re
QUOTES = {"'": "['\u2018-\u201b]", '"': '["\u201c-\u201f]'}
def straight(c):
    return "'" if "\u2018" <= c <= "\u201b" else '"' if "\u201c" <= c <= "\u201f" else c
def pattern(text, flexible, quotes):
    def one(c):
        if c == "\n" and flexible:
            return r"\r?\n"
        return QUOTES.get(straight(c), re.escape(c)) if quotes else re.escape(c)
    return "".join(one(c) for c in text)
def replace(text, old, new, every, quotes):
    """The text after the edit with the number of replacements and their lines, or the name of what is wrong."""
    if not old: return "empty"
    if old == new: return "identical"
    flexible = "\r" not in old
    head = tail = 0
    if not (flexible and "\r" in new):
        head = len(os.path.commonprefix([old, new]))
        tail = len(os.path.commonprefix([old[head:][::-1], new[head:][::-1]]))
    parts = [old[:head], old[head:len(old) - tail], old[len(old) - tail:]]
    # A line feed as written is not the second half of a CRLF, unless its first half is written as well.
    guard = "" if flexible or not old.startswith("\n") else r"(?<!\r)"
    inner = new[head:len(new) - tail]
    for alike in [False, True] if quotes else [False]:
        found = list(re.finditer(guard + "".join(f"({pattern(part, flexible, alike)})" for part in parts), text))
        if found: break
    if not found: return "missing"
    if len(found) > 1 and not every: return "ambiguous"
    result, at = [], 0
    for match in found:
        end = text.find("\n", match.start())
        if end < 0: end = text.rfind("\n")
        crlf = end > 0 and text[end - 1] == "\r"
        adapted = inner.replace("\n", "\r\n") if flexible and "\r" not in new and crlf else inner
        result += [text[at:match.start(2)], adapted]
        at = match.end(2)
    result = "".join(result) + text[at:]
    if result == text: return "identical"
    return [result, len(found), [text.count("\n", 0, match.start()) + 1 for match in found][:20]]
