"""Edits as objects, and functions as edits."""
import ctypes

import numpy as np
import pytest

import qkv

TEXT = "The river runs past the old mill."


@pytest.mark.parametrize(
    "edit, expected",
    [
        (qkv.scale("q", layer=8, head=11, by=1e-3), "q@8.h11=scale:0.001"),
        (qkv.scale("q", by="1e-3"), "q@*=scale:1e-3"),
        (qkv.scale("q@3.h1", by=2), "q@3.h1=scale:2.0"),
        (qkv.zero("z", layer=slice(2, 4), head=(0, 3)), "z@2,3.h0,3=zero"),
        (qkv.zero("z", layer=np.int64(2), head="*"), "z@2.h*=zero"),
        (qkv.zero("z", layer="2-4,6", head=np.array([1, 2])), "z@2-4,6.h1,2=zero"),
        (qkv.set("logits", to=0, tokens=-1), "logits[-1]=set:0.0"),
        (qkv.set("pattern", layer=5, tokens=(slice(None), 0), to=0.5), "pattern@5[:,0]=set:0.5"),
        (qkv.add("v", layer=1, kv_head=0, tokens=[0, 3, slice(5, 7)], by=np.float32(0.5)), "v@1.g0[0,3,5:7]=add:0.5"),
        (qkv.mean("k", layer=3, over="token"), "k@3=mean:token"),
        (qkv.noise("q", layer=3, sd=0.1, seed=7, tokens="[1:]"), "q@3[1:]=noise:0.1,seed=7"),
        (qkv.clamp("resid_post", layer=0, low=-1, high=1), "resid_post@0=clamp:-1.0,1.0"),
        (qkv.patch("resid_pre", layer=2, source="clean"), "resid_pre@2=patch:clean"),
        (qkv.patch("z", layer=2, tokens=5, source="a", source_tokens=-1), "z@2[5<--1]=patch:a"),
        (qkv.patch("z", layer=2, tokens=[0, 3], source="a", source_tokens=[1, 4]), "z@2[0,3<-1,4]=patch:a"),
        (qkv.mean("z", layer=2, over="set"), "z@2=mean:set"),
        (qkv.mean("z", layer=2, over="set", per="position"), "z@2=mean:set,per=position"),
        (qkv.resample("z", layer=2, head=1, seed=4), "z@2.h1=patch:resample,seed=4"),
        (qkv.mask(band=3, layer=1), "scores@1=mask:band=3"),
        (qkv.mask(layer=1, tokens=(slice(1, None), 0)), "scores@1[1:,0]=mask"),
        (
            qkv.keep(by="snapkv", budget=9, window=4, pool="max", prompt=12),
            "scores@*=keep:snapkv,budget=9,window=4,pool=max,prompt=12",
        ),
        (qkv.quant("v", bits=2, axis="token", kv_head=1), "v@*.g1=quant:bits=2,axis=token"),
        (qkv.zero("blocks.3.attn.hook_z", head=1), "z@3.h1=zero"),
        (qkv.patch("q_in", layer=5, head=3, source="clean"), "q_in@5.h3=patch:clean"),
        (qkv.zero("blocks.3.hook_k_input", kv_head=1), "k_in@3.g1=zero"),
        (qkv.zero("q", layer=1) + "k@1=zero", "q@1=zero + k@1=zero"),
        ("v@2=zero" + qkv.zero("q", layer=1), "v@2=zero + q@1=zero"),
    ],
)
def test_notation(edit, expected):
    assert str(edit) == expected == edit.text and repr(edit) == f"Edit({expected!r})"


def test_every_operation_has_a_function():
    for operation in qkv.operations():
        assert callable(getattr(qkv, operation.name))


@pytest.mark.parametrize(
    "make, problem",
    [
        (lambda: qkv.zero("q", layer=1.5), TypeError),
        (lambda: qkv.zero("q", layer=[]), ValueError),
        (lambda: qkv.zero("q", layer=slice(0, 4, 2)), TypeError),
        (lambda: qkv.zero("q", tokens=slice(0, 9, 2)), TypeError),
        (lambda: qkv.scale("q", by=None), TypeError),
        (lambda: qkv.add("resid_post", layer=2), TypeError),
        (lambda: qkv.set("resid_post", layer=2, to=0, vector="happy"), TypeError),
        (lambda: qkv.remove("resid_post", layer=2, vector=3), TypeError),
        (lambda: qkv.zero("q@3", layer=3), qkv.Error),
        (lambda: qkv.zero("k", layer=1, head=1, kv_head=0), qkv.Error),
        (lambda: qkv.zero("blocks.3.hook_nothing"), qkv.Error),
        (lambda: qkv.custom("q", fn=3), TypeError),
        (lambda: qkv.zero("q") + 3, TypeError),
        (lambda: 3 + qkv.zero("q"), TypeError),
    ],
)
def test_mistakes(make, problem):
    with pytest.raises(problem):
        make()


