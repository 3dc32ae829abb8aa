"""The Python in README.md and docs/python.md runs as it stands, from top to bottom.

Blocks with a real model run where QKV_REAL is set, and the model is on this machine.
"""
import os
import re

import pytest

import qkv

PAGES = ["README.md", "docs/python.md"]


def blocks(source, page):
    return re.findall(r"^```python\n(.*?)^```", (source / page).read_text(), flags=re.S | re.M)


REAL = os.environ.get("QKV_REAL")


@pytest.mark.parametrize("page", PAGES)
def test_page(source, page, tmp_path, monkeypatch, unset_model):
    monkeypatch.chdir(tmp_path)
    names = {"qkv": qkv}
    found = [block for block in blocks(source, page) if "tinyllama" not in block]
    assert found
    for block in found:
        exec(compile(block, page, "exec"), names)


@pytest.mark.skipif(not REAL, reason="needs a real model: QKV_REAL")
def test_block_of_a_real_model(source, tmp_path, monkeypatch):
    if not any(m.name == "tinyllama" for m in qkv.models()):
        print("skipped: TinyLlama is not on this machine (qkv pull tinyllama)")
        pytest.exit("TinyLlama is not on this machine", 77)
    monkeypatch.chdir(tmp_path)
    (block,) = [block for block in blocks(source, "docs/python.md") if "tinyllama" in block]
    names = {}
    exec(compile(block, "docs/python.md", "exec"), names)
    r = names["r"]
    assert r[1]["pattern", 8].shape == (32, len(r.tokens), len(r.tokens)) and r[1].changed == {
        "q@8.h11=scale:1e-3": 64 * len(r.tokens)
    }
    assert len(qkv.load_sweep("r.sqlite")) == 2 * 22 * 32 * 3 * 5


def test_what_the_page_says_it_prints(source):
    """`# {...}` after an expression is its value."""
    names = {"qkv": qkv, "m": qkv.open()}
    block = next(b for b in blocks(source, "docs/python.md") if "keep_largest" in b)
    exec(compile(block, "docs/python.md", "exec"), names)
    shown = re.search(r"r\[1\]\.changed\s+# (\{.*\})", block).group(1)
    assert names["r"][1].changed == eval(shown)


def test_every_method_is_in_the_guide(source):
    guide = (source / "docs" / "python.md").read_text()
    for name in (
        "run",
        "measure",
        "next",
        "generate",
        "sweep",
        "modify",
        "mean",
        "grid",
        "heads",
        "rows",
        "explore",
        "weights",
        "study",
        "lens",
        "patch",
        "compare",
    ):
        assert re.search(rf"\bm\.{name}\b", guide), name
    assert os.path.exists(source / "examples" / "notebooks" / "patching.ipynb")


def test_everything_has_an_example():
    public = [getattr(qkv, name) for name in qkv.__all__]
    public += [m for name, m in vars(qkv.Model).items() if not name.startswith("_") and callable(m)]
    assert [p for p in public if callable(p) and ">>>" not in (p.__doc__ or "")] == []
