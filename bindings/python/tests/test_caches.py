"""The recipes of small caches against numpy: a forward pass of its own from the weights, in which every query
looks at a cache that is kept token by token, as the papers' programs do."""
import numpy as np
import pytest

LENGTH = 48


class Llama:
    """The default model in double precision, with a function in the place of attention."""

    def __init__(self, model):
        info, w = model.info, model.weights
        self.n_layer, self.n_head, self.width = info.n_layer, info.n_head, info.head_dim
        self.shared = info.n_head // info.n_kv_head
        names = ("attn_norm", "q", "k", "v", "o", "ffn_norm", "gate", "up", "down")
        self.layers = [{n: np.asarray(w[n, i], np.float64) for n in names} for i in range(info.n_layer)]
        self.embed, self.norm, self.out = (np.asarray(w[n], np.float64) for n in ("token_embd", "output_norm", "output"))

    @staticmethod
    def normed(x, weight):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weight

    def turn(self, x, positions):
        """RoPE of [..., heads, width], pairs being halves; a position for all heads of a row."""
        half = self.width // 2
        angle = np.asarray(positions, np.float64)[..., None, None] * 10000.0 ** (-np.arange(half) / half)
        a, b = x[..., :half], x[..., half:]
        return np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], -1)

    def look(self, query, keys, values):
        """One query at some keys: what it gets, and the weights by head."""
        keys, values = (np.repeat(x, self.shared, axis=1) for x in (keys, values))
        score = np.einsum("hd,jhd->hj", query, keys) / np.sqrt(self.width)
        weight = np.exp(score - score.max(-1, keepdims=True))
        weight /= weight.sum(-1, keepdims=True)
        return np.einsum("hj,jhd->hd", weight, values), weight

    def losses(self, tokens, attend):
        x, n = self.embed[tokens], len(tokens)
        for w in self.layers:
            h = self.normed(x, w["attn_norm"])
            q, k, v = ((h @ w[s].T).reshape(n, -1, self.width) for s in "qkv")
            x = x + attend(self, q, k, v).reshape(n, -1) @ w["o"].T
            h = self.normed(x, w["ffn_norm"])
            gate = h @ w["gate"].T
            x = x + (gate / (1 + np.exp(-gate)) * (h @ w["up"].T)) @ w["down"].T
        logits = self.normed(x, self.norm) @ self.out.T
        logits -= logits.max(-1, keepdims=True)
        log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        return -log_p[np.arange(n - 1), tokens[1:]]


@pytest.fixture(scope="module")
def llama(model):
    return Llama(model)


@pytest.fixture(scope="module")
def texts(source):
    return (source / "recipes" / "prompts.txt").read_text().splitlines()[:3]


@pytest.fixture(scope="module")
def check(model, llama, texts, program):
    """The perplexities of a recipe, one for each setting, against those of numpy."""
    tokens = [np.asarray(model.run(t, capture="logits[-1]").tokens[:LENGTH]) for t in texts]
    prompts = [a for t in texts for a in ("-p", t)]

    def compare(recipe, options, attend, first=1):
        given = [a for o in (*options, "only_all=true", f"length={LENGTH}") for a in ("--set", o)]
        study = program.json("recipe", recipe, *prompts, *given, "--json", "-q")
        rows = next(t for t in study["tables"] if t["name"] == "settings")["rows"][1:]
        assert len(rows) > 1
        for row in rows:
            of = attend(int(row[0]))
            want = np.concatenate([llama.losses(t, of)[first - 1:] for t in tokens]).mean()
            assert row[1] == pytest.approx(want, rel=1e-6), row[0]

    return compare


def streaming(sinks, recent, in_cache):
    """A list of tokens: the first ones and the last ones; keys are turned by their place in it, or in the text."""

    def attend(m, q, k, v):
        out, cache = np.empty_like(q), []
        for i in range(len(q)):
            cache.append(i)
            if len(cache) > sinks + recent:
                del cache[sinks]
            places = np.arange(len(cache)) if in_cache else np.array(cache)
            out[i] = m.look(m.turn(q[i], places[-1]), m.turn(k[cache], places), v[cache])[0]
        return out

    return attend


@pytest.mark.parametrize("positions", ["paper", "cache", "text"])
def test_streaming_llm(check, positions):
    check("streaming-llm", ["sinks=0,1,4", "recent=12", f"positions={positions}"],
          lambda sinks: streaming(sinks, 12, positions != "text"))


