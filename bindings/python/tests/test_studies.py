"""Studies: every kind, its numbers against the program's, what is refused, files, notebooks, the methods that the build
writes."""
import ast
import inspect
import pickle
import sqlite3
import warnings

import numpy as np
import pytest

import qkv

TEXTS = ["The river runs past the old mill and down to the sea.", "In the evening the lamps are lit in the town."]
CLEAN = "The river runs past the city, and people swim in the"
CORRUPT = "The church runs past the city, and people swim in the"
NEEDLE = "The best thing to do in the old town is to eat a sandwich by the mill."

# Each kind with arguments that take a moment, as a command and as a call.
CALLS = {
    "effects": (
        ["-p", TEXTS[0], "-p", TEXTS[1], "--targets", "q,k", "--epsilon", "0.5,0.01", "--layers", "1-2", "--metrics", "sink,tv"],
        dict(prompts=TEXTS, targets="q,k", epsilon=[0.5, 0.01], layers=range(1, 3), metrics="sink,tv"),
    ),
    "lens": (["-p", TEXTS[0][:30], "--answer", " sea", "--top", 3], dict(prompt=TEXTS[0][:30], answer=" sea", top=3)),
    "patch": (
        ["--clean", CLEAN, "--corrupt", CORRUPT, "--metric", "logit_diff: river/ church", "--layers", "1-2"],
        dict(clean=CLEAN, corrupt=CORRUPT, metric="logit_diff: river/ church", layers=[1, 2]),
    ),
    "compare": (
        ["-p", TEXTS[0], "-p", TEXTS[1], "--edit", "q@3.h1=zero + z@4=scale:0.5", "--distance", "js"],
        dict(prompts=TEXTS, edit=[qkv.zero("q", layer=3, head=1), "z@4=scale:0.5"], distance="js"),
    ),
    "massive": (
        ["-p", TEXTS[0], "-p", TEXTS[1], "--size", 60, "--ratio", 40],
        dict(prompts=TEXTS, size=60, ratio=40.0),
    ),
    "weights": (["ov", "--layers", "0-1", "--raw"], dict(circuit="ov", layers=range(2), raw=True)),
    "next": (
        ["-p", TEXTS[0], "--variant", "z@3.h1=zero", "--top", 3, "--of", " river, sea"],
        dict(prompts=TEXTS[0], variant=qkv.zero("z", layer=3, head=1), top=3, of=" river, sea"),
    ),
    "measure": (
        ["-p", TEXTS[0], "--variant", "q@3=scale:0.001", "--metrics", "sink,tv", "--layers", 3],
        dict(prompts=TEXTS[0], variant="q@3=scale:0.001", metrics="sink,tv", layers=3),
    ),
    "modify": (
        ["-p", TEXTS[0], "--layer", 2, "--head", 1, "--eps", "0.5,1e-3", "--baseline"],
        dict(prompts=TEXTS[0], layer=2, head=1, eps="0.5,1e-3", baseline=True),
    ),
    "mean": (["-p", TEXTS[0], "--layer", 2, "--head", 1, "--diff"], dict(prompts=TEXTS[0], layer=2, head=1, diff=True)),
    "grid": (
        ["-p", TEXTS[0], "--layer", 2, "--head", 1, "--row", "Queries=q@2=zero", "--row", "Keys=k@2=zero"],
        dict(prompts=TEXTS[0], layer=2, head=1, row=["Queries=q@2=zero", "Keys=k@2=zero"]),
    ),
    "pattern": (["-p", TEXTS[0], "--layer", 2, "--head", "1,2"], dict(prompts=TEXTS[0], layer=2, head="1,2")),
    "heads": (["-p", TEXTS[0], "--layers", "1-2"], dict(prompts=TEXTS[0], layers="1-2")),
    "rows": (["-p", TEXTS[0], "--layers", "1-2"], dict(prompts=TEXTS[0], layers="1-2")),
    "roles": (["--sequences", 1, "--length", 10, "--self", 0.2], dict(sequences=1, length=10, self=0.2)),
    "ships": (["-p", TEXTS[0], "--target", "k", "--op", "zero"], dict(prompts=TEXTS[0], target="k", op="zero")),
    "sahara": (["-p", TEXTS[0], "-p", TEXTS[1], "--steps", 1], dict(prompts=TEXTS, steps=1)),
    "phrase-rates": (
        ["-p", TEXTS[0], "--heads", "3.h0,2.h1", "--phrases", "@the\nand\n", "--new-tokens", 4],
        dict(prompts=TEXTS[0], heads=["3.h0", "2.h1"], phrases="the\nand\n", new_tokens=4),
    ),
    "check": (["-p", TEXTS[0]], dict(prompt=TEXTS[0])),
    "streaming-llm": (
        ["-p", TEXTS[0], "--sinks", "0,2", "--recent", 4, "--only-all"],
        dict(prompts=TEXTS[0], sinks=[0, 2], recent=4, only_all=True),
    ),
    "h2o": (["-p", TEXTS[0], "--budgets", "4,8", "--only-all"], dict(prompts=TEXTS[0], budgets=(4, 8), only_all=True)),
    "snapkv": (
        ["-p", TEXTS[0], "--prompt-tokens", 10, "--budgets", "4", "--window", 2, "--kernel", 1, "--only-all"],
        dict(prompts=TEXTS[0], prompt_tokens=10, budgets=4, window=2, kernel=1, only_all=True),
    ),
    "kivi": (
        ["-p", TEXTS[0], "--bits", "2,4", "--group", 4, "--keep", 4, "--only-all"],
        dict(prompts=TEXTS[0], bits=np.array([2, 4]), group=np.int64(4), keep=4, only_all=True),
    ),
    "retrieval-heads": (
        ["-p", " ".join(TEXTS * 8), "--needle", NEEDLE, "--question", "What is best to do?", "--decode", "forced",
         "--lengths", 96, "--depths", "0,0.5"],
        dict(prompts=" ".join(TEXTS * 8), needle=NEEDLE, question="What is best to do?", decode="forced", lengths=96,
             depths=[0, 0.5]),
    ),
}


