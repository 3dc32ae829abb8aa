"""The circuits of heads that `qkv weights` prints, against numpy on the same weights, written out in full."""
import numpy as np
import pytest

KINDS = {"ov": "copying", "qk": "matching"}


def rows(tables, name):
    table = next(t for t in tables["tables"] if t["name"] == name)
    return [dict(zip(table["columns"], row)) for row in table["rows"]]


class Folded:
    """The default model's matrices (RMS norms, two query heads for each key/value head), as columns take them."""

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


# ---- qkv roles ----

THRESHOLDS = {"name_mover": 0.3, "induction": 0.4, "duplicate": 0.4, "previous": 0.4, "self": 0.4, "sink": 0.5}
PAIRS = [
    ("The dog met the cat. The cat ran to the door and the dog saw the", " cat"),
    ("An old man and a dog sat by the river, and the man gave it to the", " dog"),
    ("The town by the sea has a mill. The river runs to the", " sea"),
]


def patterns(model, tokens):
    run = model.run(tokens, capture="pattern")[0]
    return np.stack([np.asarray(run["pattern", i], dtype=np.float64) for i in range(model.info.n_layer)])


def rms(x, weight, eps=1e-5):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * weight


@pytest.fixture(scope="module")
def labelled(program, tmp_path_factory):
    """The tables of `qkv roles` on two texts, short random repeats and pairs."""
    folder = tmp_path_factory.mktemp("heads")
    pairs = folder / "pairs.tsv"
    pairs.write_text("".join(f"{prompt}\t{answer}\n" for prompt, answer in PAIRS))
    texts = ["The river runs past the old mill.", "A dog and a cat sat by the door of the house."]
    given = [a for t in texts for a in ("-p", t)]
    how = ["--length", 12, "--sequences", 3, "--seed", 7, "--pairs", pairs]
    return texts, program.json("roles", *given, *how, "--json")


def by_head(model, tables, column):
    shape = (model.info.n_layer, model.info.n_head)
    return np.array([row[column] for row in rows(tables, "heads")]).reshape(shape)


def test_repeats(model, labelled):
    texts, tables = labelled
    sequences = {}
    for row in rows(tables, "repeats"):
        sequences.setdefault(row["sequence"], []).append(int(row["token"]))
    assert len(sequences) == 3 and len({tuple(s) for s in sequences.values()}) == 3
    length, induction, duplicate = 12, 0, 0
    for tokens in sequences.values():
        start = len(tokens) - 2 * length
        assert tokens[start : start + length] == tokens[start + length :] and start in (0, 1)
        assert len(set(tokens[start:])) == length
        a = patterns(model, tokens)
        second = np.arange(start + length, start + 2 * length)
        induction = induction + a[:, :, second, second - (length - 1)].mean(-1) / 3
        duplicate = duplicate + a[:, :, second, second - length].mean(-1) / 3
    assert by_head(model, tables, "induction") == pytest.approx(induction, abs=1e-6)
    assert by_head(model, tables, "duplicate") == pytest.approx(duplicate, abs=1e-6)


def test_texts(model, labelled):
    texts, tables = labelled
    found = {"previous": 0, "self": 0, "sink": 0}
    for text in texts:
        a = patterns(model, text)
        i = np.arange(1, a.shape[-1])
        for name, keys in {"previous": i - 1, "self": i, "sink": 0 * i}.items():
            found[name] = found[name] + a[:, :, i, keys].mean(-1) / len(texts)
    for name, wanted in found.items():
        assert by_head(model, tables, name) == pytest.approx(wanted, abs=1e-6)


def test_names(model, labelled):
    texts, tables = labelled
    info, w = model.info, model.weights
    shape = (info.n_layer, info.n_head)
    moved, attention, copying = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    u, norm = np.asarray(w["output"], dtype=np.float64), np.asarray(w["output_norm"], dtype=np.float64)
    for prompt, answer in PAIRS:
        tokens = model.tokenize(prompt)
        token = model.tokenize(answer, special=False)[-1]
        places = np.flatnonzero(tokens == token)
        run = model.run(prompt, capture=["pattern", "v"])[0]
        assert len(places)
        for layer in range(info.n_layer):
            o = np.asarray(w["o", layer], dtype=np.float64)
            a, v = np.asarray(run["pattern", layer]), np.asarray(run["v", layer], dtype=np.float64)
            for head in range(info.n_head):
                part = o[:, head * info.head_dim : (head + 1) * info.head_dim]
                for p in places:
                    value = v.reshape(len(tokens), info.n_kv_head, info.head_dim)[p, head * info.n_kv_head // info.n_head]
                    logits = u @ rms(part @ value, norm)
                    copied = (logits > logits[token]).sum() < 5
                    attention[layer, head] += a[head, -1, p] / len(PAIRS)
                    copying[layer, head] += copied / len(places) / len(PAIRS)
                    moved[layer, head] += copied * a[head, -1, p] / len(PAIRS)
    assert by_head(model, tables, "name_attention") == pytest.approx(attention, abs=1e-6)
    assert by_head(model, tables, "name_copying") == pytest.approx(copying, abs=1e-6)
    assert by_head(model, tables, "name_mover") == pytest.approx(moved, abs=1e-6)
    assert copying.max() > 0


def test_labels(model, labelled):
    texts, tables = labelled
    seen = set()
    for row in rows(tables, "heads"):
        reached = [name for name, threshold in THRESHOLDS.items() if row[name] >= threshold]
        assert row["label"] == (reached[0] if reached else "none")
        seen.add(row["label"])
    assert {"induction", "previous", "none"} <= seen
    listed = [(row["label"], row["layer"], row["head"]) for row in rows(tables, "top")]
    assert len(listed) == sum(row["label"] != "none" for row in rows(tables, "heads"))
