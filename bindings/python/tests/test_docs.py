"""The Python in README.md and docs/python.md runs as it stands, from top to bottom."""
import os
import re

import pytest

import qkv

PAGES = ["README.md", "docs/python.md"]


def blocks(source, page):
    return re.findall(r"^```python\n(.*?)^```", (source / page).read_text(), flags=re.S | re.M)


def has_tinyllama():
    return any(m.name == "tinyllama" for m in qkv.models())


@pytest.mark.parametrize("page", PAGES)
def test_page(source, page, tmp_path, monkeypatch, unset_model):
    monkeypatch.chdir(tmp_path)
    names = {"qkv": qkv}
    found = blocks(source, page)
    assert found
    for block in found:
        if "tinyllama" in block:
            if not has_tinyllama():
                continue
        exec(compile(block, page, "exec"), names)


def test_what_the_page_says_it_prints(source):
    """`# {...}` behind an expression is its value."""
    names = {"qkv": qkv, "m": qkv.open()}
    block = next(b for b in blocks(source, "docs/python.md") if "keep_largest" in b)
    exec(compile(block, "docs/python.md", "exec"), names)
    shown = re.search(r"r\[1\]\.changed\s+# (\{.*\})", block).group(1)
    assert names["r"][1].changed == eval(shown)


def test_every_method_is_in_the_guide(source):
    guide = (source / "docs" / "python.md").read_text()
    for name in ("run", "measure", "next", "generate", "sweep", "modify", "mean", "grid", "heads", "rows", "explore", "weights"):
        assert re.search(rf"\bm\.{name}\b", guide), name
    assert os.path.exists(source / "examples" / "notebooks" / "patching.ipynb")
