#!/usr/bin/env python3
"""Every file that README and docs link to or show is there, and so is every named place in it: links.py SOURCE."""
import re
import sys
from pathlib import Path

PLACES = ("*.md", "docs/**/*.md", "bindings/python/*.md", "examples/**/*.md", "models/*.md", "bench/*.md")


def anchors(page):
    """Places that a link can name: headings as GitHub spells them, and what has an id."""
    text = page.read_text()
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    spelled = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return spelled | set(re.findall(r'<a id="([^"]+)">', text))


def broken(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, place = link.partition("#")
        if path.startswith(("http:", "https:")):
            continue
        target = page.parent / path if path else page
        if not target.exists():
            yield f"{link}: there is no such file"
        elif place and place not in anchors(target):
            yield f"{link}: there is no such place in the file"


def main(source):
    pages = [path for place in PLACES for path in sorted(source.glob(place))]
    found = [f"{page.relative_to(source)}: {problem}" for page in pages for problem in broken(page)]
    print("\n".join(found) if found else f"{len(pages)} pages")
    return 1 if found or not pages else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
