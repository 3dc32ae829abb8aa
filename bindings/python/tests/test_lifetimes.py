"""Memory and threads: freed in any order, sessions of their own, Ctrl-C. Also run under AddressSanitizer."""
import gc
import itertools
import os
import random
import signal
import threading
import time

import numpy as np
import pytest

import qkv

TEXT = "The river runs past the old mill."
SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")  # everything takes many times as long


def things():
    """Everything that holds memory of C, each with a way to read it."""
    model = qkv.open()
    result = model.run(
        TEXT, ["q@3.h1=zero", qkv.custom("z", layer=1, fn=lambda x: x * 2)], ["pattern@3", "logits[-1]"]
    )
    figure = model.modify(layer=3, head=1)
    generation = model.generate(TEXT, "z@3=zero", n=3)
    step = next(generation)
    sweep = model.sweep([TEXT], layers="3", targets="q", ops="zero", metrics="tv")
    predictions = model.next(TEXT, "z@3=zero", top=2)
    return [
        (model, lambda m: m.info.n_layer),
        (result, lambda r: len(r.text)),
        (result[1], lambda v: v.changed),
        (result[1]["pattern", 3], lambda a: float(a.sum())),
        (result[0].pattern[3].h[1], lambda a: float(a.max())),
        (result[1].pattern, lambda s: s.layers),
        (figure, lambda f: f.shape),
        (figure[0, 1].values, lambda a: float(a.sum())),
        (figure.report(), lambda r: len(r.markdown)),
        (generation, lambda g: g.texts),
        (step, lambda s: s.text),
        (sweep, lambda s: len(s.rows("tv"))),
        (sweep.plot("tv"), lambda p: len(p.rows())),
        (predictions, lambda n: float(n.kl[1])),
        (model.weights, lambda w: w["q", 1].shape),
    ]


@pytest.mark.parametrize("seed", range(8))
def test_any_order(seed):
    alive = things()
    random.Random(seed).shuffle(alive)
    while alive:
        alive.pop()
        gc.collect()
        for thing, read in alive:
            read(thing)


def test_views_keep_the_result():
    arrays = []
    for i in range(20):
        r = qkv.open().run(TEXT, ["q@3=zero"], "pattern")
        arrays.append((r[1]["pattern", 5], r[1]["pattern", 5].copy()))
        del r
    gc.collect()
    noise = [np.ones(100_000, dtype=np.float32) for _ in range(50)]  # reuse what was freed, if anything was
    assert all(np.array_equal(a, b) for a, b in arrays) and noise


@pytest.mark.skipif(SANITIZED, reason="the sanitizer keeps what is freed")
def test_memory_is_given_back(tmp_path):
    model = qkv.open(threads=1)

    def rss():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    long_text = " ".join([TEXT] * 12)
    for i in range(300):
        model.run(long_text, "q@1=zero", "pattern")
        if i == 100:
            gc.collect()
            before = rss()
    gc.collect()
    one = 2 * 6 * 4 * 100 * 100 * 4  # what one result takes at least
    assert rss() - before < 20 * one


def test_eight_threads():
    model = qkv.open()
    texts = [
        f"The river runs past {n} old mills."
        for n in ("one", "two", "three", "four", "five", "six", "seven", "eight")
    ]
    edits = ["q@3.h1=scale:1e-3", qkv.custom("z", layer=2, fn=lambda x: x * 2)]
    expected = [model.run(t, edits, ["pattern", "logits"]) for t in texts]
    sessions, problems = [], []
    barrier = threading.Barrier(8)

    def work(number):
        try:
            barrier.wait()
            for i in range(6):
                at = (number + i) % 8
                r = model.run(texts[at], edits, ["pattern", "logits"])
                for v in range(3):
                    assert r[v]["logits"].tobytes() == expected[at][v]["logits"].tobytes()
                    assert r[v]["pattern", 5].tobytes() == expected[at][v]["pattern", 5].tobytes()
                assert len(model.measure(texts[at], edits, "tv")) == 3 * 24
                assert model.modify(texts[at], layer=3, head=1).data.shape[:2] == (3, 3)
                assert len(list(model.generate(texts[at], n=2))) == 2
                model.weights["q", i]
            sessions.append(model._session())
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems, problems[0]
    assert len({id(s) for s in sessions}) == 8 and model._session() not in sessions


def test_one_figure_in_many_threads(model):
    figure, made = model.modify(layer=3, head=1), []
    threads = [
        threading.Thread(target=lambda k=kind: made.append(figure.render(k))) for kind in ("png", "svg", "pdf") * 3
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(made) == 9 and all(made)


def test_lock_is_released(model):
    """Another thread counts while C computes."""
    count, stop = itertools.count(), threading.Event()
    long_text = " ".join([TEXT] * 12)

    def tick():
        while not stop.is_set():
            next(count)
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.monotonic()
    while time.monotonic() - start < 0.5:
        model.run(long_text, [f"resid_pre@0[{i}]=scale:0.5" for i in range(4 if SANITIZED else 60)], "logits")
    stop.set()
    thread.join()
    assert next(count) > 20


class InterruptAfter:
    """Ctrl-C, so many seconds after this is entered."""

    def __init__(self, seconds):
        self.timer, self.when = threading.Timer(seconds, self.kill), None

    def kill(self):
        self.when = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    def __enter__(self):
        self.timer.start()
        return self

    def __exit__(self, *problem):
        self.timer.cancel()


def long_work(model, kind, tmp_path):
    text = " ".join([TEXT] * 12)
    edits = [f"resid_pre@0[{i % 90}]=scale:0.{i % 9 + 1}" for i in range(4000)]
    if kind == "run":
        model.run(text, edits, "logits")
    elif kind == "measure":
        model.measure([text] * 50, edits, "all")
    elif kind == "sweep":
        model.sweep([text] * 200, targets="z", ops="zero", at="output", to=tmp_path / "r.sqlite")
    elif kind == "custom":
        model.run(text, [qkv.custom("resid_post", fn=lambda x: x * 1.0)] * 3000, "logits")


@pytest.mark.parametrize("kind", ["run", "measure", "sweep", "custom"])
def test_ctrl_c(kind, tmp_path):
    model = qkv.open()
    expected = model.run(TEXT, "q@3=zero", "logits")[1]["logits"].copy()
    with InterruptAfter(0.4) as interrupt, pytest.raises(KeyboardInterrupt):
        long_work(model, kind, tmp_path)
    assert interrupt.when is not None and time.monotonic() - interrupt.when < (30 if SANITIZED else 5)
    assert model.run(TEXT, "q@3=zero", "logits")[1]["logits"].tobytes() == expected.tobytes()