def test_same_as_texts(model):
    texts = ["q@3.h1=scale:0.001", "q@3.h1=scale:0.001 + v@2=zero", "z@1=zero + q@4=zero"]
    objects = [
        qkv.scale("q", layer=3, head=1, by=0.001),
        qkv.scale("q", layer=3, head=1, by=0.001) + qkv.zero("v", layer=2),
        [qkv.zero("z", layer=1), "q@4=zero"],
    ]
    a, b = (model.run(TEXT, edits, "logits") for edits in (texts, objects))
    assert a.edits == b.edits
    for i in range(4):
        assert a[i]["logits"].tobytes() == b[i]["logits"].tobytes()


def test_vectors(model, tmp_path):
    states = model.run(TEXT, capture="resid_post@2")[0]["resid_post", 2].copy()
    happy = states[3] / np.linalg.norm(states[3])
    edits = [
        qkv.add("resid_post", layer=2, vector="happy", by=4),
        qkv.remove("resid_post", layer=2, tokens=slice(1, None), vector="happy"),
        qkv.set("resid_post", layer=2, tokens=-1, vector="happy"),
    ]
    r = model.run(TEXT, edits, "resid_post@2", vectors={"happy": happy})
    found = [r[i]["resid_post", 2] for i in range(1, 4)]
    np.testing.assert_array_equal(found[0], states + 4 * happy)
    removed = states.copy()
    removed[1:] -= np.outer(removed[1:] @ happy, happy)
    np.testing.assert_allclose(found[1], removed, atol=1e-5 * np.abs(states).max())
    np.testing.assert_array_equal(found[2][-1], happy)
    np.testing.assert_array_equal(found[2][:-1], states[:-1])

    path = tmp_path / "states.safetensors"
    model.run(TEXT, capture="resid_post@2").save(str(path))
    edit = qkv.add("resid_post", layer=2, vector=f"{path}#v0/resid_post.2")
    np.testing.assert_array_equal(model.run(TEXT, edit, "resid_post@2")[1]["resid_post", 2], 2 * states)

    assert model.next(TEXT, edits, vectors={"happy": happy}).kl[1] > 0
    assert model.measure(TEXT, edits, "kl", vectors={"happy": happy}).size > 0
    assert len(list(model.generate(TEXT, edits[0], n=2, vectors={"happy": happy}))) == 2
    with pytest.raises(qkv.Error, match="happy"):
        model.run(TEXT, edits)
    with pytest.raises(qkv.Error, match="no vector 'happy'"):
        model.run(TEXT, edits, vectors={"sad": happy})
    with pytest.raises(qkv.Error):
        model.run(TEXT, edits, vectors={"happy": happy[1:]})
    with pytest.raises(TypeError, match="by name"):
        model.run(TEXT, edits, vectors=[happy])


def test_ellipsis_stands_for_edits_to_come(model):
    assert len(model.run(TEXT, [...], "pattern@0")) == 1 and len(model.run(TEXT, [..., "q@1=zero"], "pattern@1")) == 2


# ---- functions ----


def scaled(x):
    return x * np.float32(0.25)


@pytest.mark.parametrize(
    "where",
    [
        dict(site="resid_post", layer=3),
        dict(site="q", layer=2, head=1),
        dict(site="k", layer=2, kv_head=1),
        dict(site="k", layer=2, head=3, tokens=slice(1, None)),
        dict(site="v"),
        dict(site="scores", layer=1),
        dict(site="pattern", layer=4, head=[0, 2], tokens=(slice(2, None), 1)),
        dict(site="logits", tokens=-1),
    ],
)
def test_custom_is_an_edit(model, where):
    where = dict(where)
    site = where.pop("site")
    r = model.run(
        TEXT, [qkv.scale(site, by=0.25, **where), qkv.custom(site, fn=scaled, **where)], ["logits", "pattern"]
    )
    for key in r[1].keys():
        assert r[1][tuple(key)].tobytes() == r[2][tuple(key)].tobytes(), key
    (plain,), (custom,) = r[1].changed.values(), r[2].changed.values()
    assert plain == custom > 0
    assert list(r[2].changed)[0].endswith("=custom:scaled")
    assert r.metadata["edits"][2][0].endswith("=custom:scaled")


