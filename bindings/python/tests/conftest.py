"""Fixtures. Environment: QKV, the program; SOURCE, the project's directory; PYTHONPATH holds the built package."""
import json
import os
import subprocess
from pathlib import Path

import pytest

import qkv

TEXT = "The river runs past the old mill and down to the sea."


@pytest.fixture(scope="session")
def source():
    return Path(os.environ.get("SOURCE", Path(__file__).resolve().parents[3]))


@pytest.fixture(scope="session")
def model():
    return qkv.open()


@pytest.fixture(scope="session")
def text():
    return TEXT


@pytest.fixture(scope="session")
def program(source):
    """Runs the program with the default model, and gives what it printed."""
    binary = os.environ.get("QKV", str(source / "build" / "qkv"))

    def run(*arguments):
        done = subprocess.run([binary, *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run.json = lambda *arguments: json.loads(run(*arguments))
    return run


@pytest.fixture
def unset_model(monkeypatch):
    monkeypatch.delenv("QKV_MODEL", raising=False)
