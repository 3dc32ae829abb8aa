#!/usr/bin/env python3
"""Writes docs/api/: a page for every public header, and an index of functions, from the headers alone.

    scripts/api_reference.py              write the pages anew
    scripts/api_reference.py --check      fail when a page is not what the headers say

A header is read as it is laid out: an opening comment with an example, then paragraphs of declarations, most of them
below a comment that belongs to them. Nothing is parsed as C, so whatever compiles and is laid out that way is shown.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADERS = ROOT / "include" / "qkv"
PAGES = ROOT / "docs" / "api"
NOTE = "<!-- made from include/qkv/ by scripts/api_reference.py: change the header, then run it -->"
WELCOME = """\
Include `<qkv/qkv.h>`; `cc prog.c $(pkg-config --cflags --libs qkv)` after `make install`. [qkv.md](qkv.md) has a whole
program and the conventions: who frees what, errors, threads, structs that grow. Each page below is one header: its
example, which the tests compile and run, and everything that it declares."""
FRAME = re.compile(r'#(ifndef|define) QKV_\w+_H$|#include|#ifdef __cplusplus|extern "C" \{')


def in_words(text):
    """A comment's prose as Markdown: names of C are set as code, what Markdown would read is escaped."""
    parts = re.split(r"(`[^`]*`)", text)
    for i in range(0, len(parts), 2):
        marked = re.sub(r"(?<![\w`])(\*{1,2}[a-z]\w*|(?:qkv|QKV)_[\w.*]*\w\*?|qkv/\w+\.h)", r"`\1`", parts[i])
        pieces = re.split(r"(`[^`]*`)", marked)
        pieces[::2] = [re.sub(r"([*<\[])", r"\\\1", piece) for piece in pieces[::2]]
        parts[i] = "".join(pieces)
    return "".join(parts)


def comment_text(lines):
    """What stands between /* and */, line by line."""
    text = "\n".join(lines)
    text = re.sub(r"^/\*+ ?", "", text)
    text = re.sub(r"\s*\*/\s*$", "", text)
    return [re.sub(r"^ \* ?", "", line).rstrip() for line in text.split("\n")]


def prose(lines, language="c"):
    """Paragraphs as they are, indented blocks as fences; the first of those is C."""
    out, block, fence = [], [], language

    def end_block():
        nonlocal block, fence
        while block and not block[-1]:
            block.pop()
        if block:
            out.extend(["", "```" + fence] + block + ["```", ""])
            fence = "text"
        block = []

    for line in lines:
        if line.startswith("    "):
            block.append(line[4:])
        elif not line and block:
            block.append("")
        else:
            end_block()
            out.append(in_words(line))
    end_block()
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(out))
    return text.strip("\n")


def paragraphs(lines):
    """Groups of lines between blank ones; a blank line within braces or a comment separates nothing."""
    group, depth, inside = [], 0, False
    for line in lines:
        if not line and depth == 0 and not inside:
            if group:
                yield group
            group = []
            continue
        group.append(line)
        bare = re.sub(r"/\*.*?\*/", "", line)
        if "*/" in bare:
            inside, bare = False, bare.split("*/", 1)[1]
        if "/*" in bare:
            inside, bare = True, bare.split("/*", 1)[0]
        if not inside:
            depth += bare.count("{") - bare.count("}")
    if group:
        yield group


def items(group):
    """Comment and code in turns: a comment at the start of a line begins an item."""
    comment, code, i = [], [], 0
    while i < len(group):
        if group[i].startswith("/*"):
            if comment or code:
                yield comment, code
            end = i
            while "*/" not in group[end]:
                end += 1
            comment, code, i = group[i:end + 1], [], end + 1
        else:
            code.append(group[i])
            i += 1
    if comment or code:
        yield comment, code


def functions(code):
    """Names of the functions that are declared there."""
    text = " ".join(line for line in code if not line.startswith("#"))
    return [re.search(r"(\w+)\(", declaration).group(1) for declaration in re.findall(r"QKV_API ([^;]*);", text)]