def test_what_a_function_gets(model):
    seen = []

    def look(x, where):
        seen.append((x.copy(), where))
        return x

    r = model.run(
        TEXT, qkv.custom("k", layer=[1, 3], head=[2, 3], tokens=slice(2, None), fn=look), ["k@1.h2,h3", "logits"]
    )
    assert [w.layer for _, w in seen] == [1, 3]
    x, where = seen[0]
    assert x.dtype == np.float32 and np.array_equal(x, r[0]["k", 1][2:])
    assert (
        where.site == "k"
        and where.heads == [2, 3]
        and where.tokens == list(range(2, len(r.tokens)))
        and where.keys == []
    )
    assert "k@1,3.h2,3[2:]=custom:look" in repr(where)
    assert r[1].changed == {"k@1,3.h2,3[2:]=custom:look": 0} and r[1]["logits"] is not None
    seen.clear()
    model.run(TEXT, qkv.custom("pattern", layer=1, tokens=(slice(3, 5), slice(0, 2)), fn=look), "logits")
    assert seen[0][0].shape == (4, 2, 2) and seen[0][1].keys == [0, 1]


def test_function_may_keep_what_it_got(model):
    kept = []

    def keep(x):
        kept.append(x)
        return x + 1

    model.run(TEXT, qkv.custom("resid_post", layer=1, fn=keep), "logits")
    assert np.isfinite(kept[0]).all() and kept[0].flags.owndata


def test_names(model):
    f, g = (lambda x: x * 2), (lambda x: x * 3)
    r = model.run(
        TEXT,
        [
            qkv.custom("q", layer=1, fn=f) + qkv.custom("q", layer=2, fn=g),
            qkv.custom("q", layer=3, fn=f),
            qkv.custom("q", layer=3, fn=g, name="thrice"),
        ],
        "logits",
    )
    assert r[1].edits == "q@1=custom:lambda + q@2=custom:lambda_2" and r[2].edits == "q@3=custom:lambda"
    assert list(r[3].changed) == ["q@3=custom:thrice"]
    with pytest.raises(qkv.Error, match="cannot name a function"):
        model.run(TEXT, qkv.custom("q", layer=1, fn=f, name="a b"), "logits")


class Oops(Exception):
    pass


def raise_oops(x):
    raise Oops("no")


@pytest.mark.parametrize(
    "fn, problem, words",
    [
        (raise_oops, Oops, "no"),
        (lambda x: None, TypeError, "must return the tensor"),
        (lambda x: x[:1], ValueError, "must have that of what it was given"),
        (lambda x: "text", ValueError, ""),
        (lambda x: x * np.nan, qkv.Error, "gives NaN"),
        (lambda x: x.astype(float) * 1e300, qkv.Error, "gives Inf"),
    ],
)
def test_functions_that_fail(model, fn, problem, words):
    edit = qkv.custom("resid_post", layer=2, fn=fn)
    for call in (
        lambda: model.run(TEXT, edit, "logits"),
        lambda: model.next(TEXT, edit),
        lambda: model.measure(TEXT, edit, "output_kl"),
    ):
        with pytest.raises(problem, match=words):
            call()
    assert model.run(TEXT, "q@1=zero", "logits")[1]["logits"].any()


def test_nothing_is_shared(model):
    """Another function each time, of the same name: nothing of one run is in the next."""
    plain = model.run(TEXT, capture="logits")[0]["logits"]
    for factor in (1, 2, 3):
        r = model.run(TEXT, qkv.custom("resid_pre", layer=1, name="f", fn=lambda x: x * factor), "logits")
        assert r[0]["logits"].tobytes() == plain.tobytes()
        assert (r[1]["logits"].tobytes() == plain.tobytes()) == (factor == 1)


def test_in_generation(model):
    calls = []

    def steer(x):
        calls.append(x.shape)
        return x * 0.5

    g = model.generate(
        TEXT, [qkv.custom("resid_post", layer=2, fn=steer, by_token=True), "resid_post@2=scale:0.5"], n=4
    )
    assert len(list(g)) == 4 and g.tokens[1] == g.tokens[2] and calls[-1][0] == 1
    assert g.log_probabilities[1] == g.log_probabilities[2]
    assert g.run("logits[-1]", variant=1)[1]["logits"].shape == (1, 4096)
    with pytest.raises(qkv.Error, match="by_token"):
        model.generate(TEXT, qkv.custom("resid_post", layer=2, fn=steer), n=4)
    g = model.generate(
        TEXT, [qkv.custom("resid_post", layer=2, fn=steer), "resid_post@2=scale:0.5"], n=2, recompute=True
    )
    assert len(list(g)) == 2 and g.tokens[1] == g.tokens[2]
    g = model.generate(TEXT, qkv.custom("q", layer=2, fn=raise_oops, by_token=True), n=2)
    with pytest.raises(Oops):
        next(g)


