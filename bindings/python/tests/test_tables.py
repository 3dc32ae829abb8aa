"""Measurements, next tokens and generated text: the program's numbers."""
import csv

import numpy as np
import pytest

import qkv

TEXTS = ["The river runs past the old mill.", "A boat lies at the quay, and nobody is in it."]
EDITS = ["q@3.h1=scale:1e-3", "z@2=zero"]


def variants(edits):
    return [a for e in edits for a in ("--variant", e)]


def test_measure_is_the_programs(model, program, tmp_path):
    metrics = ["sink", "tv", "entropy", "sink_rate", "output_kl", "loss", "massive", "previous"]
    metrics = [m for m in metrics if m in {k.name for k in qkv.metrics()}]
    out = tmp_path / "m.csv"
    program("measure", "-p", TEXTS[0], "-p", TEXTS[1], *variants(EDITS), "--metrics", ",".join(metrics), "-o", out)
    rows = model.measure(TEXTS, EDITS, metrics)
    with open(out) as file:
        theirs = list(csv.DictReader(file))
    assert len(theirs) == len(rows) > 300
    names = {"baseline": 0, **{e: i + 1 for i, e in enumerate(EDITS)}}
    for mine, other in zip(rows, theirs):
        assert mine["metric"] == other["metric"] and mine["variant"] == names[other["variant"]]
        for field in ("prompt", "layer", "head"):
            assert mine[field] == (int(other[field]) if other[field] else -1)
        assert f"{mine['value']:.12g}" == f"{float(other['value']):.12g}"


def test_measure_is_bit_for_bit(model):
    a, b = (model.measure(TEXTS, EDITS, "all") for _ in range(2))
    assert a["value"].tobytes() == b["value"].tobytes() and len(a) > 4000
    other = qkv.open(threads=1).measure(TEXTS, EDITS, "all")
    assert a["value"].tobytes() == other["value"].tobytes()


def test_rows(model):
    rows = model.measure(TEXTS[0], EDITS, ["sink", "tv"], layers=3, heads=[0, 1])
    assert (
        isinstance(rows, qkv.Rows) and rows.shape == (3 * 2 * 2,) and repr(rows).startswith("<qkv.Rows: 12 rows of")
    )
    assert rows.variants == ["", *EDITS] and rows.prompts == [TEXTS[0]] and "formula" not in rows.formulas
    assert set(rows.formulas) == {"sink", "tv"} and rows.changed[0][1] == {EDITS[0]: 10 * 32}
    assert type(rows["value"]) is np.ndarray and rows["value"].dtype == np.float64
    part = rows[(rows["metric"] == "tv") & (rows["variant"] == 1)]
    assert isinstance(part, qkv.Rows) and part.variants == rows.variants and len(part) == 2
    assert rows[0]["metric"] == "sink" and np.sort(rows, order="value").shape == rows.shape
    assert rows.to_dict()["head"][:4] == [0, 0, 1, 1] and "<table>" in rows._repr_html_()
    assert rows["value"]._repr_html_ if hasattr(rows["value"], "_repr_html_") else True
    assert repr(rows[:0]).startswith("<qkv.Rows: 0 rows")


def test_to_pandas(model):
    pandas = pytest.importorskip("pandas")
    frame = model.measure(TEXTS, EDITS, ["sink", "loss"]).to_pandas()
    assert isinstance(frame, pandas.DataFrame) and list(frame.columns) == [
        "prompt",
        "variant",
        "layer",
        "head",
        "metric",
        "value",
    ]
    assert (
        frame[frame.metric == "loss"]["head"].isna().all()
        and frame.groupby(["variant", "metric"]).value.mean().notna().all()
    )


def test_measure_defaults_and_mistakes(model, text):
    rows = model.measure(metrics="sink", layers=0)
    assert len(rows.prompts) == 3 and len(rows) == 12
    assert len(model.measure(model.tokenize(text), metrics="sink")) == 24
    assert len(model.measure([model.tokenize(text), [1, 2, 3]], metrics="sink")) == 48
    with pytest.raises(qkv.Error, match="there is no metric 'snk'|snk"):
        model.measure(text, metrics="snk")
    with pytest.raises(qkv.Error, match="layer 9"):
        model.measure(text, metrics="sink", layers=9)
    seen = []
    model.measure(TEXTS, EDITS, "sink", progress=lambda *s: seen.append(s))
    assert seen[0][0] == "prompts" and max(s[1] for s in seen) > 1 and seen[-1][2] == 2


def test_next_is_the_programs(model, program):
    prompt = "The river runs to the"
    theirs = program.json(
        "next", "-p", prompt, *variants(EDITS), "--top", 5, "--of", " sea", "--diff", " sea/ land", "--json"
    )
    ours = model.next(prompt, EDITS, top=5, of=[" sea"], diff=[(" sea", " land")])
    assert ours.position == theirs["prompts"][0]["position"]
    for mine, of, other, v in zip(ours, map(ours.of, range(3)), theirs["prompts"][0]["variants"], range(3)):
        assert ours.kl[v] == other["kl"] and ours.diff[v][0] == other["diff"][0]["difference"]
        for rows, lines in ((mine, other["top"]), (of, other["of"])):
            assert len(rows) == len(lines)
            for row, line in zip(rows, lines):
                for field, value in line.items():
                    assert row[field] == value, field
    assert ours.changed[2] == {"z@2=zero": 7 * 128} and ours.edits == ["", *EDITS]


