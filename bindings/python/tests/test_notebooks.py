"""The notebooks of examples/notebooks run from top to bottom; what they claim they assert themselves."""
import json
import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("nbconvert")
pytest.importorskip("ipykernel")

NAMES = ["two_figures", "induction_heads", "patching"]


def test_all_are_here(source):
    assert sorted(p.stem for p in (source / "examples" / "notebooks").glob("*.ipynb")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_stored_without_outputs(source, name):
    notebook = json.loads((source / "examples" / "notebooks" / f"{name}.ipynb").read_text())
    code = [c for c in notebook["cells"] if c["cell_type"] == "code"]
    assert code and all(not c["outputs"] and c["execution_count"] is None for c in code)


@pytest.mark.parametrize("name", NAMES)
def test_runs(source, name, tmp_path):
    path = source / "examples" / "notebooks" / f"{name}.ipynb"
    environment = dict(os.environ, JUPYTER_RUNTIME_DIR=str(tmp_path / "run"), IPYTHONDIR=str(tmp_path / "ipython"))
    environment.pop("QKV_MODEL", None)
    for kind in ("notebook", "html"):
        given = path if kind == "notebook" else tmp_path / f"{name}.ipynb"
        execute = ["--execute", "--ExecutePreprocessor.timeout=300"] if kind == "notebook" else []
        done = subprocess.run(
            [sys.executable, "-m", "nbconvert", "--to", kind, *execute, "--output-dir", str(tmp_path), str(given)],
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-3000:]
    cells = json.loads((tmp_path / f"{name}.ipynb").read_text())["cells"]
    outputs = [o for c in cells if c["cell_type"] == "code" for o in c["outputs"]]
    kinds = [kind for o in outputs for kind in o.get("data", {})]
    assert sum(k in ("image/svg+xml", "image/png") for k in kinds) >= 2
    assert not [o for o in outputs if o["output_type"] == "error" or o.get("name") == "stderr"]
    # Several drawings on one page: no name is there twice.
    page = re.sub(r"srcdoc=\"[^\"]*\"", "", (tmp_path / f"{name}.html").read_text())
    names = [
        n for svg in re.findall(r"<svg.*?</svg>", page, flags=re.S) for n in set(re.findall(r'\bid="([^"]+)"', svg))
    ]
    assert len(names) == len(set(names))
    keep = os.environ.get("QKV_KEEP_NOTEBOOKS")
    if keep:
        (tmp_path / f"{name}.html").replace(os.path.join(keep, f"{name}.html"))