def test_refused_where_files_must_say_how(model):
    edit = qkv.custom("q", layer=1, fn=scaled)
    with pytest.raises(qkv.Error, match="a function cannot"):
        model.grid(TEXT, cols={"f": edit})
    with pytest.raises(qkv.Error, match="no function named 'f'"):
        model.grid(TEXT, cols={"f": "q@1=custom:f"}, layer=1, head=0)
    with pytest.raises(qkv.Error):
        model.sweep([TEXT], targets="q", ops=["custom:f"])


class Call(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("edit", ctypes.c_char_p),
        ("site", ctypes.c_int),
        ("layer", ctypes.c_int32),
        ("values", ctypes.POINTER(ctypes.c_float)),
        ("n_values", ctypes.c_int64),
    ]


def test_c_functions(model):
    prototype = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Call), ctypes.c_void_p)

    @prototype
    def quarter(user, call, err):
        for i in range(call.contents.n_values):
            call.contents.values[i] *= 0.25
        return 0

    edits = [qkv.custom("z", layer=2, fn=quarter, name="quarter"), "z@2=scale:0.25"]
    r = model.run(TEXT, edits, "logits")
    assert r[1]["logits"].tobytes() == r[2]["logits"].tobytes() and list(r[1].changed) == ["z@2=custom:quarter"]
    from qkv._core import ffi

    pointer = ffi.cast("void *", ctypes.cast(quarter, ctypes.c_void_p).value)
    r = model.run(TEXT, [qkv.custom("z", layer=2, fn=pointer, name="quarter"), edits[1]], "logits")
    assert r[1]["logits"].tobytes() == r[2]["logits"].tobytes()


def test_torch_functions(model):
    torch = pytest.importorskip("torch")
    r = model.run(
        TEXT, [qkv.custom("z", layer=2, fn=lambda x: torch.from_numpy(x) * 0.25), "z@2=scale:0.25"], "logits"
    )
    assert r[1]["logits"].tobytes() == r[2]["logits"].tobytes()


@pytest.mark.parametrize(
    "compute",
    [
        lambda m: m.run("The mill."),
        lambda m: m.measure("The mill.", metrics="sink"),
        lambda m: m.next("The mill."),
        lambda m: m.modify("The mill.", layer=1, head=1),
        lambda m: m.sweep(["The mill."], epsilon=[0.5], metrics="tv"),
        lambda m: next(m.generate("The mill.", n=1)),
        lambda m: qkv.open().run("The mill."),
    ],
)
def test_nothing_runs_inside_a_function(model, compute):
    def nested(x):
        compute(model)
        return x

    with pytest.raises(qkv.Error, match="inside a function"):
        model.run(TEXT, [qkv.custom("q", layer=3, fn=nested)], "logits")
    assert model.run(TEXT, "q@3.h0=zero", "logits")[1].changed["q@3.h0=zero"] > 0


def test_generation_inside_its_own_function(model):
    def nested(x):
        next(generation)
        return x

    generation = model.generate(TEXT, [qkv.custom("q", layer=3, fn=nested, by_token=True)], n=3)
    with pytest.raises(qkv.Error, match="inside a function"):
        next(generation)


def test_nothing_runs_inside_progress(model):
    with pytest.raises(qkv.Error, match="inside a function"):
        model.sweep([TEXT], epsilon=[0.5], metrics="tv", progress=lambda *told: model.run(TEXT))


def test_another_thread_runs_inside_a_function(model):
    import threading

    made = []

    def elsewhere(x):
        thread = threading.Thread(target=lambda: made.append(model.run(TEXT, capture="logits[-1]")))
        thread.start()
        thread.join()
        return x

    r = model.run(TEXT, [qkv.custom("q", layer=3, fn=elsewhere)], "logits[-1]")
    assert (made[0][0]["logits"] == r[0]["logits"]).all()


def test_functions_return_real_numbers(model):
    with pytest.raises(TypeError, match="real numbers"):
        model.run(TEXT, [qkv.custom("q", layer=3, fn=lambda x: x * 1j)], "logits")


@pytest.mark.parametrize("edits", [3, {"q@3=zero": 1}, b"q@3=zero"])
def test_edits_of_wrong_types(model, edits):
    with pytest.raises(TypeError, match="edits are a list"):
        model.run(TEXT, edits)
