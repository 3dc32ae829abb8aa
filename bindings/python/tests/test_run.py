"""Running, results, captures: the numbers are the program's, and arrays are where C has them."""
import pickle
import time
import warnings

import numpy as np
import pytest

import qkv
from qkv._core import ffi, lib, new_struct

EDITS = ["q@3.h1=scale:1e-3", "z@2=zero + v@4.g1=mean:token"]
CAPTURES = ["pattern", "q@3", "k@*.h*", "resid_post@5", "logits[-1]", "pattern@*:first", "pattern@2:mean=4"]


def address(array):
    return array.__array_interface__["data"][0]


def test_bits_of_the_program(model, program, text, tmp_path):
    out = tmp_path / "out.safetensors"
    arguments = [a for e in EDITS for a in ("--variant", e)] + [a for c in CAPTURES for a in ("--capture", c)]
    program("run", "-p", text, *arguments, "-o", out)
    theirs, ours = qkv.load(out), model.run(text, EDITS, CAPTURES)
    compared = 0
    for mine, other in zip(ours, theirs):
        assert sorted(map(str, mine.keys())) == sorted(map(str, other.keys()))
        for key in mine.keys():
            a, b = mine[tuple(key)], other[tuple(key)]
            assert a.dtype == np.float32 and a.shape == b.shape and a.tobytes() == b.tobytes(), key
            compared += 1
        assert mine.changed == other.changed and mine.selected == other.selected
    assert compared == 3 * len(ours[0].keys()) and compared > 60
    assert ours.text == theirs.text and ours.prompt == theirs.prompt and ours.edits == theirs.edits
    assert ours.tokens.tolist() == theirs.tokens.tolist()
    assert ours.logits_tokens == theirs.logits_tokens == [len(ours.tokens) - 1]
    assert {k: v for k, v in ours.metadata.items()} == theirs.metadata


def test_no_copy(model, text):
    r = model.run(text, ["q@3.h1=zero", "v@3=zero"], "pattern@3")
    for variant in range(3):
        tensor = new_struct("tensor")
        assert lib.qkv_result_get(r._store.pointer, variant, lib.QKV_SITE_PATTERN, 3, tensor)
        assert address(r[variant]["pattern", 3]) == int(ffi.cast("uintptr_t", tensor.data))
    assert address(r[0]["pattern", 3]) == address(r[0].pattern[3].array) == address(r[0].pattern[3].h[0])
    assert address(r[2]["pattern", 3]) == address(r[0]["pattern", 3])  # no edit of values reaches it: shared
    assert address(r[1]["pattern", 3]) != address(r[0]["pattern", 3])
    assert address(np.asarray(r[1].pattern[3])) == address(r[1]["pattern", 3])


def test_read_only(model, text):
    a = model.run(text, capture="pattern@3")[0]["pattern", 3]
    assert not a.flags.writeable and not a.flags.owndata
    with pytest.raises(ValueError):
        a[0, 0, 0] = 1
    with pytest.raises(ValueError):
        a.flags.writeable = True
    copy = a.copy()
    copy[0, 0, 0] = 2
    assert a[0, 0, 0] != 2


def test_channels(model, text, tmp_path):
    r = model.run(text, qkv.zero("resid_post", layer=1, channels=[2, -1]), ["resid_post@1", "q@3.h1{4:8}", "logits{7}"])
    width, n = model.info.n_embd, len(r.tokens)
    changed = np.flatnonzero((r[0].resid_post[1].array != r[1].resid_post[1].array).any(axis=0))
    assert changed.tolist() == [2, width - 1] and not r[1].resid_post[1][:, [2, -1]].any()
    q = r[0].q[3]
    assert q.shape == (n, 1, 4) and q.channels == (4, 5, 6, 7) and r[0].resid_post[1].channels == ()
    assert np.array_equal(q.array, model.run(text, capture="q@3")[0].q[3].h[1][:, None, 4:8])
    assert r[0].logits.shape == (n, 1) and r[0].logits.channels == (7,)
    r.save(tmp_path / "some.safetensors")
    assert qkv.load(tmp_path / "some.safetensors")[0].q[3].channels == (4, 5, 6, 7)


