"""Measurements, next tokens and generated text: the program's numbers."""
import csv

import numpy as np
import pytest

import qkv

TEXTS = ["The river runs past the old mill.", "A boat lies at the quay, and nobody is in it."]
EDITS = ["q@3.h1=scale:1e-3", "z@2=zero"]


def variants(edits):
    return [a for e in edits for a in ("--variant", e)]


def rows_of(study, name, **wanted):
    """The rows of a study's table as dicts, those whose columns have the values that are wanted."""
    (table,) = [t for t in study["tables"] if t["name"] == name]
    rows = [dict(zip(table["columns"], row)) for row in table["rows"]]
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


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
        assert f"{mine['value']:.12g}" == f"{float(other['value'] or 'nan'):.12g}"


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
    fields = ("token", "text", "rank", "rank_change", "logit", "logit_change", "probability", "probability_change")
    for mine, of, name, v in zip(ours, map(ours.of, range(3)), ["baseline", *EDITS], range(3)):
        (diff,) = rows_of(theirs, "tokens", variant=name, list="diff")
        assert ours.position == diff["position"] and ours.kl[v] == diff["kl"] and ours.diff[v][0] == diff["logit"]
        for rows, kind in ((mine, "top"), (of, "of")):
            lines = rows_of(theirs, "tokens", variant=name, list=kind)
            assert len(rows) == len(lines) > 0
            for row, line in zip(rows, lines):
                for field in fields:
                    assert row[field] == line[field], field
    assert ours.changed[2] == {"z@2=zero": 7 * 128} and ours.edits == ["", *EDITS]


def test_answers_are_the_programs(model, program):
    prompt, texts = "The river runs to the", [" wide blue sea", " land"]
    asked = [word for text in texts for word in ("--answer", text)]
    theirs = program.json("next", "-p", prompt, *variants(EDITS), *asked, "--json")
    ours = model.next(prompt, EDITS, answer=texts)
    by_ids = model.next(prompt, EDITS, answer=[model.find_answer(text) for text in texts])
    for v, name in enumerate(["baseline", *EDITS]):
        rows, lines = ours.answers(v), rows_of(theirs, "tokens", variant=name, list="answer")
        assert len(lines) == 2
        assert rows["text"].tolist() == texts and rows["n_tokens"].tolist() == [3, 1]
        assert rows["log_probability"].tolist() == by_ids.answers(v)["log_probability"].tolist()
        for row, line in zip(rows, lines):
            for field in ("log_probability", "log_probability_change", "probability", "probability_change"):
                assert row[field] == line[field], field
    every = model.next(prompt + texts[0], every=True)
    assert abs(every[0]["loss"][-3:].sum() + ours.answers(0)["log_probability"][0]) < 1e-5
    with pytest.warns(UserWarning, match="' sea' is taken"):
        spaced = model.next(prompt, of="sea", top=0)
    assert spaced.of(0)["text"].tolist() == [" sea"]


def test_next_every(model, program):
    theirs = program.json("next", "-p", TEXTS[0], *variants(EDITS), "--all", "--json")
    ours = model.next(TEXTS[0], EDITS, every=True)
    for v, name in enumerate(["baseline", *EDITS]):
        assert ours.mean_loss[v] == rows_of(theirs, "variants", variant=name)[0]["mean_loss"]
        lines = rows_of(theirs, "losses", variant=name)
        assert [r["loss"] for r in ours[v]] == [line["loss"] for line in lines] != []
    assert ours.position == -1 and "losses" in repr(ours) and str(ours).startswith("unedited\n  1 ")


def test_next_mistakes(model):
    with pytest.raises(qkv.Error, match="'at'"):
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


def test_next_pairs(model):
    """One pair needs no list; what is not a pair, or not a token, is refused."""
    prompt, a, b = "The river runs to the", " sea", " land"
    ids = model.find_token(a), model.find_token(b)
    expected = model.next(prompt, "z@3=zero", diff=[(a, b)]).diff
    assert expected.shape == (2, 1)
    for same in ((a, b), [a, b], ids, np.array(ids), [ids], np.array([ids]), ((a, ids[1]),)):
        assert (model.next(prompt, "z@3=zero", diff=same).diff == expected).all()
    assert model.next(prompt, diff=[(a, b), (b, a)]).diff.tolist() == [[expected[0, 0], -expected[0, 0]]]
    assert model.next(prompt, diff=()).diff.shape == model.next(prompt, diff=[]).diff.shape == (1, 0)
    with pytest.warns(UserWarning, match="is taken as"):  # "or" is a token, too, and "sea" is none
        assert model.next(prompt, diff=("sea", "or")).diff == model.next(prompt, diff=(" sea", " or")).diff
    with pytest.raises(qkv.Error, match='as in " sea/ing"'):
        model.next(prompt, diff=("sea", "ing"))
    with pytest.warns(UserWarning, match="without a space; with one it is written ' wide sea'"):
        model.next(prompt, answer="wide sea")
    wrong = [a, (a,), (a, b, a), [(1, 2, 3)], [(1,)], [(a, b), a], (1.5, 2.5), [(1.5, 2)], {a: b}, 3, None, (True, False)]
    for diff in wrong:
        with pytest.raises(TypeError):
            model.next(prompt, diff=diff)
    for of in (1.5, [1.5], [True], None, {a: b}, b"sea", [[1, 2]]):
        with pytest.raises(TypeError):
            model.next(prompt, of=of)
    assert [len(model.next(prompt, of=of).of(0)) for of in (np.int64(5), 5, np.array([5, 6]), (a, b))] == [1, 1, 2, 2]
    for beyond in (-1, 4096, 2**40):
        for options in (dict(of=beyond), dict(diff=(beyond, 1))):
            with pytest.raises(qkv.Error, match="0 to 4095"):
                model.next(prompt, **options)


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
    assert str(g).endswith("\n(0 of at most 6 tokens so far; iterate to continue)"), "no text yet is not an empty text"
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
    assert "unedited: And" in str(g).replace("  ", " ") and "iterate" not in str(g) and "baseline" in g.explain()


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


def test_one_variant_ends_before_the_others(model):
    """The unedited text has the word that ends a text; the others continue as they do alone."""
    prompt, edits = "The river runs to the sea.", ["z@*=zero", "q@3=zero"]
    free = model.generate(prompt, edits, n=8)
    list(free)
    g = model.generate(prompt, edits, n=8, stop=" LORD")
    steps = list(g)
    assert g.texts[0] == " And the" and g.finish[0] == "stop" and len(g.tokens[0]) == 3
    assert " LORD" not in free.texts[1] and g.texts[1] == free.texts[1] and len(steps) == 8
    assert steps[3].tokens[0] is None and steps[3].text[0] is None and steps[3].tokens[1] == free.tokens[1][3]
    with pytest.raises(qkv.Error, match="has ended"):
        steps[-1].logits(0)
    assert steps[-1].logits(1).argmax() == g.tokens[1][-1]


def test_every_name_of_the_library_is_there(source):
    """A macro of a header is not a name of the binding: it would fail when it is first used."""
    import re

    from qkv._core import lib

    for path in (source / "bindings" / "python" / "qkv").glob("*.py"):
        for name in re.findall(r"(?<![\w.])lib\.(\w+)", path.read_text()):
            assert hasattr(lib, name), f"{path.name}: {name}"


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
