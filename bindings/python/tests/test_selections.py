"""Layers, heads, tokens and channels that are given as masks, ranges and numbers from the end."""
import numpy as np
import pytest

import qkv

TEXT = "The river runs past the old mill."  # 10 tokens of the default model; 6 layers, 4 heads in 2 groups


def mask(n, *chosen):
    made = np.zeros(n, dtype=bool)
    made[list(chosen)] = True
    return made


@pytest.mark.parametrize("kind", [np.asarray, list, lambda m: m.tolist(), lambda m: tuple(m.tolist())])
def test_masks_select(kind):
    edit = qkv.zero("z", layer=kind(mask(6, 2, 5)), head=kind(mask(4, 1)), tokens=kind(mask(10, 1, 4, 9)))
    assert str(edit) == "z@2,5.h1[1,4,9]=zero"
    assert str(qkv.zero("k", layer=2, kv_head=kind(mask(2, 1)))) == "k@2.g1=zero"
    assert str(qkv.zero("resid_post", layer=2, channels=kind(mask(128, 7, 9)))) == "resid_post@2{7,9}=zero"


def test_masks_of_maps():
    """Two numbers of a map are a row and a column: a mask of two tokens must not become that."""
    assert str(qkv.set("pattern", layer=3, tokens=mask(10, 4, 5), to=0)) == "pattern@3[4:6]=set:0.0"
    both = qkv.set("pattern", layer=3, tokens=(mask(10, 4, 5), mask(10, 0)), to=0)
    assert str(both) == "pattern@3[4:6,0:1]=set:0.0"
    with pytest.raises(qkv.Error, match="neighbours"):
        qkv.set("pattern", layer=3, tokens=mask(10, 2, 5), to=0)


def wrong_masks():
    return {
        "layers, and the model has 6": qkv.zero("z", layer=mask(5, 2)),
        "query heads, and the model has 4": qkv.zero("z", layer=2, head=mask(5, 1)),
        "key/value heads, and the model has 2": qkv.zero("k", layer=2, kv_head=mask(4, 1)),
        "tokens, and the prompt has 10": qkv.zero("z", layer=2, tokens=mask(9, 1)),
        "channels, and the site has 128": qkv.zero("resid_post", layer=2, channels=mask(129, 1)),
        "channels, and a head has 32": qkv.zero("q", layer=2, channels=mask(33, 1)),
    }


@pytest.mark.parametrize("words", list(wrong_masks()))
def test_masks_of_wrong_length(model, words):
    edit = wrong_masks()[words]
    joined = qkv.zero("z", layer=1) + edit
    ways = [
        lambda e: model.run(TEXT, [e], "logits[-1]"),
        lambda e: model.measure(TEXT, [e], "tv"),
        lambda e: model.next(TEXT, [e]),
        lambda e: model.generate(TEXT, [e], n=1),
        lambda e: model.explain(TEXT, [e], "logits"),
        lambda e: model.heads(TEXT, edits=e),
        lambda e: model.rows([TEXT], edits=e),
        lambda e: model.grid([TEXT], cols={"a": e}, layer=3, head=1),
    ]
    for way in ways:
        for given in (edit, joined):
            with pytest.raises(qkv.Error, match=words):
                way(given)


def test_masks_give_what_numbers_give(model):
    masked = qkv.zero("z", layer=mask(6, 2), head=mask(4, 1, 3), tokens=mask(10, 1, 4))
    _, a, b = model.run(TEXT, [masked, "z@2.h1,3[1,4]=zero"], "logits")
    assert (a["logits"] == b["logits"]).all() and list(a.changed.values()) == list(b.changed.values())
    rows = model.measure(TEXT, metrics="sink", layers=mask(6, 1, 4), heads=mask(4, 2))
    assert sorted(set(rows["layer"].tolist())) == [1, 4] and set(rows["head"].tolist()) == {2}
    assert model.heads(TEXT, layers=mask(6, 1, 4)).shape == (2, 4)
    swept = model.sweep([TEXT], layers=mask(6, 1), heads=mask(4, 2), targets="q", ops="zero", metrics="tv")
    assert [(r["layer"], r["head"]) for r in swept.rows("tv")] == [(1, 2)]
    assert model.run(TEXT, capture=("z", mask(6, 1, 4)))[0].z.layers == [1, 4]