def test_indexing(model, text):
    r = model.run(text, "k@3.g1=zero", ["pattern@3.h1,h3", "k@3", "logits", "pattern@*:first"])
    v, n = r[1], len(r.tokens)
    assert v["pattern", 3].shape == (2, n, n) and v["pattern", -3].shape == (2, n, n)
    assert v["pattern@3"].shape == v["blocks.3.attn.hook_pattern"].shape == (2, n, n)
    assert v["pattern", 3, "first"].shape == v["pattern@3:first"].shape == (4, n)
    assert v["logits"].shape == (n, 4096) and v.logits.shape == (n, 4096)
    assert v.pattern[3].heads == (1, 3) and v.k[3].head_kind == "g" and v.k[3].axes == ("token", "head", "channel")
    assert np.array_equal(v.pattern[3].h[3], v["pattern", 3][1])
    assert np.array_equal(v.k[3].g[1], v["k", 3][:, 1]) and not v.k[3].g[1].any()
    assert v.pattern[3].h[[3, 1]].shape == (2, n, n) and v.k[3].g[:].shape == (n, 2, 32)
    assert v.pattern.layers == [3] and len(v.pattern) == 1 and v.pattern.stack().shape == (1, 2, n, n)
    assert [t.layer for t in v.pattern] == [3]
    assert ("pattern", 3) in v and ("pattern", 2) not in v and v.get(("pattern", 2), 7) == 7
    assert len(v) == len(list(v)) == len(v.keys())
    assert "pattern" in dir(v) and "logits" in dir(v)
    assert r[-1].number == 1 and [x.number for x in r] == [0, 1] and r.baseline.number == 0


def test_tensor_is_an_array(model, text):
    t = model.run(text, capture="pattern@3")[0].pattern[3]
    assert float(np.abs(t.sum(axis=-1) - 1).max()) < 1e-6
    assert type(t - t) is np.ndarray and type(np.log1p(t)) is np.ndarray and type(t + 1) is np.ndarray
    assert t[0].shape == t.shape[1:] and len(t) == 4 and sum(1 for _ in t) == 4
    assert np.array(t, dtype=np.float64).dtype == np.float64 and t.ndim == 3 and t.dtype == np.float32
    assert t.copy().flags.writeable and np.shares_memory(np.asarray(t), t.array)
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        assert not np.shares_memory(np.array(t, copy=True), t.array)


def test_missing(model, text):
    v = model.run(text, capture=["pattern@3.h1", "logits[-1]"])[0]
    for key, words in (
        (("pattern", 2), "pattern@2 was not captured; there is pattern@3, logits"),
        ("pattern", "pattern needs its layer"),
        ("patern", "there is no site 'patern'"),
        (("pattern", 3, "first"), "pattern@3:first was not captured"),
    ):
        with pytest.raises(qkv.MissingError, match=words) as caught:
            v[key]
        assert isinstance(caught.value, (qkv.Error, KeyError)) and caught.value.code == qkv.codes()["ERR_ARGUMENT"]
    with pytest.raises(qkv.MissingError, match="head h2 of pattern@3 was not captured; there are h1"):
        v.pattern[3].h[2]
    with pytest.raises(qkv.MissingError, match="has query heads: use .h"):
        v.pattern[3].g[0]
    with pytest.raises(TypeError):
        v[3]
    with pytest.raises(AttributeError):
        v.nothing
    r = model.run(text, capture="pattern@3")
    with pytest.raises(IndexError, match="variant 1 is out of range"):
        r[1]
    with pytest.raises(TypeError, match="r\\[1\\]"):
        r["pattern"]


