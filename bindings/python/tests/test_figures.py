"""Figures, reports, plots: the program's bytes and numbers, and what notebooks are given."""
import json
import re

import numpy as np
import pytest

import qkv


def without_command(svg):
    """Which program made it is part of the recipe, and so of its id."""
    return re.sub(r"<metadata.*?</metadata>", "", svg, flags=re.S)


@pytest.mark.parametrize(
    "kind, options, arguments",
    [
        ("modify", dict(layer=3, head=1), ["--layer", 3, "--head", 1]),
        (
            "modify",
            dict(eps="5e-1,1e-3", all_heads=True, baseline=True),
            ["--eps", "5e-1,1e-3", "--edit-heads", "all", "--baseline"],
        ),
        ("mean", {}, []),
        ("heads", dict(layers="2-3"), ["--layers", "2-3"]),
    ],
)
def test_numbers_of_the_program(model, program, tmp_path, kind, options, arguments):
    out = tmp_path / "data.safetensors"
    program("figure", kind, *arguments, "--data", out, "-o", tmp_path / "a.svg")
    figure = getattr(model, kind)(**options)
    mine = tmp_path / "mine.safetensors"
    figure.save(mine)

    def arrays(path):
        data = path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        body = data[8 + length :]
        return {
            k: (v["shape"], body[v["data_offsets"][0] : v["data_offsets"][1]])
            for k, v in header.items()
            if k != "__metadata__"
        }

    assert arrays(mine) == arrays(out)
    for r in range(figure.shape[0]):
        for c in range(figure.shape[1]):
            values = figure[r, c].values
            assert values.tobytes() == arrays(out)[f"r{r}.c{c}"][1] and not values.flags.writeable


def test_figure(model, tmp_path):
    f = model.modify(layer=3, head=1)
    assert f.data.shape == (3, 3, 15, 15) and f.kind == "modify" and len(f) == 9 and len(list(f)) == 9
    assert f.range == (0.0, 1.0) and f.recipe["layer"] == 3 and f.id in f.small_print and f.warnings == []
    assert f.prompts == [qkv.default_prompts()[0]] and f[-1, -1].edits == "v@3.h1=scale:1e-10"
    for suffix, start in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF"), ("npz", b"PK")):
        path = tmp_path / f"a.{suffix}"
        f.save(path)
        assert path.read_bytes().startswith(start) and path.read_bytes() == f.render(suffix)
    for bad in ((9, 0), (0, 9)):
        with pytest.raises(IndexError):
            f[bad]
    with pytest.raises(TypeError, match="a row and a column"):
        f[0]
    with pytest.raises(qkv.Error, match="there is no format 'gif'"):
        f.render("gif")
    with pytest.raises(qkv.Error):
        f.save(tmp_path / "a.gif")
    with pytest.raises(qkv.Error):
        f.save(tmp_path / "no" / "a.png")


def test_data_of_other_lengths(model):
    f = model.mean(["The river runs.", "The old river runs past the mill."], layer=3, head=1)
    assert f.data.shape == (2, 3) and f.data.dtype == object and f.data[1, 0].shape == f[1, 0].values.shape


def test_report(model, tmp_path):
    f = model.modify(layer=3, head=1)
    report = f.report()
    assert report.figure is not f and np.array_equal(report.figure.data, f.data)
    assert report.markdown.startswith("# ") and str(report) == report.markdown and report.data["panels"]
    assert report.html.lstrip().lower().startswith("<!doctype html") and "http://" not in report.html.replace(
        "http://www.w3.org", ""
    )
    assert report._repr_html_().startswith("<iframe srcdoc=") and report._repr_html_().count("<") == 2
    report.save(tmp_path / "r.md")
    assert (tmp_path / "r.md").read_text() == report.markdown
    panel = model.modify(layer=3, head=1, report=True)[0, 0]
    assert panel.map.shape == panel.unmodified.shape == (15, 15) and f[0, 0].map is None
    own = model.modify(layer=3, head=1, report=True)
    assert own.report().figure is own