def test_masks_of_wrong_length_elsewhere(model):
    for work in (
        lambda: model.measure(TEXT, metrics="sink", layers=mask(5, 1)),
        lambda: model.measure(TEXT, metrics="sink", heads=mask(5, 1)),
        lambda: model.heads(TEXT, layers=mask(7, 1)),
        lambda: model.sweep([TEXT], layers=mask(5, 1), targets="q", ops="zero", metrics="tv"),
        lambda: model.run(TEXT, capture=("z", mask(5, 1))),
    ):
        with pytest.raises(qkv.Error, match="a mask has"):
            work()


@pytest.mark.parametrize(
    "work",
    [
        lambda m: qkv.zero("z", layer=True),
        lambda m: qkv.zero("z", layer=2, head=np.True_),
        lambda m: qkv.zero("z", layer=[1, True]),
        lambda m: qkv.zero("z", layer=2, tokens=False),
        lambda m: qkv.zero("z", layer=2, tokens=np.ones((10, 10), dtype=bool)),
        lambda m: qkv.set("pattern", layer=2, tokens=np.ones((10, 10), dtype=bool), to=0),
        lambda m: qkv.patch("z", layer=2, source="a", tokens=mask(10, 1), source_tokens=[2]),
        lambda m: m.run([True, False, True]),
        lambda m: m.run(np.array([True, False])),
        lambda m: m.modify(TEXT, layer=True, head=1),
        lambda m: m.choose_head(TEXT, layer=True),
        lambda m: m.weights["q", True],
        lambda m: m.weights["q", np.True_],
        lambda m: m.weights.rows("q", 3, start=True),
        lambda m: m.weights.rows("q", 3, stop=True),
        lambda m: m.next(TEXT, at=True),
        lambda m: m.next(TEXT, top=True),
        lambda m: m.next(TEXT)[False],
        lambda m: m.next(TEXT, answer=" sea").answers(False),
        lambda m: m.rows(TEXT, query=True),
        lambda m: m.rows(TEXT, query=np.False_),
        lambda m: m.rows(TEXT)[False, 0],
        lambda m: m.pattern(TEXT, layer=2, head=1, dpi=True),
        lambda m: m.pattern(TEXT, layer=2, head=1, range=(False, True)),
        lambda m: m.modify(TEXT, layer=2, head=1, eps=[True]),
        lambda m: m.generate(TEXT, n=True),
        lambda m: m.generate(TEXT, n=2, top_k=True),
        lambda m: m.generate(TEXT, n=2, seed=True),
        lambda m: m.generate(TEXT, n=2, temperature=True),
        lambda m: m.generate(TEXT, n=1).run(variant=False),
        lambda m: m.token_text(True),
        lambda m: m.explore(port=True),
        lambda m: m.explore(height=True),
        lambda m: m.sweep([TEXT], targets="q", ops="zero", metrics="tv", processes=True),
        lambda m: m.sweep([TEXT], targets="q", ops="zero", metrics="tv").plot("tv", kind="ranking", top=True),
        lambda m: qkv.open(threads=True),
        lambda m: qkv.open(memory=True),
        lambda m: qkv.scale("q", layer=2, by=True),
        lambda m: m.sweep([TEXT], targets="q", ops="zero", metrics="tv").plot("tv", layers=mask(6, 1)),
    ],
)
def test_truth_values_are_not_numbers(model, work):
    with pytest.raises(TypeError):
        work(model)