def test_errors_are_the_librarys(model, text):
    with pytest.raises(qkv.Error) as caught:
        model.run(text, "q@9=zero")
    assert caught.value.code == -7 and caught.value.status == "plan cannot be run"
    assert str(caught.value) == "edit 'q@9=zero': layer 9 is out of range; the model has layers 0 to 5"
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.code, str(again)) == (caught.value.code, str(caught.value))
    with pytest.raises(qkv.Error, match="there is no operation 'zer' \\(did you mean 'zero'\\?\\)"):
        model.run(text, "q@3=zer")
    with pytest.raises(qkv.Error, match="captures nothing"):
        model.run(text, capture=[])
    with pytest.raises(qkv.Error, match="the prompt is empty"):
        model.run([])
    with pytest.raises(qkv.Error, match="out of range; the vocabulary has ids 0 to 4095"):
        model.run([1, 4096])
    with pytest.raises(qkv.Error, match="token ids are 0 to 4095"):
        model.run([1, 2**40])


@pytest.mark.parametrize("prompt", [None, 3, 2.5, b"text", {"a": 1}, [1.5], ["a"], object()])
def test_wrong_prompts(model, prompt):
    with pytest.raises(TypeError, match="a prompt is a text or a list of token ids"):
        model.run(prompt)


@pytest.mark.parametrize("edits", [3, [3], [None], object()])
def test_wrong_edits(model, text, edits):
    with pytest.raises(TypeError):
        model.run(text, edits)


def test_wrong_captures(model, text):
    with pytest.raises(TypeError, match="a capture is a text"):
        model.run(text, capture=[3])


def test_prompts_as_ids(model, text):
    ids = model.tokenize(text)
    expected = model.run(text, capture="logits[-1]")[0]["logits"]
    for given in (ids, ids.tolist(), tuple(ids.tolist()), ids.astype(np.int64)):
        r = model.run(given, capture="logits[-1]")
        assert r.prompt is None and np.array_equal(r[0]["logits"], expected)
    assert model.run(text, capture=("pattern", 3)).captures == ["pattern@3"]
    plain = model.run(text, capture="pattern@3", special=False)
    assert len(plain.tokens) == len(ids) - 1 and "bos" not in plain.text[0]


def test_sources(model):
    one, other = "The river runs past the old mill.", "The river runs past the new mill."
    r = model.run(one, qkv.patch("resid_pre", layer=0, source="clean"), "logits[-1]", sources={"clean": other})
    plain = model.run(other, capture="logits[-1]")
    assert np.array_equal(r[1]["logits"], plain[0]["logits"])
    assert r.metadata["source.clean"] == plain.tokens.tolist()
    with pytest.raises(qkv.Error, match="patching needs equal lengths"):
        model.run(one, "q@1=patch:a", sources={"a": "The river."})


def test_sources_of_other_lengths(model):
    one, other = "The river runs past the old mill.", "Today the river runs past the new mill."
    edit = qkv.patch("resid_post", layer=2, tokens=-1, source="far", source_tokens=-1)
    r = model.run(one, edit, ["resid_post@2", "logits[-1]"], sources={"far": other})
    far = model.run(other, capture="resid_post@2")
    assert np.array_equal(r[1]["resid_post", 2][-1], far[0]["resid_post", 2][-1])
    assert r.metadata["source.far"] == far.tokens.tolist() and len(far.tokens) != len(r.tokens)
    n = model.next(one, edit, sources={"far": other}, of=[5], top=0)
    assert np.allclose(n[1]["logit"], r[1]["logits"][0][5])


SET = ["The river runs past the old mill.", "A boat goes down to the sea in spring.", "Snow falls on the hill all day."]


