"""`qkv compare` against numpy: every number of its tables once more, from tensors that both models' runs capture."""
import numpy as np
import pytest

import qkv

TEXTS = ["The river runs past the old mill and down to the sea.", "In the evening the lamps are lit.", "Snow"]


def divergence(p, q):
    """KL(p || q) along the last axis."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p > 0, p * np.log(p / q), 0).sum(-1)


def rows_apart(a, b, distance):
    """The distance of each row of two maps."""
    if distance == "tv":
        return np.abs(a - b).sum(-1) / 2
    if distance == "js":
        return np.maximum(0, (divergence(a, (a + b) / 2) + divergence(b, (a + b) / 2)) / 2)
    if distance == "kl":
        return np.maximum(0, divergence(a, b))
    return np.abs(a - b).max(-1)


def softmax(logits):
    e = np.exp(logits - logits.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def degrees(a, b):
    cosine = (a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)
    return np.degrees(np.arccos(np.minimum(cosine, 1)))


def recomputed(first, second, distance, edits=()):
    """What compare should say."""
    rows, angles, errors, kl, last, flips, losses = [], [], [], [], [], [], ([], [])
    for text in TEXTS:
        capture = ["pattern", "resid_post", "logits"]
        run = first.run(text, capture=capture)
        a, b = run[0], second.run(text, list(edits), capture)[-1]
        tokens = run.tokens
        layers = range(first.info.n_layer)
        double = lambda r, site: np.stack([r[site, l] for l in layers]).astype(np.float64)
        rows.append(rows_apart(double(a, "pattern"), double(b, "pattern"), distance))
        x, y = double(a, "resid_post"), double(b, "resid_post")
        angles.append(degrees(x, y))
        errors.append(np.linalg.norm(y - x, axis=-1) / np.linalg.norm(x, axis=-1))
        p, q = (softmax(np.asarray(r["logits"], dtype=np.float64)) for r in (a, b))
        kl.append(divergence(p, q))
        last.append(kl[-1][-1])
        flips.append(p.argmax(-1) != q.argmax(-1))
        for m, of in enumerate((p, q)):
            losses[m].append(-np.log(of[np.arange(len(tokens) - 1), tokens[1:]]))
    rows = np.concatenate(rows, -1)
    return {"heads": rows.max(-1) if distance == "max" else rows.mean(-1), "angle": np.concatenate(angles, -1).mean(-1),
            "error": np.concatenate(errors, -1).mean(-1), "kl": np.concatenate(kl).mean(), "kl_last": np.mean(last),
            "flips": np.concatenate(flips).mean(), "loss": [np.concatenate(l).mean() for l in losses]}


def table(study, name):
    """The rows of one of its tables, as dicts."""
    found = next(t for t in study["tables"] if t["name"] == name)
    return [dict(zip(found["columns"], row)) for row in found["rows"]]


@pytest.fixture(scope="module")
def small(program, source, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "small.gguf"
    program("convert", source / "models" / "default.gguf", "-o", path, "--type", "q4_0")
    return path


@pytest.mark.parametrize("distance", ["tv", "js", "kl", "max"])
@pytest.mark.parametrize("edit", [None, "q@2.h1=zero + z@4.h0=scale:0.5"])
def test_every_number(program, source, small, distance, edit):
    path = source / "models" / "default.gguf"
    prompts = [a for text in TEXTS for a in ("-p", text)]
    edits = ["--edit", edit] if edit else []
    study = program.json("compare", "-m", path, "-m", small, *prompts, "--distance", distance, *edits, "--json")
    want = recomputed(qkv.open(path), qkv.open(small), distance, [edit] if edit else [])
    heads = np.full(want["heads"].shape, np.nan)
    for row in table(study, "heads"):
        heads[row["layer"], row["head"]] = row["distance"]
    np.testing.assert_allclose(heads, want["heads"], rtol=1e-6, atol=1e-9)
    ranking = table(study, "ranking")
    assert [r["distance"] for r in ranking] == sorted(heads.ravel(), reverse=True)[:20]
    layers = table(study, "layers")
    np.testing.assert_allclose([r["angle"] for r in layers], want["angle"], rtol=1e-6)
    np.testing.assert_allclose([r["error"] for r in layers], want["error"], rtol=1e-6)
    summary = {r["what"]: r for r in table(study, "summary")}
    loss, perplexity = summary["loss (nats per token)"], summary["perplexity"]
    np.testing.assert_allclose([loss["first"], loss["second"]], want["loss"], rtol=1e-6)
    np.testing.assert_allclose([perplexity["first"], perplexity["second"]], np.exp(want["loss"]), rtol=1e-5)
    for name, key in (("output, KL, mean (nats)", "kl"), ("output, KL, last token (nats)", "kl_last"),
                      ("share of positions with another top token", "flips")):
        np.testing.assert_allclose(summary[name]["difference"], want[key], rtol=1e-6)
