"""The explorer's live page: answered while the object is there, and not after."""
import gc
import http.cookiejar
import json
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

import qkv


def browser():
    return urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))


def is_open(url):
    port = int(url.split(":")[2].split("/")[0])
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def test_page(model):
    page = model.explore("The heron stands by the river.")
    visitor = browser()
    answer = visitor.open(page.url)
    assert answer.status == 200 and b"<!DOCTYPE html" in answer.read()[:100]
    assert "frame-ancestors http://localhost:*" in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Frame-Options"] is None
    state = json.loads(visitor.open(page.url.split("?")[0] + "api/state").read())
    assert "The heron stands by the river." in json.dumps(state) and "default.gguf" in json.dumps(state)
    assert "custom" not in [op["name"] for op in state["ops"]]
    with pytest.raises(urllib.error.HTTPError) as refused:
        browser().open(page.url.split("?")[0])  # without the token
    assert refused.value.code == 401
    shown = page._repr_html_()
    assert shown.startswith("<iframe src=") and page.url in shown and "token" not in repr(page)
    page.stop()
    page.stop()
    assert not is_open(page.url) and not page.running and repr(page) == "<qkv.Explorer: stopped>"
    assert "stopped" in page._repr_html_()


def test_ends_with_the_object(model):
    page, other = model.explore(), model.explore()
    url = page.url
    assert is_open(url) and page.url != other.url
    del page
    gc.collect()
    assert not is_open(url) and is_open(other.url)
    with other:
        pass
    assert not other.running


def test_mistakes(model):
    with pytest.raises(qkv.Error):
        model.explore(port=70000)
    with pytest.raises(qkv.Error, match="host is one of"):
        model.explore(host="example")
    with model.explore(host="127.0.0.1") as page:
        assert page.url.startswith("http://127.0.0.1:") and is_open(page.url)
    with model.explore() as page:
        with pytest.raises(qkv.Error):
            model.explore(port=int(page.url.split(":")[2].split("/")[0]))


def test_outlives_no_interpreter():
    code = "import qkv; m = qkv.open(); page = m.explore('The river'); import sys; sys.page = page; print(page.url)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr and not is_open(done.stdout.strip())


def test_keeps_its_model():
    page = qkv.open().explore("The river")
    gc.collect()
    visitor = browser()
    visitor.open(page.url)
    request = urllib.request.Request(
        page.url.split("?")[0] + "api/tokens",
        b'{"prompt": {"text": "The river"}}',
        {"Content-Type": "application/json"},
    )
    assert json.loads(visitor.open(request).read())
    page.stop()
