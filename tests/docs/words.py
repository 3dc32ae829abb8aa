#!/usr/bin/env python3
"""Words that made readers stop are in no document, message or comment: words.py SOURCE.

Of documents the prose is read, of code the comments and the strings; code, output and quoted text are not looked at. To
hold other texts to the same words, add their folder to PLACES, and to PROSE a function that gives the prose of a file by
its suffix.
"""
import re
import sys
from pathlib import Path

# Folder, files in it.
PLACES = (
    (".", "*.md"),
    ("docs", "*.md"),
    ("docs/decisions", "*.md"),
    ("bindings/python", "*.md"),
    ("examples", "**/*.md"),
    ("include", "**/*.h"),
    ("src", "**/*.[ch]"),
    ("src", "**/*.cpp"),
    ("src", "**/*.js"),
)

# Written by programs, out of texts that are elsewhere.
GENERATED = {"docs/metrics.md", "docs/models.md"}

# "is no longer" and the like are right.
COMPARED = "more|less|fewer|better|(?:long|larg|small|tall|slow|fast|high|low|short|wid)er"

# What is not to be said, what to say instead, and a sentence in which it must be found.
WORDS = (
    (r"behind", "after", "The norm behind attention."),
    (rf"(?<!there )(?:is|are|was|were) no(?! (?:{COMPARED})\b)", "is not a", "An edit is no factor of the scores."),
    (r"(?:go|goes|going|went|gone) on(?! top)", "continue, resume", "The model goes on with the text."),
    (r"blanks?(?! lines?\b)", "space", "A blank belongs to the word."),
    (r"who(?:so)?ever", "name the subject", "Whoever reads it need not look again."),
    (r"nobody(?: else)?", "name the subject", "It asks nobody for anything."),
    (r"the hand", "as you drag", "Maps follow the hand."),
    (r"by turns", "one after the other, each", "Each head is taken away by turns."),
    (r"what is there(?! to)", "name it", "What is there is not fetched again."),
    (r"somebody else(?:'s)?", "name the subject", "A name of somebody else."),
)

# Places where one of them is right: page, and the words around it.
ALLOWED = (
    ("docs/studies.md", "behind the kitchen calendar"),  # what a model answered
    ("src/study/retrieval_needles.c", "behind the kitchen clock"),  # a needle
    ("src/study/compare_tables.c", "angle behind the last layer"),  # older files hold a digest of this text
    ("src/chat/jinja_filters.cpp", "blank"),  # an argument of Jinja
)


def markdown_prose(text):
    """The same lines without indentation; blocks of code, output and quotations are left out."""
    fenced = False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        code = fenced or line.startswith("    ") or line.lstrip().startswith("```")
        yield "" if code else re.sub(r"`[^`]*`|\"[^\"]*\"", "…", line).strip()


# A comment, a string, a character or a template of JavaScript.
PIECES = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`", re.S)


def without_code(text):
    return re.sub(r"[^\n]", " ", text)


def piece_prose(piece, quotes):
    """A comment without its stars and quotations, a string without its quotes."""
    if piece[0] == "/":
        piece = re.sub(r"^\s*(?:/\*+|//+|\*(?!/))|\*/", " ", piece, flags=re.M)
        return re.sub(r"`[^`\n]*`|\"[^\"\n]*\"", "…", piece)
    return piece[1:-1].replace("\\n", "  ") if piece[0] in quotes else without_code(piece)


def code_prose(quotes):
    """The comments and strings of C or JavaScript, at their lines; `quotes` begin a string."""
    def prose(text):
        out, at = [], 0
        for match in PIECES.finditer(text):
            out += [without_code(text[at:match.start()]), piece_prose(match.group(), quotes)]
            at = match.end()
        for line in "".join(out + [without_code(text[at:])]).split("\n"):
            yield " ".join(line.split())
    return prose


C_PROSE, JS_PROSE = code_prose('"'), code_prose("\"'`")
PROSE = {".md": markdown_prose, ".c": C_PROSE, ".h": C_PROSE, ".cpp": C_PROSE, ".js": JS_PROSE}


def matches(pattern, text):
    """Where the words are, also across the end of a line."""
    return re.finditer(rf"\b(?:{pattern})\b".replace(" ", r"\s"), text, re.I)


def problems(name, text, suffix, used):
    prose = "\n".join(PROSE[suffix](text))
    for entry in ALLOWED:
        if entry[0] == name and entry[1] in prose:
            used.add(entry)
            prose = prose.replace(entry[1], "")
    for pattern, instead, _ in WORDS:
        for match in matches(pattern, prose):
            number = prose.count("\n", 0, match.start()) + 1
            yield f"{name}:{number}: \"{' '.join(match.group().split())}\" (say: {instead})"


def files(source):
    for folder, names in PLACES:
        for path in sorted((source / folder).glob(names)):
            if str(path.relative_to(source)) not in GENERATED:
                yield path


def main(source):
    blind = [example for pattern, _, example in WORDS if not any(matches(pattern, example))]
    found = [f"words.py does not find its own example: {example}" for example in blind]
    pages, used = list(files(source)), set()
    for path in pages:
        found += problems(str(path.relative_to(source)), path.read_text(), path.suffix, used)
    found += [f"{page}: ALLOWED has \"{words}\", which is not there" for page, words in ALLOWED
              if (page, words) not in used]
    print("\n".join(found) if found else f"{len(pages)} files")
    return 1 if found or not pages else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