def test_means_over_a_set(model):
    one = "The baker opens the shop."
    edits = [qkv.mean("z", layer=1, over="set"), qkv.mean("z", layer=1, over="set", per="position")]
    runs = [model.run(p, capture="z@1")[0]["z", 1] for p in SET]
    r = model.run(one, edits, ["z@1", "logits[-1]"], set_prompts=SET)
    assert np.allclose(r[1]["z", 1], np.concatenate(runs).mean(axis=0), atol=1e-6)
    for t in range(len(r.tokens)):
        expected = np.mean([z[t] for z in runs if len(z) > t], axis=0)
        assert np.allclose(r[2]["z", 1][t], expected, atol=1e-6)
    n = model.next(one, edits, set_prompts=SET, of=[5], top=0)
    assert np.allclose(n[1]["logit"], r[1]["logits"][0][5], atol=1e-5)
    assert model.measure(one, edits, "kl", set_prompts=iter(SET)).size > 0
    assert len(list(model.generate(one, edits[0], n=2, set_prompts=SET))) == 2
    assert "set of 3 prompts" in model.explain(one, "z@3=mean:set", "logits", set_prompts=SET)
    figure = model.grid(one, cols=["v@{layer}=mean:set"], layer=3, head=1, set_prompts=SET)
    assert [i["text"] for i in figure.recipe["inputs"] if i.get("name") == "mean:set"][1] == SET[1]
    with pytest.raises(qkv.Error, match="a set of one prompt has no mean"):
        model.run(one, edits, set_prompts=SET[:1])
    with pytest.raises(qkv.Error, match="there is no set of prompts here"):
        model.run(one, edits)
    with pytest.raises(TypeError, match="several prompts"):
        model.run(one, edits, set_prompts=SET[0])


def test_resampling(model):
    one = "The baker opens the shop."
    r = model.run(one, [qkv.resample("resid_pre", layer=0, seed=s) for s in range(4)], "logits[-1]", set_prompts=SET)
    n = len(r.tokens)
    plain = [model.run(model.tokenize(p)[:n], capture="logits[-1]")[0]["logits"] for p in SET]
    for v in range(1, 5):
        assert any(np.array_equal(r[v]["logits"], p) for p in plain)


def test_stats_and_explain(model, text):
    r = model.run(text, "q@3.h1=zero", "pattern@3")
    assert r.stats["passes"] >= 1 and r.stats["flop"] > 0
    assert "variant 1: from q, k and v of layer 3" in model.explain(text, "q@3.h1=zero", "pattern@3")


def test_reprs(model, text):
    r = model.run(text, "q@3.h1=zero", "pattern")
    for thing in (model, r, r[1], r[1].pattern, r[1].pattern[2], r[1].pattern[2].h, model.weights):
        assert len(repr(thing)) < 300 and "0x" not in repr(thing), repr(thing)


def test_model_facts(model):
    assert model.info.architecture in qkv.families() and model.info.causal and not model.info.has_sink
    assert len(model.hash()) == 32 and model.backend.startswith("CPU") and model.notices == []
    other = pickle.loads(pickle.dumps(model))
    assert other.info == model.info and other is not model


def test_text_and_tokens(model):
    ids = model.tokenize("The river é")
    assert ids.dtype == np.int32 and model.detokenize(ids) == "The river é"
    assert model.detokenize(ids, special=True).startswith("<|bos|>")
    assert model.token_text(0) == "<|bos|>" and model.find_token(" river") == 2290
    assert model.tokenize("<|bos|>", special=False, parse_special=True).tolist() == [0]
    with pytest.raises(qkv.Error):
        model.token_text(-1)
    with pytest.raises(qkv.Error):
        model.find_token("no single token")


def test_chat(model):
    template = (
        "{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}{% if add_generation_prompt %}>{% endif %}"
    )
    ids = model.chat(
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}], template=template
    )
    assert model.detokenize(ids) == "[system] Be brief.[user] Hello>"
    assert model.detokenize(model.chat("Hello", template=template, reply=False)) == "[user] Hello"
    with pytest.raises(qkv.Error):
        model.chat("Hello")  # the default model has no template
    model.run(ids, capture="pattern@0")