def turned(attend_to):
    """Attention head by head, with keys at their places in the text: attend_to(m, i, h, weigh) says what query i
    of head h sees, and may ask for the weights over any keys."""

    def attend(m, q, k, v):
        places = np.arange(len(q))
        q, k = m.turn(q, places), m.turn(k, places)
        out, memory = np.empty_like(q), {}
        for h in range(m.n_head):
            g, memory["head"] = h // m.shared, {}
            for i in range(len(q)):
                def weigh(keys):
                    score = k[keys, g] @ q[i, h] / np.sqrt(m.width)
                    weight = np.exp(score - score.max())
                    return weight / weight.sum()
                keys = attend_to(i, weigh, memory["head"])
                out[i, h] = weigh(keys) @ v[keys, g]
        return out

    return attend


def h2o(budget, recent, prompt=0):
    """What is in the cache has a sum; beyond the budget the smallest goes, of those that are not recent."""

    def see(i, weigh, sums):
        sums[i] = 0.0
        while i >= prompt and len(sums) > budget:
            del sums[min((j for j in sums if j <= i - recent), key=sums.get)]
        keys = sorted(sums)
        for j, w in zip(keys, weigh(keys)):
            sums[j] += w
        return keys

    return turned(see)


@pytest.mark.parametrize("prompt", [0, 20])
def test_h2o(check, prompt):
    check("h2o", ["budgets=8,16", f"prompt={prompt}"], lambda budget: h2o(budget, budget // 2, prompt), prompt + 1)


def h2o_evaluation(budget, recent):
    """heavy - 1 tokens of the largest sums, the query's own and the recent ones. Sums are of weights without
    dropping, and a token that has left the heavy ones does not come back."""
    heavy = budget - recent + 1

    def see(i, weigh, sums):
        if i >= heavy:
            for j in sorted(sums, key=sums.get, reverse=True)[heavy - 1:]:
                del sums[j]
        sums[i] = 0.0
        everything = weigh(list(range(i + 1)))
        for j in sums:
            sums[j] += everything[j]
        return sorted(set(sums) | set(range(max(0, i - recent + 1), i + 1)))

    return turned(see)


def test_h2o_evaluation(check):
    check("h2o", ["budgets=8,16", "rule=lm_eval"], lambda budget: h2o_evaluation(budget, budget // 2))


def snapkv(budget, window, kernel, pool, prompt):
    def see(i, weigh, votes):
        before = prompt - window
        if before <= i < prompt:
            votes["sum"] = votes.get("sum", 0) + weigh(list(range(i + 1)))[:before]
        if i < prompt:
            return list(range(i + 1))
        if "kept" not in votes:
            half = kernel // 2
            near = [votes["sum"][max(0, j - half):j + half + 1] for j in range(before)]
            score = np.array([n.max() if pool == "max" else n.sum() / kernel for n in near])
            votes["kept"] = sorted(np.argsort(-score, kind="stable")[:budget - window].tolist())
        return votes["kept"] + list(range(before, i + 1))

    return turned(see)


@pytest.mark.parametrize("pool", ["avg", "max"])
def test_snapkv(check, pool):
    check("snapkv", ["budgets=12,16", "window=6", "kernel=5", "prompt=32", f"pool={pool}"],
          lambda budget: snapkv(budget, 6, 5, pool, 32), 33)


def rounded(x, bits):
    """The last axis is a group."""
    low, high = x.min(-1, keepdims=True), x.max(-1, keepdims=True)
    step = np.where(high > low, (high - low) / (2**bits - 1), 1)
    return low + np.round((x - low) / step) * step


def kivi(bits, group, keep, per, prompt=0):
    """Keys are rounded `keep` at a time, in groups of tokens; values one at a time, in groups of channels."""

    def attend(m, q, k, v):
        n = len(q)
        q, k = m.turn(q, np.arange(n)), m.turn(k, np.arange(n))
        full = n // group * group
        by_token = np.moveaxis(k[:full].reshape(full // group, group, *k.shape[1:]), 1, -1)
        low_k = np.concatenate([np.moveaxis(rounded(by_token, bits), -1, 1).reshape(k[:full].shape), k[full:]])
        low_v = rounded(v.reshape(*v.shape[:-1], -1, group), bits).reshape(v.shape)
        out = np.empty_like(q)
        for i in range(n):
            if per == "query":
                n_k, n_v = (i - i % keep, max(0, i - keep)) if i >= prompt else (0, 0)
            else:
                n_k, n_v = (n - keep) // group * group, n - keep
            keys = np.concatenate([low_k[:n_k], k[n_k:]])[:i + 1]
            values = np.concatenate([low_v[:n_v], v[n_v:]])[:i + 1]
            out[i] = m.look(q[i], keys, values)[0]
        return out

    return attend


@pytest.mark.parametrize("per, prompt", [("query", 0), ("query", 20), ("text", 0)])
def test_kivi(check, per, prompt):
    check("kivi", ["bits=2,4", "group=8", "keep=16", f"per={per}", f"prompt={prompt}"],
          lambda bits: kivi(bits, 8, 16, per, prompt), prompt + 1)