@pytest.mark.parametrize("several", [set, frozenset])
@pytest.mark.parametrize(
    "work",
    [
        lambda m, s: m.next(TEXT, diff=s([" river", " mill"])),
        lambda m, s: m.next(TEXT, diff=[s([" river", " mill"])]),
        lambda m, s: m.next(TEXT, diff=s([(" river", " mill")])),
        lambda m, s: m.next(TEXT, of=s([" river", " mill"])),
        lambda m, s: m.next(TEXT, answer=s([" river", " mill"])),
        lambda m, s: m.next(TEXT, answer=[s([1819, 2161])]),
        lambda m, s: m.next(TEXT, edits=s(["z@1=zero", "z@2=zero"])),
        lambda m, s: m.run(TEXT, s(["z@1=zero", "z@2=zero"])),
        lambda m, s: m.run(TEXT, [s(["z@1=zero", "z@2=zero"])]),
        lambda m, s: m.generate(TEXT, s(["z@1=zero", "z@2=zero"]), n=1),
        lambda m, s: m.run(s([0, 373])),
        lambda m, s: m.detokenize(s([0, 373])),
        lambda m, s: m.measure(s([TEXT, "The mill."]), metrics="sink"),
        lambda m, s: m.measure(TEXT, metrics=s(["sink", "tv"])),
        lambda m, s: m.sweep(s([TEXT, "The mill."]), targets="q", ops="zero", metrics="tv"),
        lambda m, s: m.run(TEXT, "z@1=patch:resample", set_prompts=s([TEXT, "The mill."])),
        lambda m, s: m.mean(s([TEXT, "The mill."]), layer=2, head=1),
        lambda m, s: m.grid(TEXT, rows=s(["", "z@1=zero"]), layer=2, head=1),
        lambda m, s: m.grid(TEXT, rows=["z@1=patch:resample"], set_prompts=s([TEXT]), layer=2, head=1),
        lambda m, s: m.modify(TEXT, layer=2, head=1, eps=s([0.1, 0.5])),
        lambda m, s: m.pattern(TEXT, layer=2, head=1, range=s([0, 1])),
        lambda m, s: qkv.heatmap([[0.0, 1.0]], cols=s(["a", "b"])),
        lambda m, s: qkv.heatmap([[0.0, 1.0]], range=s([0, 1])),
        lambda m, s: qkv.set("pattern", layer=2, tokens=s([1, 0]), to=0),
        lambda m, s: qkv.zero("z", layer=2, head=s([True, False])),
        lambda m, s: qkv.patch("z", layer=2, source="a", tokens=s([1, 2]), source_tokens=[2, 3]),
        lambda m, s: qkv.patch("z", layer=2, source="a", tokens=[1, 2], source_tokens=s([2, 3])),
    ],
)
def test_sets_have_no_order(model, work, several):
    with pytest.raises(TypeError, match="the order matters|an edit is a text"):
        work(model, several)


def test_sets_where_no_order_matters(model):
    listed = qkv.zero("z", layer=[1, 2], head=[0, 3], tokens=[1, 2])
    a, b = model.run(TEXT, [qkv.zero("z", layer={1, 2}, head={0, 3}, tokens={1, 2}), listed], "logits")[1:]
    assert (a["logits"] == b["logits"]).all()
    assert model.run(TEXT, dict.fromkeys(["z@1=zero", "z@2=zero"]).keys(), "logits").edits[1:] == ["z@1=zero", "z@2=zero"]


def test_how_much_text_is_a_whole_number(model):
    for n in (2.7, "3", None, [2]):
        with pytest.raises(TypeError, match="^n must be a whole number, not "):
            model.generate(TEXT, n=n)
    assert len(list(model.generate(TEXT, n=np.int64(2)))) == 2


@pytest.mark.parametrize(
    "layer, written, held",
    [
        (-1, "-1", "5"),
        ([0, -1], "0,-1", "0,5"),
        (range(-2, 0), "-2,-1", "4,5"),
        (slice(-2, None), "-2--1", "4-5"),
        (slice(4, None), "4--1", "4-5"),
        (slice(None, -4), "0--5", "0-1"),
        (slice(-3, -1), "-3--2", "3-4"),
        (slice(2, 4), "2,3", "2,3"),
        ("-3--2", "-3--2", "3-4"),
    ],
)
def test_layers_from_the_end(model, layer, written, held):
    edit = qkv.zero("z", layer=layer)
    assert str(edit) == f"z@{written}=zero"
    r = model.run(TEXT, edit, [f"z@{layer}" if isinstance(layer, str) else ("z", layer), "logits[-1]"])
    assert r.edits == ["", f"z@{held}=zero"] and list(r[1].changed) == r.edits[1:]
    assert r.captures[0] == f"z@{held}"
    layers = model.run(TEXT, capture=f"z@{held}")[0].z.layers
    assert r[0].z.layers == layers
    rows = model.measure(TEXT, metrics="sink", layers=layer)
    assert sorted(set(rows["layer"].tolist())) == layers
    assert [p.layer for p in model.heads(TEXT, layers=layer)] == [n for n in layers for _ in range(4)]
    swept = model.sweep([TEXT], layers=layer, heads=-1, targets="q", ops="zero", metrics="tv")
    assert [(r["layer"], r["head"]) for r in swept.rows("tv")] == [(n, 3) for n in layers]
    assert swept.plot("tv", layers=-1).rows()["layer"].tolist() == layers[-1:]