def test_interactive(model, tmp_path):
    f = model.modify(layer=3, head=1)
    page = f.interactive()
    assert page.drawing is not f and np.array_equal(page.drawing.data, f.data) and page.drawing.id == f.id
    assert page.html.lower().startswith("<!doctype html") and "<script" in page.html
    assert not re.search(r"(src|href)=[\"']?https?://", page.html)
    assert page._repr_html_().startswith("<iframe srcdoc=") and repr(page).startswith("<qkv.Page of figure")
    page.save(tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text() == page.html
    own = model.modify(layer=3, head=1, page=True)
    assert own.interactive().drawing is own
    with pytest.raises(qkv.Error):
        f.render("html")  # it was not made for that
    s = model.sweep("The river runs past the old mill.", targets="q", epsilon=[0.1], metrics="tv,sink")
    plot = s.plot("tv")
    assert "<script" in plot.interactive().html and plot.interactive().drawing is not plot
    assert "http" not in repr(plot.interactive())


def test_in_a_notebook(model):
    f = model.modify(layer=3, head=1)
    data, about = f._repr_png_()
    assert data == f.render("png") and f._repr_svg_() is None and 600 < about["width"] < 1000
    qkv.notebook("svg")
    try:
        svg = f._repr_svg_()
        assert f._repr_png_() is None and svg.startswith("<svg")
        names = set(re.findall(r'\bid="([^"]+)"', svg))
        refers = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
        assert names and refers <= names and all(n.endswith(f.id) for n in names)
        other = model.modify(layer=2, head=0)
        assert not names & set(re.findall(r'\bid="([^"]+)"', other._repr_svg_()))
        assert qkv.heatmap([[1, 2]])._repr_svg_()
    finally:
        qkv.notebook("png")
    with pytest.raises(qkv.Error, match="png or svg"):
        qkv.notebook("gif")


def test_options(model):
    text = "The river runs past the old mill."
    f = model.modify(
        text,
        layer=3,
        head=1,
        scale="log",
        colormap="viridis",
        labels="index",
        values="never",
        dpi=100,
        range=(0, 0.5),
        title="A *title*",
        masked="hatch",
        text="paths",
        panel_size=100,
        no_notes=True,
    )
    assert f.range == (0.0, 0.5) and b"PNG" in f.render("png")[:8]
    with pytest.raises(TypeError, match="the figure modify has no option 'colour'; there are bar_label, "):
        model.modify(colour="red")
    with pytest.raises(qkv.Error, match="colormap' wants auto.coolwarm.viridis.*, not 'jet'"):
        model.modify(colormap="jet")
    with pytest.raises(qkv.Error, match="layer"):
        model.modify(layer=99)
    with pytest.raises(qkv.Error):
        model.modify(eps="a,b")
    with pytest.raises(qkv.Error, match="prompt"):
        model.modify([text, text])
    assert model.modify(model.tokenize(text), layer=1, head=0).data.shape[-1] == len(model.tokenize(text))


def test_grid_and_rows(model):
    text, other = "The river runs past the old mill.", "The river runs past the new mill."
    f = model.grid(
        text,
        rows={"q": qkv.zero("q@{layer}", head="{head}"), "plain": ""},
        cols=["k@{layer}=scale:0.5", ""],
        layer=3,
        head=1,
    )
    assert f.shape == (2, 2) and f[0, 0].edits == "q@3.h1=zero + k@3=scale:0.5" and f[1, 1].edits == ""
    f = model.grid(text, cols={"patched": "q@3=patch:new"}, sources={"new": other}, layer=3, head=1, show="scores")
    assert f.shape == (1, 1)
    assert model.rows(text, layer=2, edits="q@2=zero").data.shape[:2] == (1, 1)
    assert model.heads(text, layers=[1, 2], edits=qkv.zero("q", layer=1)).shape == (2, 4)


def test_sweeps(model, program, tmp_path):
    texts = ["The river runs past the old mill.", "A boat lies at the quay."]
    mine, theirs = tmp_path / "mine.sqlite", tmp_path / "theirs.sqlite"
    seen = []
    s = model.sweep(
        texts,
        layers=range(2, 4),
        targets=["q", "k"],
        epsilon=np.array([0.1, 1.0]),
        metrics=["sink", "tv"],
        to=mine,
        progress=lambda *step: seen.append(step),
    )
    program(
        "sweep",
        "-p",
        texts[0],
        "-p",
        texts[1],
        "--layers",
        "2-3",
        "--targets",
        "q,k",
        "--epsilon",
        "0.1,1",
        "--metrics",
        "sink,tv",
        "-o",
        theirs,
    )
    for path in (mine, theirs):
        qkv.load_sweep(path).export(path.with_suffix(".csv"))
    assert mine.with_suffix(".csv").read_bytes() == theirs.with_suffix(".csv").read_bytes()
    rows = s.rows()
    assert (
        len(s) == 2 * 2 * 4 * 2 * 2 and s.n_missing == 0 and len(rows) == 2 * len(s) and s.metrics == ["sink", "tv"]
    )
    assert s.targets == ["q", "k"] and s.ops == ["scale"] and set(rows["metric"]) == {"sink", "tv"}
    other = qkv.load_sweep(theirs).rows()
    assert other["value"].tobytes() == rows["value"].tobytes()
    assert seen[-1] == ("cells", len(s), len(s)) and len(s.to_dict()["value"]) == len(rows)
    again = model.sweep(texts, layers="2-3", targets="q,k", epsilon=[0.1, 1], metrics="sink,tv", to=mine)  # resumed
    assert again.rows()["value"].tobytes() == rows["value"].tobytes()
    with pytest.raises(qkv.Error):
        model.sweep(texts, targets="v", epsilon=[0.1], to=mine)  # another sweep's file


def test_sweep_processes(model, tmp_path):
    text = "The river runs past the old mill."
    one, two = (model.sweep([text], epsilon=..., metrics="tv", processes=n) for n in (1, 2))
    assert one.rows("tv")["value"].tobytes() == two.rows("tv")["value"].tobytes()


def test_sweep_mistakes(model, tmp_path):
    for bad in (
        dict(prompts=[]),
        dict(prompts=None),
        dict(prompts="a", epsilon=[0.1], layers="99"),
        dict(prompts="a", targets="nothing"),
        dict(prompts="a", epsilon=[0.1], metrics="nothing"),
    ):
        with pytest.raises(qkv.Error):
            model.sweep(**bad)
    with pytest.raises(TypeError, match="texts, numbers and lists"):
        model.sweep("a", epsilon=object())
    with pytest.raises(qkv.Error):
        qkv.load_sweep(tmp_path / "no.sqlite")


def test_plots(model, tmp_path):
    s = model.sweep("The river runs past the old mill.", targets="q,k", epsilon=[0.1, 0.01], metrics="tv,sink")
    for kind, options in (
        ("heatmap", dict(epsilon="0.1", target="q")),
        ("lines", dict(by="layer", scale="log", target="q")),
        ("ranking", dict(epsilon=0.1, top=5, target="q", order="largest")),
    ):
        p = s.plot("tv", kind=kind, **options)
        assert p.kind == kind and len(p.rows()) > 0 and p.render("pdf").startswith(b"%PDF") and p._repr_png_()
        assert p.recipe and p.metric == "tv" and p.warnings is not None
        p.save(tmp_path / f"{kind}.png")
    with pytest.raises(qkv.Error, match="kind is one of auto, heatmap, lines, ranking"):
        s.plot("tv", kind="pie")
    with pytest.raises(TypeError, match="a plot has no option 'colour'"):
        s.plot("tv", colour="red")
    with pytest.raises(qkv.Error):
        s.plot("nothing")


def test_heatmap(tmp_path):
    values = np.arange(6).reshape(2, 3) / 6 - 0.3
    h = qkv.heatmap(
        values,
        rows=["a", "b"],
        cols=["x", "y", "z"],
        row_axis="rows",
        col_axis="columns",
        label="weight",
        title="A *title*",
        range=(-1, 1),
    )
    assert (
        np.array_equal(h.data, values) and h._repr_png_() and h.warnings == [] and repr(h) == "<qkv.Heatmap: 2 x 3>"
    )
    h.save(tmp_path / "h.pdf")
    assert (tmp_path / "h.pdf").read_bytes().startswith(b"%PDF")
    for bad, words in (
        (dict(values=[1, 2]), "matrix"),
        (dict(values=values, rows=["a"]), "1 labels for 2 rows"),
        (dict(values=values, colormap="jet"), "colormap is one of"),
        (dict(values=values, scale="power"), "scale"),
    ):
        with pytest.raises(qkv.Error, match=words):
            qkv.heatmap(**bad)
    with pytest.raises(qkv.Error):
        qkv.heatmap([[np.inf]]).render("png")


def test_layers_and_heads_from_the_end(model):
    f = model.modify(layer=-1, head=-1, eps=0.5)
    assert (f[0, 0].layer, f[0, 0].head) == (5, 3) and f.data.shape[:2] == (3, 1)
    with pytest.raises(qkv.Error, match="layer -7 is out of range"):
        model.modify(layer=-7, head=1)
    with pytest.raises(TypeError, match="whole number"):
        model.modify(layer=1.5)


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf", "html", "md", "json", "safetensors", "npz", "csv"])
def test_every_format_of_the_guide(model, tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    figure = model.modify("The river runs.", layer=3, head=1, eps=[0.5])
    figure.save(path)
    assert path.stat().st_size > 100
    if suffix == "html":
        assert path.read_text() == figure.interactive().html
    if suffix == "json":
        assert json.loads(path.read_text())["facts"] == figure.report().data["facts"]


def test_a_list_of_edits_is_variants_everywhere(model, text):
    """A figure of one variant refuses two, which it cannot draw, and takes edits that are made at once."""
    pair = ["q@3=zero", "v@2=zero"]
    for count in (
        len(model.run(text, pair, "logits[-1]")) - 1,
        len(model.measure(text, pair, "tv").variants) - 1,
        len(model.next(text, pair)) - 1,
        len(model.generate(text, pair, n=1).edits) - 1,
        model.grid(text, cols=pair, layer=3, head=1).shape[1],
        model.grid(text, rows=pair, layer=3, head=1).shape[0],
    ):
        assert count == 2
    for draw in (model.heads, model.rows):
        for several in (pair, tuple(pair), [qkv.Edit(e) for e in pair], [pair, "k@1=zero"]):
            with pytest.raises(qkv.Error, match="draws one variant, and a list of 2 edits is 2 variants"):
                draw(text, edits=several)
        joined = draw(text, edits=" + ".join(pair))
        for at_once in ([pair], [tuple(pair)], qkv.Edit(pair[0]) + pair[1], [" + ".join(pair)]):
            made = draw(text, edits=at_once)
            assert made.edits == joined.edits and (made.data == joined.data).all()
        assert draw(text, edits=[pair[0]]).edits == draw(text, edits=pair[0]).edits
        assert (draw(text, edits=[]).data == draw(text).data).all()
    assert model.grid(text, cols={"both": pair}, layer=3, head=1)[0, 0].edits == joined.edits


def test_pattern(model):
    one = model.pattern("The river runs.", layer=2, head=3)
    maps = model.run("The river runs.", capture="pattern@2")[0]["pattern", 2]
    assert (one.layer, one.head) == (2, 3)
    assert np.array_equal(one.data[0, 0], maps[3])
    for heads in ([1, 3], "1,3", np.array([1, 3])):
        several = model.pattern("The river runs.", layer=2, head=heads)
        assert np.array_equal(several.data[0], maps[[1, 3]])
    changed = model.pattern("The river runs.", layer=2, head=3, edits="q@2=zero", diff=True)
    assert np.abs(changed.data).max() > 0
    with pytest.raises(qkv.Error, match="take two texts"):
        model.pattern("The river runs.", pair="It is wide.")
    with pytest.raises(qkv.Error, match="first text"):
        model.pattern(pair="It is wide.")
