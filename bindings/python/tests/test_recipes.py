"""Recipes of papers that are sweeps, against numpy: gu-sink, jin-massive and inactive-heads, with the twenty prompts
that come with qkv, from captured tensors."""
import numpy as np
import pytest

import qkv


@pytest.fixture(scope="module")
def prompts(source):
    return (source / "recipes" / "prompts.txt").read_text().splitlines()


def values(recipe, number):
    """Of one of its tables, after the column that says what a row is."""
    return np.array([row[1:] for row in recipe["tables"][number]["rows"]])


def stacked(result, site, model):
    return np.stack([np.asarray(result[site, l], dtype=np.float64) for l in range(model.info.n_layer)])


def test_gu_sink(model, program, prompts):
    """A head has a sink when the mean weight of the first token over all queries is above 0.3, T = 64."""
    recipe = program.json("recipe", "gu-sink", "--json", "-q")
    want = []
    for text in prompts:
        tokens = model.run(text, capture="logits[-1]").tokens[:64]
        pattern = stacked(model.run(tokens.tolist(), capture="pattern")[0], "pattern", model)
        want.append((pattern[..., 0].mean(-1) > 0.3).mean())
    np.testing.assert_allclose(values(recipe, 0).ravel(), want)
    assert 0 < np.mean(want) < 1


def massive_channels(x, factor=5):
    """x: layers, tokens, heads, channels. How many norms over tokens are above the factor times their mean."""
    norms = np.linalg.norm(x, axis=1)
    return (norms > factor * norms.mean(-1, keepdims=True)).sum(-1)


def test_jin_massive(model, program, prompts):
    recipe = program.json("recipe", "jin-massive", "--json", "-q")
    shared = model.info.n_head // model.info.n_kv_head
    for number, site in enumerate(["q", "k", "q_rot", "k_rot"]):
        counts = [massive_channels(stacked(model.run(text, capture=site)[0], site, model)) for text in prompts]
        want = np.mean(counts, axis=0)
        if site[0] == "k":  # a query head sees the keys of its group
            want = np.repeat(want, shared, axis=-1)
        np.testing.assert_allclose(values(recipe, number), want, err_msg=site)
    assert values(recipe, 0).max() > 0


def test_inactive_heads(model, program, prompts):
    recipe = program.json("recipe", "inactive-heads", "--json", "-q")
    first, norms, ratios = [], [], []
    for text in prompts:
        result = model.run(text, capture=["pattern", "z"])[0]
        first.append(stacked(result, "pattern", model)[..., 0].mean(-1) > 0.8)
        norm = np.linalg.norm(stacked(result, "z", model), axis=-1).mean(1)  # over tokens: layers, heads
        ratios.append(norm / norm.mean(-1, keepdims=True))
        norms.append(ratios[-1] < 0.5)
    np.testing.assert_allclose(values(recipe, 0), np.mean(first, axis=0))
    np.testing.assert_allclose(values(recipe, 1), np.mean(norms, axis=0))
    np.testing.assert_allclose(values(recipe, 2), np.mean(ratios, axis=0), rtol=1e-6)
    assert np.mean(first) > 0 and np.mean(norms) > 0


def test_python_makes_them_too(model, program):
    """The study `effects`, with the same numbers, and with options in place of the recipe's."""
    recipe = program.json("recipe", "mean-ablation", "--json", "-q", "--set", "layers=0-1")
    study = qkv.recipe("mean-ablation", model, layers="0-1")
    assert study.kind == "effects" and study.id == recipe["recipe"]["id"]
    for number, name in enumerate(["table_1", "table_2"]):
        table = study.tables[name]
        assert [list(row) for row in table.tolist()] == recipe["tables"][number]["rows"]
    assert set(study.pictures) >= {"tv", "first_column", "entropy_norm"}
