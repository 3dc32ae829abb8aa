"""After a fork, which copies one thread alone: the same numbers, and no process waits for ever."""
import multiprocessing
import os

import pytest

import qkv
from qkv._core import check, ffi, lib, new_error

# Long enough for threads to be used: shorter passes of the default model have one.
TEXT = "The river runs past the old mill and down to the sea, where boats lie at the quay. " * 4
SECONDS = 120

model = None
generation = None


@pytest.fixture(scope="module", autouse=True)
def two_threads():
    global model, generation
    model = qkv.open(threads=2)
    generation = model.generate(TEXT, "z@3.h1=zero", n=8)
    next(generation)
    yield
    model = generation = None


def run():
    return model.run(TEXT, "q@2=zero", "logits[-1]")[1]["logits"].tolist()


def measure():
    return model.measure(TEXT, "q@2=zero", "sink,effective_rank", layers="2-3")["value"].tolist()


def generate():
    return [step.text for step in model.generate(TEXT, "z@3.h1=zero", n=8)]


def figure():
    return model.heads(TEXT, layers="2").data.tolist()


def lens():
    return repr(model.lens(TEXT).tables["layers"].tolist())


def weights():
    return repr(model.study("weights").tables["heads"].tolist())


def convert():
    path = f"/tmp/qkv-fork-{os.getpid()}.gguf"
    err = new_error()
    try:
        options = ffi.new("qkv_convert_options *", {"size": ffi.sizeof("qkv_convert_options")})
        kind = ffi.new("char[]", b"q8_0")
        options.type = kind
        check(lib.qkv_model_convert(model.info.path.encode(), path.encode(), options, err), err)
        return os.path.getsize(path)
    finally:
        if os.path.exists(path):
            os.unlink(path)


def in_copy(work):
    """What it gives in a process that was forked from this one; a copy that hangs is ended."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply_async(work).get(SECONDS)


@pytest.mark.parametrize("work", [run, measure, generate, figure, lens, weights, convert])
def test_same_in_a_copy(work):
    assert work() == in_copy(work)


def rest_of_text():
    return [step.text for step in generation]


def test_what_was_begun_before_the_fork():
    """The generator's graph has two threads already."""
    assert in_copy(rest_of_text) == rest_of_text()


def test_several_copies_at_once():
    expected = run()
    with multiprocessing.get_context("fork").Pool(3) as pool:
        found = [pool.apply_async(run) for _ in range(6)]
        assert all(one.get(SECONDS) == expected for one in found)


def test_copy_of_a_copy():
    expected = run()
    assert in_copy(copy_within) == expected


def copy_within():
    run()
    child_end, parent_end = multiprocessing.Pipe()
    if os.fork() == 0:
        try:
            child_end.send(run())
        finally:
            os._exit(0)
    return parent_end.recv()


def stop_the_page():
    page.stop()
    return page.running


def test_a_page_stays_its_process():
    """In a copy the server's threads are not there; ending it must not wait for them."""
    global page
    page = model.explore("The river runs.")
    assert in_copy(stop_the_page) is False
    assert page.running
    page.stop()