def test_open(unset_model, monkeypatch, tmp_path, source):
    path = source / "models" / "default.gguf"
    assert qkv.open(path).info == qkv.open(str(path)).info
    with pytest.raises(qkv.Error) as caught:
        qkv.open(tmp_path / "no.gguf")
    assert caught.value.code == qkv.codes()["ERR_IO"]
    monkeypatch.setenv("QKV_MODEL", str(tmp_path / "other.gguf"))
    with pytest.raises(qkv.Error, match="other.gguf"):
        qkv.open()
    with pytest.raises(qkv.Error, match="threads"):
        qkv.open(path, threads=-1).run("The river")
    odd = tmp_path / "b\udce9.gguf"  # a name that is not UTF-8
    odd.symlink_to(path)
    assert qkv.open(odd).info.n_layer == 6


def test_models_by_name_in_c(tmp_path, monkeypatch, source):
    """qkv_model_open takes what -m and qkv.open take."""
    from qkv._core import check, new_error

    folder = tmp_path / "models" / "river"
    folder.mkdir(parents=True)
    (folder / "river.gguf").write_bytes((source / "models" / "default.gguf").read_bytes())
    monkeypatch.setenv("QKV_CACHE", str(tmp_path))
    out, err = ffi.new("qkv_model **"), new_error()
    check(lib.qkv_model_open(out, b"river", err), err)
    assert lib.qkv_model_get_info(out[0]).n_layer == 6
    lib.qkv_model_free(out[0])
    assert qkv.open("river").info.n_layer == 6 and qkv.Model("river").info.path.endswith("river.gguf")


def test_lists():
    assert {s.name for s in qkv.sites()} >= {"q", "logits"} and {o.name for o in qkv.operations()} >= {"scale", "custom"}
    assert len(qkv.metrics()) > 40 and "llama" in qkv.families() and qkv.version() == qkv.__version__
    assert qkv.reductions()["max"] and qkv.codes()["OK"] == 0 and len(qkv.default_prompts()) == 3
    assert all(m.path or m.size for m in qkv.models())
    assert set(qkv.__all__) <= set(dir(qkv))
    for name in qkv.__all__:
        assert getattr(qkv, name) is not None
    with pytest.raises(AttributeError):
        qkv.nothing


def test_hooks(model):
    assert qkv.site("blocks.3.attn.hook_q") == "q@3" and qkv.hooks()["blocks.L.hook_resid_post"] == "resid_post@L"
    assert model.hooks["blocks.5.attn.hook_rot_k"] == "k_rot@5" and len(model.hooks) == 6 * (len(qkv.hooks()) - 1) + 1
    r = model.run("The river runs.", capture="blocks.3.attn.hook_z")
    assert r[0]["z", 3].shape == r[0]["blocks.3.attn.hook_z"].shape
    with pytest.raises(qkv.Error, match="sum of resid_pre and attn_out"):
        qkv.site("blocks.3.hook_resid_mid")


def test_progress(model, text, capsys):
    seen = []
    model.run(text, ["q@1=zero"] * 3, "logits", progress=lambda *step: seen.append(step))
    assert seen and seen[0][0] == "variants" and seen[-1][2] == 4
    model.run(text, progress=True)
    assert capsys.readouterr().err
    with pytest.raises(TypeError, match="progress is True, False or a function"):
        model.run(text, progress=3)

    def fails(what, done, total):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        model.run(text, progress=fails)
    assert model.run(text, capture="pattern@0")[0]["pattern", 0].shape[0] == 4


def test_plain_progress(monkeypatch, capsys):
    import sys

    from qkv.progress import shower

    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    show = shower(True)
    show("cells", 3, 10)
    show("cells", 10, 10)
    show.close()
    assert capsys.readouterr().err.endswith("\r10 of 10 cells\n")


def test_torch(model, text):
    torch = pytest.importorskip("torch")
    a = model.run(text, capture="pattern@3")[0]["pattern", 3]
    t = torch.from_numpy(a.copy())
    t[0] = 0
    assert a[0].any() and t.shape == a.shape


