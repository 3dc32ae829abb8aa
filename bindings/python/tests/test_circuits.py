"""The circuits of heads that `qkv weights` prints, against numpy on the same weights, written out in full."""
import numpy as np
import pytest

KINDS = {"ov": "copying", "qk": "matching"}


def rows(tables, name):
    table = next(t for t in tables["tables"] if t["name"] == name)
    return [dict(zip(table["columns"], row)) for row in table["rows"]]


class Folded:
    """The default model's matrices (RMS norms, one key/value head for each query head), as columns take them."""

    def __init__(self, model, fold):
        self.weights, self.fold = model.weights, fold
        self.d = model.info.head_dim
        self.group = model.info.n_head // model.info.n_kv_head

    def read(self, name, layer):
        w = np.asarray(self.weights[name, layer], dtype=np.float64)
        return w * np.asarray(self.weights["attn_norm", layer], dtype=np.float64) if self.fold and name != "o" else w

    def head(self, name, layer, head):
        return self.read(name, layer)[head * self.d : (head + 1) * self.d]

    def ov(self, layer, head):
        o = self.read("o", layer)[:, head * self.d : (head + 1) * self.d]
        return o @ self.head("v", layer, head // self.group)

    def qk(self, layer, head):
        return self.head("q", layer, head).T @ self.head("k", layer, head // self.group)

    @property
    def embedding(self):
        return np.asarray(self.weights["token_embd"], dtype=np.float64).T

    @property
    def unembedding(self):
        u = np.asarray(self.weights["output"], dtype=np.float64)
        return u * np.asarray(self.weights["output_norm"], dtype=np.float64) if self.fold else u


def score(eigen):
    return eigen.sum().real / np.abs(eigen).sum()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fold", [True, False])
def test_heads(model, program, kind, fold):
    tables = program.json("weights", kind, "--json", *([] if fold else ["--raw"]))
    folded = Folded(model, fold)
    heads = rows(tables, "heads")
    assert len(heads) == model.info.n_layer * model.info.n_head
    ends = {"ov": (folded.unembedding, folded.embedding), "qk": (folded.embedding.T, folded.embedding)}[kind]
    inner = ends[1] @ ends[0]  # the eigenvalues of A W B are those of W (B A)
    for row in heads:
        w = getattr(folded, kind)(row["layer"], row["head"])
        s = np.linalg.svd(w, compute_uv=False)[: folded.d]
        p = s / s.sum()
        assert row["norm"] == pytest.approx(np.linalg.norm(w), rel=1e-5)
        assert row["largest"] == pytest.approx(s[0], rel=1e-5)
        assert row["effective_rank"] == pytest.approx(np.exp(-(p * np.log(p)).sum()), rel=1e-4)
        assert row[KINDS[kind]] == pytest.approx(score(np.linalg.eigvals(w @ inner)), abs=1e-4)
        assert row["stream_" + KINDS[kind]] == pytest.approx(score(np.linalg.eigvals(w)), abs=1e-4)


def test_composition(model, program):
    folded = Folded(model, True)
    pairs = rows(program.json("weights", "composition", "--json", "--top", 1000000), "pairs")
    layers, heads = model.info.n_layer, model.info.n_head
    assert len(pairs) == 3 * layers * (layers - 1) // 2 * heads**2
    norm = np.linalg.norm
    for row in pairs[::7]:
        ov = folded.ov(row["layer"], row["head"])
        later = (row["later_layer"], row["later_head"])
        reader = {"Q": folded.qk(*later).T, "K": folded.qk(*later), "V": folded.ov(*later)}[row["composition"]]
        assert row["score"] == pytest.approx(norm(reader @ ov) / norm(reader) / norm(ov), rel=1e-4)
        assert row["layer"] < row["later_layer"]


def test_random_matrices_compose_by_one_over_root_d():
    rng = np.random.default_rng(1)
    width, d = 256, 32
    scores = []
    for _ in range(20):
        a, b = (rng.normal(size=(width, d)) @ rng.normal(size=(d, width)) for _ in range(2))
        scores.append(np.linalg.norm(a @ b) / np.linalg.norm(a) / np.linalg.norm(b))
    assert np.mean(scores) == pytest.approx(1 / np.sqrt(width), rel=0.02)