FIGURES = ("modify", "mean", "grid", "pattern", "heads", "rows")


def words(arguments, tmp_path):
    """Of the program, whose files are given by name."""
    for argument in arguments:
        if str(argument).startswith("@"):
            path = tmp_path / "given.txt"
            path.write_text(argument[1:])
            yield path
        else:
            yield argument


def quiet(function, *arguments, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", qkv.Notice)
        return function(*arguments, **keywords)


def test_every_kind_is_called_here():
    assert {kind.name for kind in qkv.studies()} >= set(CALLS)
    new = {kind.name for kind in qkv.studies()} - set(CALLS)
    assert not new, f"CALLS has no call of {new}"


@pytest.mark.parametrize("kind", CALLS)
def test_numbers_are_those_of_the_program(model, program, kind, tmp_path, unset_model):
    arguments, keywords = CALLS[kind]
    command = ["figure", kind] if kind in FIGURES else [kind]
    want = program.json(*command, *words(arguments, tmp_path), "--json", "-q")
    study = quiet(model.study, kind, **keywords)
    assert study.kind == kind and study.title == want["title"] and study.warnings == want.get("warnings", [])
    assert list(study.tables) == [table["name"] for table in want["tables"]]
    for expected in want["tables"]:
        table = study.tables[expected["name"]]
        assert table.title == expected["title"] and list(table.dtype.names) == expected["columns"]
        assert len(table) == len(expected["rows"])
        for i, column in enumerate(expected["columns"]):
            for mine, its in zip(table[column].tolist(), (row[i] for row in expected["rows"])):
                missing = its is None and (mine == "" or np.isnan(mine))
                assert missing or mine == its, (expected["name"], column)
    assert len(next(iter(study.tables.values()))) > 0
    assert study.recipe["kind"] == kind and study.recipe["id"] == study.id


@pytest.mark.parametrize("kind", CALLS)
def test_named_methods(model, kind):
    """Each but those whose name another method has."""
    name = kind.replace("-", "_")
    if name in (*FIGURES, "next", "measure", "weights"):
        assert "Study" not in str(inspect.signature(type(model).heads).return_annotation)
        return
    method = getattr(model, name)
    signature = inspect.signature(method)
    fields = next(k.fields for k in qkv.studies() if k.name == kind)
    assert {"self_" if field.name == "self" else field.name for field in fields} < set(signature.parameters)
    assert all(f"`{field.name}" in method.__doc__ for field in fields if field.use != "look")
    keywords = {"self_" if name == "self" else name: value for name, value in CALLS[kind][1].items()}
    assert quiet(method, **keywords).tables.keys() == quiet(model.study, kind, **CALLS[kind][1]).tables.keys()


def test_examples_in_the_help_can_be_called():
    for kind in qkv.studies():
        method = getattr(qkv.Model, kind.name.replace("-", "_"))
        if "Examples::" not in (method.__doc__ or ""):
            continue
        tree = ast.parse(inspect.cleandoc(method.__doc__).split("Examples::")[1].replace("\n    ", "\n").strip())
        assert len(tree.body) == len([l for l in kind.examples.splitlines() if l.startswith("qkv ")])
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            if getattr(call.func, "attr", "") == method.__name__:
                inspect.signature(method).bind(None, *call.args, **{k.arg: k.value for k in call.keywords})
                break
        else:
            raise AssertionError(kind.name)


# ---- prompts ----


def test_prompts(model):
    text, ids = TEXTS[0], model.tokenize(TEXTS[0])
    by_text, by_ids = model.lens(text), model.study("lens", ids)
    assert (by_text.tables["layers"]["top"] == by_ids.tables["layers"]["top"]).all()
    one_by_one = model.study("ships", *TEXTS)
    assert one_by_one.id == model.study("ships", TEXTS).id == model.ships(TEXTS).id != model.ships(TEXTS[0]).id
    without = model.lens(text, special=False)
    assert len(by_text.tables["top"]) - len(without.tables["top"]) == 5 * model.info.n_layer
    chat = model.chat("What is a mill?", template="{% for m in messages %}{{ m.content }}{% endfor %}")
    assert model.lens(chat).tables["layers"].shape == (6,)


def test_pairs_of_prompts(model, tmp_path):
    metric = "logit_diff: river/ church"
    by_name = model.patch(corrupt=CORRUPT, clean=CLEAN, metric=metric, layers=1)
    assert by_name.id == model.study("patch", CLEAN, CORRUPT, metric=[metric], layers="1").id
    assert by_name.id == model.study("patch", CLEAN, corrupt=CORRUPT, metric=metric, layers=1).id
    path = tmp_path / "pairs.csv"
    path.write_text(f'clean,corrupt\n"{CLEAN}","{CORRUPT}"\n"{CLEAN}","{CORRUPT}"\n')
    read, given = (model.patch(pairs=p, metric=metric, layers=1) for p in (path, path.read_text()))
    both = model.patch([CLEAN, CLEAN], [CORRUPT, CORRUPT], metric=metric, layers=1)
    np.testing.assert_array_equal(read.tables["top"]["recovery"], both.tables["top"]["recovery"])
    assert read.id == given.id
    with pytest.raises(qkv.Error, match="as many prompts of each name: clean, corrupt"):
        model.patch([CLEAN, CLEAN], CORRUPT, metric=metric)
    with pytest.raises(TypeError, match="clean is given twice"):
        model.study("patch", CLEAN, CORRUPT, clean=CLEAN)
    with pytest.raises(qkv.Error, match="prompts of the study 'patch' are clean, corrupt"):
        model.study("patch", CLEAN, CORRUPT, CLEAN)


def test_results_are_continued(model, tmp_path):
    path = tmp_path / "patch.sqlite"
    call = dict(clean=CLEAN, corrupt=CORRUPT, metric="kl", layers=[0, 1])
    first = model.patch(**call, results=path)
    np.testing.assert_array_equal(first.tables["cells"]["value"], model.patch(**call).tables["cells"]["value"])
    with sqlite3.connect(path) as file:  # stored rows are not computed again
        file.execute("UPDATE results SET value = 7 WHERE cell = 5")
    again = model.patch(**call, results=str(path)).tables["cells"]["value"]
    assert (again == 7).sum() == 1 and (again != first.tables["cells"]["value"]).sum() == 1


def test_two_models(model, program, source, tmp_path):
    path = tmp_path / "small.gguf"
    program("convert", source / "models" / "default.gguf", "-o", path, "--type", "q4_0")
    other = qkv.open(path)
    want = program.json("compare", "-m", source / "models" / "default.gguf", "-m", path, "-p", TEXTS[0], "--json")
    got = model.compare(TEXTS[0], other=other).tables["heads"]
    heads = next(table for table in want["tables"] if table["name"] == "heads")
    assert got["distance"].tolist() == [row[heads["columns"].index("distance")] for row in heads["rows"]]
    assert got["distance"].max() > 0
    with pytest.raises(qkv.Error, match="give another model as 'other'; or 'edit'"):
        model.compare(TEXTS[0])
    with pytest.raises(qkv.Error, match="lens takes one model"):
        model.study("lens", TEXTS[0], other=other)


# ---- mistakes ----


@pytest.mark.parametrize(
    "keywords, message",
    [
        (dict(topp=3), "did you mean 'top'"),
        (dict(top=1000), "'top' wants a whole number from 1 to 100, not '1000'"),
        (dict(top=2.5), "'top' wants a whole number"),
        (dict(heads="yes"), "'heads' wants true or false, not 'yes'"),
        (dict(answer=3), "'answer' wants a text"),
        (dict(colormap="red"), "'colormap' wants auto|coolwarm"),
        (dict(dpi=float("nan")), "'dpi' must be finite, not nan"),
        (dict(width="wide"), "'width' wants a length such as 85mm"),
        (dict(picture="nothing"), None),
    ],
)
def test_wrong_values(model, keywords, message):
    if message is None:  # what there is to draw is known when it has run
        with pytest.raises(qkv.Error, match="'picture': there is no \"nothing\""):
            model.study("lens", TEXTS[0], **keywords).to_bytes("png")
        return
    with pytest.raises(qkv.Error) as caught:
        model.study("lens", TEXTS[0], **keywords)
    assert message in str(caught.value) and "`" not in str(caught.value)


def test_wrong_calls(model):
    with pytest.raises(qkv.Error, match="there is no study \"lenz\" \\(did you mean 'lens'\\?\\)"):
        model.study("lenz", TEXTS[0])
    with pytest.raises(qkv.Error, match="wants 1 prompt, and 0 are given"):
        model.study("lens")
    with pytest.raises(qkv.Error, match="takes 1 prompt, and 2 are given"):
        model.study("lens", *TEXTS)
    with pytest.raises(TypeError, match="answer is a text, a number"):
        model.study("lens", TEXTS[0], answer=object())
    with pytest.raises(TypeError, match="toop"):
        model.lens(TEXTS[0], toop=3)
    with pytest.raises(qkv.Error, match="a function cannot"):
        model.compare(TEXTS[0], edit=qkv.custom("q", layer=3, fn=lambda x: x))
    with pytest.raises(qkv.Error, match="a mask has 3 values for the layers"):
        model.study("weights", circuit="ov", layers=[True, False, True])


# ---- what came out ----


def test_tables(model):
    study = model.patch(CLEAN, CORRUPT, metric="kl", layers=[0, 1])
    table = study.tables["cells"]
    assert [table[name].dtype.kind for name in ("layer", "recovery", "site")] == ["i", "f", "U"]
    assert np.isnan(table["head"]).any() and not np.isnan(table["head"]).all()
    assert len(table) == len(table.to_dict()["layer"]) and table[table["layer"] == 1].name == "cells"
    assert repr(table) == f"<qkv.Table cells: {len(table)} rows of {', '.join(table.dtype.names)}>"
    again = pickle.loads(pickle.dumps(table))
    assert again.title == table.title and again["value"].tolist() == table["value"].tolist()
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(study)


def test_pandas(model):
    pytest.importorskip("pandas")
    frame = model.lens(TEXTS[0]).tables["layers"].to_pandas()
    assert list(frame.columns)[:1] == ["layer"] and frame["layer"].tolist() == list(range(6))
    table = model.patch(CLEAN, CORRUPT, metric="kl", layers=0).tables["cells"]
    frame = table.to_pandas()
    assert frame["head"].dtype == "Int64" and frame["recovery"].dtype == float
    assert frame["head"].isna().tolist() == np.isnan(table["head"]).tolist()


def test_warnings_are_notices(model):
    with pytest.warns(qkv.Notice, match="wide"):
        study = model.lens(TEXTS[0], answer=" wide blue sea")
    assert any("wide" in warning for warning in study.warnings)
    assert study.notes and all(isinstance(note, str) for note in study.notes)


def test_files_and_look(model, tmp_path):
    study = model.lens(TEXTS[0], answer=" sea", colormap="magma", no_notes=True)
    plain = study.to_bytes("png")
    assert plain == study.render("png") and plain[1:4] == b"PNG"
    grey = study.to_bytes("png", colormap="grey")
    assert grey != plain and study.to_bytes("png") == plain  # the look was of that file alone
    assert study.to_bytes("png", no_notes=False) != plain and study.to_bytes("png") == plain
    assert study.to_bytes("png", picture="rank") != plain
    for suffix, start in (("svg", b"<?xml"), ("pdf", b"%PDF"), ("html", b"<!DOCTYPE"), ("json", b"{"),
                          ("sqlite", b"SQLite format 3"), ("csv", b"layer,")):
        path = tmp_path / f"lens.{suffix}"
        study.save(path)
        assert path.read_bytes().startswith(start), suffix
    study.save(tmp_path / "top.csv", table="top")
    assert (tmp_path / "top.csv").read_text().splitlines()[0] == ",".join(study.tables["top"].dtype.names)
    with pytest.raises(qkv.Error, match="did you mean 'rank'"):
        study.save(tmp_path / "no.png", picture="rnk")
    with pytest.raises(qkv.Error, match="there is no format 'gif'"):
        study.to_bytes("gif")
    with pytest.raises(qkv.Error, match="'dpi' wants a number from 10 to 2400"):
        study.save(tmp_path / "no.png", dpi=1)
    assert not (tmp_path / "no.png").exists()


def test_page_keeps_its_maps(model):
    plain, page = (model.lens(TEXTS[0][:20], page=page).to_bytes("html") for page in (False, True))
    assert len(page) > len(plain)


def test_notebooks(model):
    study = model.lens(TEXTS[0])
    data, size = study._repr_png_()
    assert data[1:4] == b"PNG" and size["width"] > 100 and study._repr_html_() is None
    qkv.notebook("svg")
    try:
        assert study._repr_svg_().startswith("<svg") and study._repr_png_() is None
    finally:
        qkv.notebook("png")


def test_a_table_where_there_is_no_picture(model, monkeypatch):
    study = model.lens(TEXTS[0])
    monkeypatch.setattr(study, "pictures", [])
    assert study._repr_png_() is None and study._repr_svg_() is None
    shown = study._repr_html_()
    assert study.tables["layers"].title in shown and "<th>layer</th>" in shown


def test_progress(model):
    seen = []
    model.ships(TEXTS, progress=lambda what, done, total: seen.append((what, done, total)))
    assert seen and seen[-1][1] == seen[-1][2]

    def stop(what, done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.ships(TEXTS * 10, progress=stop)
    assert model.ships(TEXTS).tables["ranking"].shape == (24,)


# ---- made again ----


def test_a_study_made_again(model, tmp_path, unset_model):
    study = model.lens(TEXTS[0], answer=" sea", colormap="magma", width="85mm")
    for suffix in ("png", "svg", "pdf", "html", "json"):
        study.save(tmp_path / f"lens.{suffix}")
        again = qkv.reproduce(tmp_path / f"lens.{suffix}")
        assert isinstance(again, qkv.Study) and again.same is True and again.id == study.id
        assert again.difference.same_bits and again.difference.n_panels == len(study.tables) + len(study.pictures)
    assert again.to_bytes("png") == study.to_bytes("png")  # with its look,
    again.to_bytes("png", colormap="grey")
    assert again.to_bytes("png") == study.to_bytes("png")  # which stays
    assert study.same is None


def test_a_study_of_another_model(model, program, source, tmp_path):
    program("convert", source / "models" / "default.gguf", "-o", tmp_path / "small.gguf", "--type", "q4_0")
    other = qkv.open(tmp_path / "small.gguf")
    model.lens(TEXTS[0]).save(tmp_path / "lens.png")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        again = qkv.reproduce(tmp_path / "lens.png", other)
    assert again.same is False and again.difference is None
    assert ["another model: its hash is" in str(w.message) for w in caught] == [True, False]
    assert "it is not the same: \"texts\" of panel 1" in str(caught[1].message)
    model.modify(layer=3, head=1).save(tmp_path / "modify.png")
    again = quiet(qkv.reproduce, tmp_path / "modify.png", other)
    assert again.same is False and 0 < again.difference.n_different <= 9 and again.difference.largest > 0
    with pytest.raises(qkv.Error, match="'other' is for studies of two models"):
        qkv.reproduce(tmp_path / "lens.png", other=model)


def test_two_models_made_again(model, tmp_path, unset_model):
    model.compare(TEXTS[0], edit="q@3.h1=zero").save(tmp_path / "compare.png")
    assert qkv.reproduce(tmp_path / "compare.png").same is True


def test_a_figure_made_again(model, tmp_path, unset_model):
    figure = model.modify(layer=3, head=1, eps=[0.5])
    figure.save(tmp_path / "a.png")
    again = qkv.reproduce(tmp_path / "a.png", model)
    assert isinstance(again, qkv.Figure) and again.same is True and again.render("png") == figure.render("png")
    np.testing.assert_array_equal(again.data, figure.data)
    again.save(tmp_path / "a.html")
    assert again.interactive().html[:15] == "<!DOCTYPE html>"


def test_a_chart_made_again(model, tmp_path):
    sweep = model.sweep(TEXTS[0], targets="q", epsilon=[0.1], metrics="tv", layers="3", to=tmp_path / "r.sqlite")
    sweep.plot("tv", kind="heatmap").save(tmp_path / "tv.svg")
    with pytest.raises(qkv.Error, match="called r.sqlite: give them as 'results'"):
        qkv.reproduce(tmp_path / "tv.svg")
    with pytest.raises(qkv.Error, match="a chart needs no model"):
        qkv.reproduce(tmp_path / "tv.svg", model)
    for results in (sweep, tmp_path / "r.sqlite"):
        again = qkv.reproduce(tmp_path / "tv.svg", results=results)
        assert isinstance(again, qkv.Plot) and again.same is True and again.metric == "tv"
        assert again.rows()["mean"].tolist() == sweep.plot("tv", kind="heatmap").rows()["mean"].tolist()


def test_nothing_to_make_again(tmp_path):
    (tmp_path / "a.svg").write_text("<svg/>")
    with pytest.raises(qkv.Error):
        qkv.reproduce(tmp_path / "a.svg")


# ---- recipes ----


def test_recipes(model, program, source, tmp_path, unset_model):
    its = {r["name"] for r in program.json("recipe", "--json")["recipes"]}
    assert set(qkv.recipes()) == its
    want = program.json("recipe", "ships", "-p", TEXTS[0], "--set", "top=3", "--json", "-q")["tables"][0]
    for name in ("ships", source / "recipes" / "ships.json"):
        table = qkv.recipe(name, model, TEXTS[0], top=3).tables[want["name"]]
        assert [list(row) for row in table.tolist()] == want["rows"]
    want = program.json("recipe", "generalised-ships", "--json", "-q")["tables"][0]["rows"]
    assert [list(row) for row in next(iter(qkv.recipe("generalised-ships").tables.values())).tolist()] == want


def test_wrong_recipes(tmp_path, source):
    with pytest.raises(qkv.Error, match="there is no recipe 'shps'; there are .*ships"):
        qkv.recipe("shps")
    path = tmp_path / "a.json"
    for text, message in (("{", "is not JSON"), ('{"study": "lens", "more": 1}', "alone"), ("[]", "is not a recipe"), ('{"sweep": 5}', "not an object")):
        path.write_text(text)
        with pytest.raises(qkv.Error, match=message):
            qkv.recipe(path)
    path.write_text('{"study": "lens", "options": {"topp": 1}}')
    with pytest.raises(qkv.Error, match="did you mean 'top'"):
        qkv.recipe(path, prompts=TEXTS[0])
    with pytest.raises(FileNotFoundError):
        qkv.recipe(tmp_path / "none.json")