def test_waiting_threads_sleep_soon():
    import os
    import subprocess
    import sys

    code = "import os, qkv; print(os.environ.get('GOMP_SPINCOUNT')); import qkv._load as l; print(l._own)"
    plain = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    for given, expected in (({}, ["None", "True"]), ({"GOMP_SPINCOUNT": "7"}, ["7", "False"])):
        done = subprocess.run([sys.executable, "-c", code], env={**plain, **given}, capture_output=True, text=True)
        assert done.stdout.split() == expected, done.stderr


def test_heads_are_whole_numbers(model, text):
    t = model.run(text, capture="pattern@3")[0].pattern[3]
    for head in (1.5, "1", np.array([True, False, True, False]), [0.0]):
        with pytest.raises(TypeError, match="whole numbers"):
            t.h[head]
    assert (t.h[np.array([2, 0])] == t.array[[2, 0]]).all() and (t.h[np.array(1)] == t.array[1]).all()


def test_tensors_cannot_be_written(model, text):
    t = model.run(text, capture="pattern@3")[0].pattern[3]
    with pytest.raises(ValueError, match="read-only"):
        t += 1
    with pytest.raises(ValueError, match="read-only"):
        np.add(t, 1, out=t)


def test_layers_of_wrong_kinds(model, text):
    v = model.run(text, capture="pattern")[0]
    for layer in (slice(1, 3), 1.0, True):
        with pytest.raises(TypeError, match="one whole number"):
            v["pattern", layer]
        with pytest.raises(TypeError, match="one whole number"):
            model.weights["q", layer]
    with pytest.raises(qkv.MissingError, match="layer -7 is out of range"):
        v["pattern", -7]


def test_captures_as_pairs(model, text):
    keys = model.run(text, capture=("pattern", [1, np.int64(2)]))[0].keys()
    assert [k.layer for k in keys] == [1, 2]
    for capture in (None, 3, b"q@3"):
        with pytest.raises(TypeError, match="capture is a text"):
            model.run(text, capture=capture)


def test_sources_of_wrong_types(model, text):
    for sources in (["x"], {1: "x"}):
        with pytest.raises(TypeError, match="prompts by name"):
            model.run(text, "q@1=patch:c", sources=sources)
        with pytest.raises(TypeError, match="prompts by name"):
            model.next(text, "q@1=patch:c", sources=sources)


def test_results_are_not_pickled(model, text):
    import copy
    import pickle

    r = model.run(text, capture="pattern@3")
    for thing in (r, r[0]):
        with pytest.raises(TypeError, match="qkv.load"):
            pickle.dumps(thing)
        assert copy.deepcopy(thing) is thing and copy.copy(thing) is thing


def test_listed_weights_are_indices(model):
    for weight in model.weights:
        assert weight in model.weights and model.weights.about(weight.name, weight.layer) == weight
    assert model.weights[weight].shape == weight.shape


def test_zero_bytes_end_nothing(model, text, tmp_path):
    for call in (
        lambda: qkv.open("default\0.gguf"),
        lambda: model.run(text, "q@1=zero\0"),
        lambda: model.run(text, capture="q@1\0"),
        lambda: model.run(text, "q@1=patch:c", sources={"c\0": text}),
        lambda: model.run(text).save(f"{tmp_path}/a.npz\0"),
        lambda: qkv.load(f"{tmp_path}/a.npz\0"),
        lambda: model.measure(text, metrics="sink\0"),
        lambda: model.weights["q\0", 3],
        lambda: qkv.site("blocks.3.attn.hook_q\0"),
        lambda: model.modify(layer=3, head=1).save(f"{tmp_path}/a.png\0"),
    ):
        with pytest.raises(qkv.Error, match="zero byte"):
            call()


