"""The recipe massive-activations against numpy: finds, sizes and losses once more, from captured tensors."""
import numpy as np
import pytest

TEXTS = ["The river runs past the old mill.", "In the evening the lamps are lit.", "Snow fell on the hills."]
SIZE, RATIO = 60, 40


def losses(model, text, edits):
    """The sum of -ln p of the tokens that follow, and how many they are."""
    run = model.run(text, [edits] if edits else [], "logits")
    logits = np.asarray(run[-1]["logits"], dtype=np.float64)
    logits -= logits.max(-1, keepdims=True)
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return -log_p[np.arange(len(run.tokens) - 1), run.tokens[1:]].sum(), len(run.tokens) - 1


def look(model, text, size, ratio):
    """Per layer the states, their median size, and (position, channel, value) of what is massive."""
    run = model.run(text, capture="resid_post")
    out = []
    for layer in range(model.info.n_layer):
        x = np.asarray(run[0]["resid_post", layer], dtype=np.float64)
        median = np.median(np.abs(x))
        found = np.argwhere((np.abs(x) > size) & (np.abs(x) > ratio * median))
        out.append((x, median, [(int(t), int(c), x[t, c]) for t, c in found]))
    return out, run.tokens


def controls(x, median, found):
    """As many channels of the same tokens, those whose size is nearest to the median."""
    out = []
    for t, _, _ in found:
        taken = [c for s, c, _ in found if s == t] + [c for s, c in out if s == t]
        distance = np.abs(np.abs(x[t]) - median)
        distance[taken] = np.inf
        out.append((t, int(distance.argmin())))
    return out


def table(study, name):
    found = next(t for t in study["tables"] if t["name"] == name)
    return [dict(zip(found["columns"], row)) for row in found["rows"]]


@pytest.mark.parametrize("layer", [None, 4])
def test_every_number(model, program, layer):
    prompts = [a for text in TEXTS for a in ("-p", text)]
    given = ["--set", f"layer={layer}"] if layer is not None else []
    study = program.json("recipe", "massive-activations", *prompts, "--set", f"size={SIZE}", "--set", f"ratio={RATIO}",
                         *given, "--json")
    looks = [look(model, text, SIZE, RATIO)[0] for text in TEXTS]
    layers = range(model.info.n_layer)
    for row, l in zip(table(study, "layers"), layers):
        sizes = [np.sort(np.abs(of[l][0]).ravel())[::-1] for of in looks]
        top = np.mean([s[:3] for s in sizes], axis=0)
        np.testing.assert_allclose([row["top_1"], row["top_2"], row["top_3"]], top, rtol=1e-6)
        np.testing.assert_allclose(row["median"], np.mean([np.median(s) for s in sizes]), rtol=1e-6)
        assert row["massive"] == pytest.approx(np.mean([len(of[l][2]) for of in looks]))
    finds = {(c, t == 0, l) for of in looks for l in layers for t, c, _ in of[l][2]}
    rows = table(study, "activations")
    assert {(r["channel"], r["position"] == 0) for r in rows} == {(c, first) for c, first, _ in finds}
    at = min(l for _, _, l in finds) if layer is None else layer
    for r in rows:
        mine = [l for c, first, l in finds if c == r["channel"] and first == (r["position"] == 0)]
        assert r["first_layer"] >= min(mine) and r["last_layer"] <= max(mine)
        values = [v for of in looks for t, c, v in of[at][2] if c == r["channel"] and (t == 0) == (r["position"] == 0)]
        assert r["mean"] == pytest.approx(np.mean(values), rel=1e-6) if values else r["mean"] is None

    means = {key: np.mean([v for of in looks for t, c, v in of[at][2] if (c, t == 0) == key])
             for key in {(c, t == 0) for of in looks for t, c, _ in of[at][2]}}
    sums, counts = np.zeros(4), 0
    for text, of in zip(TEXTS, looks):
        x, median, found = of[at]
        edits = [None, [(t, c, 0) for t, c, _ in found], [(t, c, np.float32(means[c, t == 0])) for t, c, _ in found],
                 [(t, c, 0) for t, c in controls(x, median, found)]]
        for i, edit in enumerate(edits):
            written = " + ".join(f"resid_post@{at}[{t}]{{{c}}}=set:{v!s}" for t, c, v in edit or [])
            loss, n = losses(model, text, written)
            sums[i] += loss
        counts += n
    perplexities = table(study, "perplexity")
    np.testing.assert_allclose([r["loss"] for r in perplexities], sums / counts, rtol=1e-6)
    np.testing.assert_allclose([r["perplexity"] for r in perplexities], np.exp(sums / counts), rtol=1e-5)
    assert perplexities[1]["loss"] > perplexities[0]["loss"]  # they matter


def test_none(program):
    study = program.json("recipe", "massive-activations", "-p", TEXTS[0], "-p", TEXTS[1], "--json")
    assert table(study, "activations") == [] and len(table(study, "perplexity")) == 1
    assert any("no activation is above 100 and above 1000 times" in w for w in study["warnings"])