def test_heads_from_the_end(model):
    assert model.run(TEXT, qkv.zero("z", layer=-1, head=-1), "logits").edits[1] == "z@5.h3=zero"
    assert model.run(TEXT, qkv.zero("k", layer=-2, kv_head=-1), "logits").edits[1] == "k@4.g1=zero"
    assert set(model.measure(TEXT, metrics="sink", heads=-1)["head"].tolist()) == {3}
    assert model.choose_head(TEXT, layer=-1, head=-2) == (5, 2)
    for wrong in (lambda: model.run(TEXT, "q@-7=zero"), lambda: model.measure(TEXT, metrics="sink", layers=-7)):
        with pytest.raises(qkv.Error, match="layer -7 is out of range; the model has layers 0 to 5, or from the end"):
            wrong()
    v = model.run(TEXT, capture=["pattern@3", "k@3"])[0]
    assert np.array_equal(v.pattern[3].h[-1], v.pattern[3].h[3]) and np.array_equal(v.k[3].g[-2], v.k[3].g[0])
    assert np.array_equal(v.pattern[3].h[[0, -1]], v.pattern[3].h[[0, 3]])
    assert np.array_equal(v.pattern[3].h[-2:], v.pattern[3].h[[2, 3]])
    for tensor, wrong_head in ((v.pattern[3].h, -5), (v.k[3].g, -3)):
        with pytest.raises(qkv.MissingError, match=f"{wrong_head} is out of range; the model has"):
            tensor[wrong_head]
    some = model.run(TEXT, capture=["pattern@3.h0,h1", "pattern@4.h-1"])[0]
    assert np.array_equal(some.pattern[4].h[-1], some.pattern[4].h[3])  # of the model's heads, not of those captured
    for head in (-1, slice(-1, None)):
        with pytest.raises(qkv.MissingError):
            some.pattern[3].h[head]
    for empty in (slice(-1, -2), slice(3, 0), slice(-1, -1), slice(0, 0)):
        with pytest.raises(ValueError, match="empty"):
            qkv.zero("z", layer=empty)


def test_hooks_are_sites(model, program):
    edit, capture = "blocks.3.attn.hook_z.h1[2:]=zero", "blocks.-1.hook_resid_post"
    r = model.run(TEXT, [edit, "z@3.h1[2:]=zero"], [capture, "logits"])
    assert r.edits == ["", "z@3.h1[2:]=zero", "z@3.h1[2:]=zero"] and r.captures == ["resid_post@5", "logits"]
    assert np.array_equal(r[1]["logits"], r[2]["logits"])
    assert "v1  z@3.h1[2:]=zero  changed" in program("run", "-p", TEXT, "--variant", edit, "--capture", "logits[-1]")
    for command in ("next", "measure"):
        both = [program(command, "-p", TEXT, "--json", "--no-recipe", "--variant", e) for e in (edit, r.edits[1])]
        assert both[0].replace(edit, r.edits[1]) == both[1]


def test_hooks_from_the_end_and_without_layer(model, program):
    edits = ["blocks.-1.attn.hook_z.h-1=zero", qkv.zero("blocks.-1.attn.hook_z", head=-1)]
    edits += ["ln_final.hook_normalized[-1]=zero", qkv.zero("ln_final.hook_normalized", tokens=-1)]
    captures = ["blocks.-1.attn.hook_z.h-1", "ln_final.hook_normalized[-1]", "logits[-1]"]
    r = model.run(TEXT, edits, captures)
    assert r.edits[1:] == ["z@5.h3=zero"] * 2 + ["final_norm[-1]=zero"] * 2
    assert r.captures == ["z@5.h3", "final_norm[-1]", "logits[-1]"]
    for variant in r[1:]:
        assert not np.array_equal(variant["logits"], r[0]["logits"])
    for hook, site in (("blocks.-1.attn.hook_z", "z@5"), ("ln_final.hook_normalized", "final_norm")):
        assert np.array_equal(r[0][hook], r[0][site]) and r[0][hook].size
    assert np.array_equal(r[0]["z@-1"], r[0]["z", 5])
    assert qkv.site("ln_final.hook_normalized") == "final_norm" and qkv.site("blocks.-1.attn.hook_z") == "z@-1"
    assert qkv.hooks()["ln_final.hook_normalized"] == model.hooks["ln_final.hook_normalized"] == "final_norm"
    with pytest.raises(qkv.Error, match="'ln_final.hook_scale' is not the name of a hook that has a site here"):
        qkv.site("ln_final.hook_scale")
    assert "v1  final_norm[-1]=zero  changed" in program(
        "run", "-p", TEXT, "--variant", "ln_final.hook_normalized[-1]=zero", "--capture", "logits[-1]"
    )


def test_a_mask_that_selects_nothing():
    with pytest.raises(ValueError, match="selects nothing"):
        qkv.zero("z", layer=2, tokens=mask(10))