def test_lists_of_arrays_are_prompts(model):
    """What m.tokenize gives is a prompt wherever a text is, alone and in lists."""
    texts = ["The river runs past the mill.", "A boat lies at the quay."]
    arrays = [model.tokenize(t) for t in texts]

    def compare(work, *fields):
        expected = work(texts)
        for given in (arrays, tuple(arrays), [a.tolist() for a in arrays], iter(arrays)):
            found = work(given)
            for field in fields:
                assert np.array_equal(found[field], expected[field])

    compare(lambda p: model.measure(p, "q@3=zero", "sink,tv"), "prompt", "value")
    compare(
        lambda p: model.sweep(p, layers=3, targets="q", ops="zero", metrics="tv").rows("tv"), "prompt", "layer", "value"
    )
    compare(lambda p: {i: panel.values for i, panel in enumerate(model.mean(p, layer=3, head=1))}, *range(6))
    compare(lambda p: model.run(texts[0], "z@2=mean:set", "logits[-1]", set_prompts=p)[1], "logits")
    compare(lambda p: model.next(texts[0], "z@2=mean:set", set_prompts=p)[1], "logit")
    compare(
        lambda p: {0: model.grid(texts[0], cols={"a": "z@2=mean:set"}, layer=3, head=1, set_prompts=p).data}, 0
    )
    sources = {"other": arrays[0]}
    run = model.run(arrays[0], "z@2=patch:other", "logits[-1]", sources=sources)
    assert np.array_equal(run[0]["logits"], run[1]["logits"])
    same = np.stack([arrays[0], arrays[0]])  # rows of equal length
    assert len(model.measure(same, metrics="sink").prompts) == 2
    assert len(model.measure(range(5, 9), metrics="sink").prompts) == 1
    for wrong in (5, b"text", {"a": 1}, [1.5], [None], [[1.5]]):
        for work in (
            lambda p: model.measure(p, metrics="sink"),
            lambda p: model.mean(p, layer=3, head=1),
            lambda p: model.sweep(p, targets="q", ops="zero", metrics="tv"),
        ):
            with pytest.raises((TypeError, qkv.Error)):
                work(wrong)


def test_edits_that_nothing_depends_on(model, text):
    """The program warns about them, and so does Python, at the line of the caller."""
    idle = ["q@5=zero", "q@3=zero + v@4=zero"]
    said = ["q@5=zero (v1) was not computed", "v@4=zero (v2) was not computed"]
    generation = model.generate(text, "q@5=zero", n=2)
    list(generation)
    for work, count in (
        (lambda: model.run(text, idle, "pattern@3"), 2),
        (lambda: model.measure([text, text], idle, "sink", layers=3), 2),
        (lambda: model.next(text, ["q@5[-1]=zero", "q@5[3]=zero"]), 1),
        (lambda: generation.run("pattern@3"), 1),
        (lambda: model.heads(text, layers="3", edits="q@5=zero"), 1),
    ):
        with pytest.warns(qkv.Notice) as caught:
            work()
        texts = [str(w.message) for w in caught]
        assert len(texts) == count and all("was not computed: nothing that is" in t for t in texts), texts
        assert all(w.filename == __file__ for w in caught)
        if count == 2:
            assert [t[: len(s)] for t, s in zip(texts, said)] == said
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.run(text, ["q@3=zero", "q@3=scale:1"], "pattern@3")  # which changes no value, and says 0
        with pytest.raises(qkv.Notice):
            model.run(text, idle, "pattern@3")


def test_slices_and_items(model, text):
    r = model.run(text, ["q@3=zero", "v@2=zero"], ["pattern@3", "logits[-1]", "pattern@*:first"])
    assert [v.number for v in r[1:]] == [1, 2] and [v.number for v in r[::-1]] == [2, 1, 0] and r[5:] == []
    for v in r:
        assert [key for key, _ in v.items()] == v.keys() == list(v)
        assert all(a is not None and np.array_equal(a, v[key]) for key, a in v.items())
        assert len(dict(v.items())) == len(v) == len(v.values()) and dict(v)[v.keys()[0]].size
    for wrong in (True, 1.0, "1", None):
        with pytest.raises(TypeError):
            r[wrong]
    with pytest.raises(TypeError):
        r[0]["pattern", True]