def show_code(code):
    """Declarations without QKV_API; what is aligned with the parenthesis of one stays so."""
    lines, shorter = [], 0
    for line in code:
        if line.startswith("QKV_API "):
            shorter = len("QKV_API ")
        elif not line.startswith(" "):
            shorter = 0
        lines.append(re.sub(r"\s+\\$", " \\\\", line[shorter:]))
    return "\n".join(["```c"] + lines + ["```"])


class Header:
    def __init__(self, path):
        self.name = path.stem
        lines = path.read_text().split("\n")
        end = next(i for i, line in enumerate(lines) if "*/" in line)
        opening = comment_text(lines[:end + 1])
        opening = opening[1:] if not opening[0] else opening
        self.unstable = opening[0].startswith("Unstable")
        if self.unstable:
            opening = opening[2:]
        self.opening = opening
        self.title = " ".join(prose(opening).split("\n\n")[0].split())
        self.body = self.strip_frame(lines[end + 1:])
        self.functions = []

    @staticmethod
    def strip_frame(lines):
        """Without the guard, includes and the lines for C++."""
        text = "\n".join(lines)
        text = re.sub(r'#ifdef __cplusplus\n(extern "C" \{|\})\n#endif\n', "", text)
        text = re.sub(r"#if defined\(__GNUC__\)\n.*?#endif\n", "", text, flags=re.S)
        out = [line for line in text.split("\n") if not FRAME.match(line)]
        while out and out[-1] in ("", "#endif"):
            out.pop()
        return out

    def page(self):
        parts = [f"# qkv/{self.name}.h", NOTE]
        if self.unstable:
            parts.append("**Unstable: may change in every version.** Define `QKV_UNSTABLE`, or include this header "
                         "by its name.")
        parts.append(prose(self.opening))
        # qkv.h is a list of the others: its page is the convention, and the index lists them.
        for group in ([] if self.name == "qkv" else paragraphs(self.body)):
            for comment, code in items(group):
                parts.extend(self.item(comment, code))
        return "\n\n".join(part for part in parts if part) + "\n"

    def item(self, comment, code):
        text = comment_text(comment) if comment else []
        section = re.fullmatch(r"-+ (.*?) -+", text[0]) if text else None
        if section:
            yield "## " + section.group(1)[:1].upper() + section.group(1)[1:]
            text = text[1:]
        names = functions(code)
        self.functions.extend(names)
        if names:
            yield "".join(f'<a id="{name}"></a>' for name in names)
        if text:
            yield prose(text, "text")
        if code:
            yield show_code(code)


def index(headers):
    lines = ["# The C API", "", NOTE, "", WELCOME, "", "| header | |", "|---|---|"]
    for header in headers:
        mark = " (unstable)" if header.unstable else ""
        lines.append(f"| [qkv/{header.name}.h]({header.name}.md){mark} | {header.title} |")
    lines += ["", "## All functions", ""]
    names = sorted((name, header.name) for header in headers for name in header.functions)
    lines += [f"- [{name}]({page}.md#{name})" for name, page in names]
    return "\n".join(lines) + "\n"


def pages():
    paths = sorted(HEADERS.glob("*.h"), key=lambda path: (path.stem != "qkv", path.stem))
    headers = [Header(path) for path in paths]
    made = {f"{header.name}.md": header.page() for header in headers}
    made["README.md"] = index(headers)
    return made


def check(made):
    there = {path.name: path.read_text() for path in PAGES.glob("*.md")}
    wrong = sorted(name for name in made.keys() | there.keys() if made.get(name) != there.get(name))
    for name in wrong:
        print(f"docs/api/{name} is not what the headers say: run scripts/api_reference.py", file=sys.stderr)
    return 1 if wrong else 0


def write(made):
    PAGES.mkdir(exist_ok=True)
    for path in PAGES.glob("*.md"):
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        (PAGES / name).write_text(text)
    return 0


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    sys.exit(check(pages()) if sys.argv[1:] else write(pages()))