def test_next_every(model, program):
    theirs = program.json("next", "-p", TEXTS[0], *variants(EDITS), "--all", "--json")["prompts"][0]["variants"]
    ours = model.next(TEXTS[0], EDITS, every=True)
    for v, other in enumerate(theirs):
        assert ours.mean_loss[v] == other["mean_loss"]
        assert [r["loss"] for r in ours[v]] == [line["loss"] for line in other["losses"]]
    assert ours.position == -1 and "losses" in repr(ours) and str(ours).startswith("unedited\n  1 ")


def test_next_mistakes(model):
    with pytest.raises(qkv.Error, match="`at`"):
        model.next("The river", at=50)
    with pytest.raises(qkv.Error):
        model.next("The river", of=["no single token"])
    with pytest.raises(IndexError):
        model.next("The river")[1]
    assert len(model.next("The river", of=" sea").of(0)) == 1 and len(model.next("The river", top=0)[0]) == 0
    assert "<table>" in model.next("The river", "q@1=zero")._repr_html_()
    with pytest.raises(qkv.Error, match="equal lengths"):
        model.next("The river", "q@1=patch:a", sources={"a": "The"})
    one, other = "The old river", "The new river"
    n = model.next(one, "resid_pre@0=patch:a", sources={"a": other}, top=1)
    assert n[1]["logit"][0] == model.next(other, top=1)[0]["logit"][0]


@pytest.mark.parametrize(
    "drawing, options",
    [({}, []), (dict(temperature=0.8, top_k=20, seed=7), ["--temperature", 0.8, "--top-k", 20, "--seed", 7])],
)
def test_generate_is_the_programs(model, program, drawing, options):
    prompt = "The river runs to the sea."
    theirs = program.json("generate", "-p", prompt, "-n", 12, *variants(EDITS), *options, "--json")[0]["variants"]
    g = model.generate(prompt, EDITS, n=12, **drawing)
    steps = list(g)
    for v, other in enumerate(theirs):
        assert g.tokens[v] == other["ids"] and g.texts[v] == other["text"] and g.finish[v] == other["finish"]
        assert g.log_probabilities[v] == other["log_probabilities"]
        assert "".join(s.text[v] or "" for s in steps) == other["text"]


def test_generation(model):
    g = model.generate("The river runs to the sea.", "z@3=zero", n=6)
    assert len(g) == 0 and g.finish == [None, None] and "0 of at most 6" in repr(g)
    step = next(g)
    logits = step.logits(1)
    assert logits.shape == (4096,) and logits.argmax() == step.tokens[1] and step.index == 0
    next(g)
    with pytest.raises(qkv.Error, match="until the next step"):
        step.logits()
    rest = list(g)
    assert len(rest) == 4 and list(g) == [] and g.finish == ["length", "length"] and g.changed[1]["z@3=zero"] > 0
    r = g.run(["pattern@3", "logits[-1]"])
    assert len(r) == 2 and len(r.tokens) == 9 + 5 and r[1]["pattern", 3].shape == (4, 14, 14)
    assert len(g.run("pattern@3", variant=0)) == 1
    assert "unedited: And" in str(g).replace("  ", " ") and "baseline" in g.explain()


def test_generation_ends(model):
    assert list(model.generate("The river", n=0)) == []
    g = model.generate("The river runs to the sea.", n=30, stop=" LORD")
    list(g)
    assert g.finish == ["stop"] and g.texts == [" And the"]
    for bad in (dict(n=-1), dict(n=100000), dict(temperature=-1), dict(edit_tokens="old"), dict(top_p=2)):
        with pytest.raises(qkv.Error):
            model.generate("The river", **bad)
    with pytest.raises(qkv.Error, match="recompute"):
        model.generate("The river", "q@1=mean:token", n=2)
    assert len(list(model.generate("The river", "q@1=mean:token", n=2, recompute=True))) == 2
    a, b = (model.generate("The river", "q@1=zero", n=3, edit_tokens=w) for w in ("prompt", "new"))
    list(a), list(b)
    assert a.changed[1] != b.changed[1]


def test_choose_head(model, text):
    layer, head = model.choose_head(text)
    sinks = model.measure(text, metrics="sink")["value"].reshape(6, 4)
    assert (layer, head) == (5, 0) and model.choose_head(text, layer=2)[0] == 2 and sinks.max() == sinks[layer, head]


def test_rows_keep_their_meaning(model):
    import copy
    import pickle

    rows = model.measure("The river runs.", "q@3=zero", "sink")
    for same in (pickle.loads(pickle.dumps(rows)), copy.copy(rows), copy.deepcopy(rows)):
        assert (same == rows).all() and same.variants == rows.variants == ["", "q@3=zero"]
        assert same.prompts == rows.prompts and same.formulas == rows.formulas and same.changed == rows.changed


def test_metrics_that_a_sweep_has_not(model):
    sweep = model.sweep(["The river runs."], targets="q", epsilon=[0.5], metrics="tv")
    for metric in ("sink", "nothing"):
        with pytest.raises(qkv.MissingError, match="there are tv"):
            sweep.rows(metric)
