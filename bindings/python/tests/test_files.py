"""Files of results read back, and weights."""
import numpy as np
import pytest

import qkv

TEXT = "The river runs past the old mill."


@pytest.mark.parametrize("suffix", ["safetensors", "npz", "json"])
def test_round_trip(model, tmp_path, suffix):
    r = model.run(TEXT, ["q@3.h1=zero", "v@5=zero"], ["pattern@3.h0,h2", "k@2", "logits[-2,-1]", "pattern@*:first"])
    path = tmp_path / f"out.{suffix}"
    r.save(path)
    back = qkv.load(path)
    assert repr(back) == repr(r) and back.prompt == TEXT and back.text == r.text and back.edits == r.edits
    assert back.captures == r.captures and back.tokens.tolist() == r.tokens.tolist()
    assert back.logits_tokens == r.logits_tokens == [8, 9]
    for a, b in zip(r, back):
        assert (
            sorted(map(str, a.keys())) == sorted(map(str, b.keys()))
            and a.changed == b.changed
            and a.selected == b.selected
        )
        for key in a.keys():
            assert a[tuple(key)].tobytes() == b[tuple(key)].tobytes() and not b[tuple(key)].flags.writeable
    assert back[1].pattern[3].heads == (0, 2) and np.array_equal(back[1].pattern[3].h[2], r[1].pattern[3].h[2])
    assert (
        back[0].k[2].head_kind == "g"
        and r[2].changed == {"v@5=zero": 10 * 64}
        and back.metadata["model"] == "default.gguf"
    )
    assert back.stats == {}
    with pytest.raises(qkv.Error, match="copy that file"):
        back.save(tmp_path / "again.npz")


def test_mapped_without_a_copy(model, tmp_path):
    path = tmp_path / "out.safetensors"
    model.run(TEXT, capture="pattern@3").save(path)
    back = qkv.load(path)
    one, two = (back[0]["pattern", 3].__array_interface__["data"][0] for _ in range(2))
    assert one == two
    array = back[0]["pattern", 3]
    del back
    assert float(array.sum()) > 0


def test_others_are_refused(model, tmp_path):
    np.savez(tmp_path / "a.npz", a=np.ones(3, dtype=np.float32))
    model.modify(layer=3, head=1).save(tmp_path / "figure.safetensors")
    for name in ("a.npz", "figure.safetensors"):
        with pytest.raises(qkv.Error, match="was not written by qkv run"):
            qkv.load(tmp_path / name)
    (tmp_path / "b.safetensors").write_bytes(b"nonsense")
    with pytest.raises(qkv.Error) as caught:
        qkv.load(tmp_path / "b.safetensors")
    assert caught.value.code == qkv.codes()["ERR_FORMAT"]
    with pytest.raises(qkv.Error) as caught:
        qkv.load(tmp_path / "no.npz")
    assert caught.value.code == qkv.codes()["ERR_IO"]
    with pytest.raises(qkv.Error):
        model.run(TEXT).save(tmp_path / "a.txt")


def rms(x, weight):
    x = x.astype(np.float64)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weight


def test_weights_make_what_is_captured(model):
    r = model.run(TEXT, capture=["resid_pre@3", "q@3", "k@3", "v@3", "z@3", "attn_out@3", "resid_post@5", "logits"])[
        0
    ]
    w = model.weights
    x = rms(r["resid_pre", 3], w["attn_norm", 3])
    for name in ("q", "k", "v"):
        made = (x @ w[name, 3].T).reshape(r[name, 3].shape)
        assert np.abs(made - r[name, 3]).max() < 1e-4
    z = r["z", 3].reshape(len(x), -1)
    assert np.abs(z @ w["o", 3].T - r["attn_out", 3]).max() < 1e-4
    logits = rms(r["resid_post", 5], w["output_norm"]) @ w["output"].T
    assert np.abs(logits - r["logits"]).max() < 1e-3
    assert np.array_equal(w["output"], w["token_embd"])  # tied


def test_weights(model):
    w = model.weights
    assert len(w) == len(list(w)) == 6 * 9 + 3 and ("q", 3) in w and ("q", 9) not in w and "nothing" not in w
    assert w["q", -1].shape == w["q", 5].shape == (128, 128) and w["k", 0].shape == (64, 128)
    a, b = w["q", 0], w["q", 0]
    a[0] = 0
    assert b[0].any() and a.dtype == np.float32 and a.flags.writeable
    assert np.array_equal(w.rows("token_embd", start=5, stop=9), w["token_embd"][5:9])
    assert w.rows("q", 2, start=126).shape == (2, 128) and w.rows("q", 2, start=5, stop=5).shape == (0, 128)
    about = w.about("down", 2)
    assert about.shape == (128, 384) and about.tensor == "blk.2.ffn_down.weight" and about.layer == 2
    with pytest.raises(qkv.MissingError, match="did you mean 'down'"):
        w["dwon", 1]
    with pytest.raises(qkv.MissingError, match="layer"):
        w["q", 9]
    with pytest.raises(KeyError):
        w["q", -9]
    with pytest.raises(TypeError, match="a name and a layer"):
        w[3]


def test_an_array_alone_is_no_result(model, tmp_path):
    path = tmp_path / "out.npy"
    model.run("The river runs.", capture="pattern@3").save(path)
    with pytest.raises(qkv.Error, match="numpy.load"):
        qkv.load(path)


def test_layers_of_files_count_from_the_start(model, tmp_path):
    path = tmp_path / "out.npz"
    model.run("The river runs.", capture="pattern@2").save(path)
    with pytest.raises(qkv.MissingError, match="how many layers"):
        qkv.load(path)[0]["pattern", -1]
    heads = qkv.load(path)[0].pattern[2].h
    with pytest.raises(qkv.MissingError, match="the file does not say how many heads"):
        heads[-1]
    with pytest.raises(qkv.MissingError, match="name them, or index the array"):
        heads[-1:]
    assert heads[1:].shape[0] == 3