def test_the_edits_of_a_result_can_be_run(model, text):
    r = model.run(text, ["q@3=zero", "v@2=zero + z@1=zero"], "logits[-1]")
    again = model.run(text, r.edits, "logits[-1]")
    assert again.edits == r.edits == ["", "q@3=zero", "v@2=zero + z@1=zero"]
    assert all(np.array_equal(a["logits"], b["logits"]) for a, b in zip(r, again))
    assert model.measure(text, r.edits, "tv").variants == r.edits
    assert model.next(text, r.edits).edits == model.generate(text, r.edits, n=1).edits == r.edits
    assert len(model.run(text, "", "logits[-1]")) == 1
    with pytest.raises(qkv.Error, match="empty"):
        model.run(text, ["q@3=zero", ""], "logits[-1]")
    assert model.grid(text, cols=["", "q@3=zero"], layer=3, head=1).shape == (1, 2)


def test_metadata_without_the_tensors(model, text, tmp_path, monkeypatch):
    r = model.run(text, ["q@3=zero"], ["pattern@3", "logits"])
    r.save(tmp_path / "out.safetensors")
    assert r.metadata == qkv.load(tmp_path / "out.safetensors").metadata and len(r.metadata) > 5
    tall = model.run(text * 6, capture=["resid_post", "mlp_act", "scores", "pattern"])

    def cost(work):
        tracked = []
        for _ in range(5):
            begin = time.perf_counter()
            work()
            tracked.append(time.perf_counter() - begin)
        return min(tracked)

    tall.metadata  # hashes the model once
    assert cost(lambda: tall.metadata) < 0.5 * cost(lambda: tall.save(tmp_path / "tall.safetensors"))


def test_progress_ends_at_the_end(model, text):
    from qkv._core import Watch

    watch, seen = Watch(), []
    watch.show = lambda *step: seen.append(step)
    for steps in ([("layers", 3, 6)], [("layers", 3, 6), ("layers", 6, 6)], []):
        watch.last = None
        for step in steps:
            watch.tell(*step)
        watch.finish()
    assert seen == [("layers", 3, 6), ("layers", 6, 6)] * 2
    long, told = text * 8, 0
    for work in (
        lambda show: model.run(long, ["q@3=zero"], "logits", progress=show),
        lambda show: model.measure([long] * 3, "q@3=zero", "sink,tv", progress=show),
        lambda show: model.next(long, every=True, progress=show),
        lambda show: model.modify(long, layer=3, head=1, progress=show),
        lambda show: model.sweep([text], layers=3, targets="q", ops="zero", metrics="tv", progress=show),
    ):
        seen = []
        for _ in range(20):  # a short run may end before the first step is told
            work(lambda *step: seen.append(step))
            if seen:
                break
        assert not seen or seen[-1][1] == seen[-1][2] > 0, seen[-3:]
        told += bool(seen)
        assert all(a[1] <= b[1] for a, b in zip(seen, seen[1:]) if a[0] == b[0] and a[2] == b[2])
    assert told > 0
    seen = []
    with pytest.raises(qkv.Error):
        model.run(long, ["resid_post@2=set:3e38"], "logits", progress=lambda *step: seen.append(step))
    assert not seen or seen[-1][1] < seen[-1][2]


def test_import_star():
    import builtins

    names = {}
    exec("from qkv import *", names)
    assert not set(qkv.__all__) & set(dir(builtins)) and "scale" in names and "Model" in names
    assert "open" not in names and "set" not in names and callable(qkv.open) and callable(qkv.set)
    assert all(hasattr(qkv, name) for name in qkv.__all__) and {"open", "set"} <= set(dir(qkv))
