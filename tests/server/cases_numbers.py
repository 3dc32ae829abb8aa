"""Numbers of the explorer are those of the program, bit for bit; figures are its files, byte for byte."""
import json
import math
import os
import random
import subprocess
import tempfile

from explorer import EDITS, PROMPT, QKV, safetensors

TEXT = PROMPT["text"]
LAYER, HEAD = 3, 1


def program(*words, folder=None):
    done = subprocess.run([QKV, *words], capture_output=True, cwd=folder, timeout=300)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def capture(*captures, edits=EDITS, prompt=("-p", TEXT)):
    """Tensors of qkv run, by their names in its file."""
    import struct
    with tempfile.TemporaryDirectory() as folder:
        words = ["run", *prompt, "-o", "out.safetensors"] + (["--variant", edits] if edits else [])
        for text in captures:
            words += ["--capture", text]
        program(*words, folder=folder)
        with open(os.path.join(folder, "out.safetensors"), "rb") as file:
            body = file.read()
    size = struct.unpack("<Q", body[:8])[0]
    head = json.loads(body[8:8 + size])
    out = {}
    for name, item in head.items():
        if name != "__metadata__":
            first, end = item["data_offsets"]
            out[name] = struct.unpack("<%df" % ((end - first) // 4), body[8 + size + first:8 + size + end])
    return out


def rows_of(study, name):
    """The rows of a study's table, from its JSON, as dicts."""
    table, = [t for t in json.loads(study)["tables"] if t["name"] == name]
    return [dict(zip(table["columns"], row)) for row in table["rows"]]


def case_head_is_run(server):
    server.start()
    dice = random.Random(4)
    for edits in [EDITS, "", "k@3.g0=mean:head", "v@1=zero + q@3.h1[2:]=scale:1e-3", "scores@3.h1=add:0.5", "q@0=scale:0.9"]:
        status, _, body = server.post("head", {"prompt": PROMPT, "edits": edits, "layer": LAYER, "head": HEAD, "metrics": "sink"})
        assert status == 200, body
        maps, facts = safetensors(body)
        wanted = capture("pattern@3.h1", edits=edits)
        assert maps["before"] == wanted["v0/pattern.3"], edits
        assert ("after" in maps) == bool(edits)
        if edits:
            assert maps["after"] == wanted["v1/pattern.3"], edits
        assert facts["pooling"] == "none" and facts["causal"] is True and len(facts["metrics"]) == 1 + bool(edits)
    for _ in range(40):
        edits = "q@3.h1=scale:%r" % (10 ** dice.uniform(-8, 1))
        maps, facts = safetensors(server.post("head", {"prompt": PROMPT, "edits": edits, "layer": LAYER, "head": HEAD, "only": "after"})[2])
        assert list(maps) == ["after"] and maps["after"] == capture("pattern@3.h1", edits=edits)["v1/pattern.3"], edits
        assert facts["edits"][0]["changed"] == facts["edits"][0]["selected"] == 480, facts
    # Requests in between of other prompts, layers and models change nothing.
    for other in [{"prompt": {"text": "Another text."}}, {"layer": 5, "head": 0}, {"edits": "resid_pre@1=scale:0.5"}]:
        request = {"prompt": PROMPT, "edits": EDITS, "layer": LAYER, "head": HEAD}
        server.post("head", {**request, **other})
        maps, _ = safetensors(server.post("head", request)[2])
        assert maps["after"] == capture("pattern@3.h1")["v1/pattern.3"]


def case_windows_and_pools(server):
    server.start()
    for edits in [EDITS, "pattern@3.h1=scale:-1"]:
        check_windows(server, edits)
    for window in [[0, 0, 0, 1], [3, 2, 0, 1], [0, 99, 0, 1], [0, 1, 0], [-1, 2, 0, 1], "x", [0, 1, 0, 1.5]]:
        server.error(server.post("head", {"layer": 0, "head": 0, "window": window}), 400, "argument")


def check_windows(server, edits):
    whole = capture("pattern@3.h1", edits=edits)
    n = int(math.isqrt(len(whole["v0/pattern.3"])))
    for side, window in [(5, None), (20, [2, 9, 0, 7]), (4, [1, 13, 0, 12]), (3, [0, n, 5, 8])]:
        request = {"prompt": PROMPT, "edits": edits, "layer": LAYER, "head": HEAD, "side": side}
        if window:
            request["window"] = window
        status, _, body = server.post("head", request)
        assert status == 200, body
        maps, facts = safetensors(body)
        r0, r1, c0, c1 = window or [0, n, 0, n]
        extent = max(r1 - r0, c1 - c0)
        cells = min(extent, side)
        rows, cols = (r1 - r0 - 1) * cells // extent + 1, (c1 - c0 - 1) * cells // extent + 1
        assert facts["view"] == [r0, r1, c0, c1] and abs(facts["step"] - extent / cells) < 1e-12, facts
        for name, of in [("before", "v0/pattern.3"), ("after", "v1/pattern.3")]:
            wanted = [-math.inf] * (rows * cols)
            for r in range(r0, r1):
                for c in range(c0, c1):
                    at = (r - r0) * cells // extent * cols + (c - c0) * cells // extent
                    wanted[at] = max(wanted[at], whole[of][r * n + c])
            assert list(maps[name]) == wanted, (edits, side, window, name)


def check_overview_without_keys(server, all_keys):
    """The first keys are left out before blocks are made; metrics are those of whole maps."""
    whole = capture("pattern@*")
    n = round((len(whole["v0/pattern.0"]) / 4) ** 0.5)
    for side, skip in [(5, 1), (5, n - 1), (128, 3)]:
        status, _, body = server.post("overview", {"prompt": PROMPT, "edits": EDITS, "side": side, "skip_keys": skip, "metric": "sink"})
        assert status == 200, body
        maps, facts = safetensors(body)
        cells = min(side, n)
        cols = (n - 1 - skip) * cells // n + 1
        assert facts["skip_keys"] == skip
        for name, v in [("before", 0), ("after", 1)]:
            wanted = []
            for layer in range(6):
                for head in range(4):
                    block = [0.0] * (cells * cols)
                    for q in range(n):
                        for k in range(skip, n):
                            at = q * cells // n * cols + (k - skip) * cells // n
                            block[at] = max(block[at], whole["v%d/pattern.%d" % (v, layer)][(head * n + q) * n + k])
                    wanted += block
            assert list(maps[name]) == wanted, (side, skip, name)
        for name in ["metric_before", "metric_after", "tv"]:
            assert maps[name] == all_keys[name], name
    for skip in [-1, n, 1.5, "x"]:
        server.error(server.post("overview", {"prompt": PROMPT, "skip_keys": skip}), 400, "argument")


def case_overview_is_run(server):
    server.start()
    status, _, body = server.post("overview", {"prompt": PROMPT, "edits": EDITS, "side": 5, "metric": "sink"})
    assert status == 200, body
    maps, facts = safetensors(body)
    wanted = capture("pattern@*:max=5")
    for name, v in [("before", 0), ("after", 1)]:
        assert maps[name] == sum((wanted["v%d/pattern.%d.max" % (v, layer)] for layer in range(6)), ()), name
    rows = rows_of(program("measure", "-p", TEXT, "--variant", EDITS, "--metrics", "sink,tv", "--json"), "values")
    import struct
    single = lambda x: struct.unpack("f", struct.pack("f", x))[0]
    values = {(r["metric"], r["variant"] != "baseline", r["layer"], r["head"]): r["value"] for r in rows}
    for layer in range(6):
        for head in range(4):
            at = layer * 4 + head
            assert maps["metric_before"][at] == single(values["sink", 0, layer, head])
            assert maps["metric_after"][at] == single(values["sink", 1, layer, head])
            assert maps["tv"][at] == single(values["tv", 1, layer, head])
    assert maps["tv"][LAYER * 4 + HEAD] > 0.01 and maps["tv"][0] == 0
    check_overview_without_keys(server, maps)
    server.error(server.post("overview", {"metric": "output_kl"}), 400, "argument")
    server.error(server.post("overview", {"metric": "sink,tv"}), 400, "argument")


def case_next_is_next(server):
    server.start()
    said = server.json("next", {"prompt": PROMPT, "edits": EDITS, "top": 7})
    told = rows_of(program("next", "-p", TEXT, "--variant", EDITS, "--top", "7", "--json"), "tokens")
    before, after = told[:7], told[7:]
    assert len(after) == 7 and after[0]["variant"] == EDITS
    tokens = {token["id"]: token for token in said["tokens"]}
    for token in before:
        mine = tokens[token["token"]]
        assert mine["before"] == token["probability"] and mine["rank_before"] == token["rank"], (mine, token)
    for token in after:
        mine = tokens[token["token"]]
        assert mine["after"] == token["probability"] and mine["rank_after"] == token["rank"], (mine, token)
        assert mine["text"] == token["text"]
    assert said["kl"] == after[0]["kl"], (said["kl"], after[0]["kl"])
    losses = server.json("losses", {"prompt": PROMPT, "edits": EDITS})
    told = program("next", "-p", TEXT, "--variant", EDITS, "--all", "--json")
    before, after = [[r for r in rows_of(told, "losses") if r["variant"] == v] for v in ["baseline", EDITS]]
    assert losses["tokens"][0] is None and len(losses["tokens"]) == len(before) + 1 == len(after) + 1
    for i, token in enumerate(before):
        assert losses["tokens"][i + 1]["loss"] == token["loss"] and losses["tokens"][i + 1]["rank"] == token["rank"]
    for i, token in enumerate(after):
        assert losses["tokens"][i + 1]["loss_after"] == token["loss"]
    assert losses["mean_loss"] == rows_of(told, "variants")[0]["mean_loss"]


def case_next_takes_rows_that_are_not_shown(server):
    """What is frozen after the last layer is the baseline's: logits are, and the server stays."""
    server.start()
    for n in [1, 20, 120]:
        tokens = [1] + [3 + 7 * i % 200 for i in range(n - 1)]
        for edits in ["logits[-1]=freeze + v@0=scale:0.5", "final_norm[-1]=freeze + v@0=scale:0.5"]:
            said = server.json("next", {"prompt": {"tokens": tokens}, "edits": edits, "top": 5})
            assert said["kl"] == 0 and all(t["logit_before"] == t["logit_after"] for t in said["tokens"]), (n, edits, said)


def case_curve_is_measure(server):
    server.start()
    epsilons = [1, 0.5, 1e-3, 0]
    for metric in ["sink", "tv", "output_kl"]:
        said = server.json("curve", {"prompt": PROMPT, "edits": "q@3.h1=scale:{eps}", "epsilons": epsilons, "layer": LAYER,
                                     "head": HEAD, "metric": metric})
        words = ["measure", "-p", TEXT, "--metrics", metric, "--json"]
        words += [] if metric == "output_kl" else ["--layers", "3", "--heads", "1"]
        for eps in epsilons:
            words += ["--variant", "q@3.h1=scale:%r" % eps]
        values = [row["value"] for row in rows_of(program(*words), "values")]
        mine = [said["baseline"]] + said["values"]
        assert mine == values, (metric, mine, values)
    for bad in [{"epsilons": []}, {"metric": ""}, {"edits": "q@3.h1=scale:0.5"}, {"epsilons": [0.1] * 300}, {"metric": "nothing"},
                {"epsilons": ["x"]}]:
        request = {"edits": "q@3.h1=scale:{eps}", "epsilons": epsilons, "layer": 3, "head": 1, "metric": "sink", **bad}
        assert server.post("curve", request)[0] == 400, bad


def case_generate_is_generate(server):
    server.start()
    for more, words in [({}, []), ({"temperature": 0.8, "top_k": 20, "top_p": 0.9, "min_p": 0.01, "seed": 5},
                                   ["--temperature", "0.8", "--top-k", "20", "--top-p", "0.9", "--min-p", "0.01", "--seed", "5"])]:
        said = server.json("generate", {"prompt": PROMPT, "edits": "q@3=scale:0.1", "n": 30, **more})
        told = json.loads(program("generate", "-p", TEXT, "--variant", "q@3=scale:0.1", "-n", "30", "--json", *words))[0]["variants"]
        assert said["baseline_ids"] == told[0]["ids"], (said, told[0])
        assert said["variant_ids"] == told[1]["ids"], (said, told[1])
        assert "".join(said["baseline"]) == told[0]["text"], (said["baseline"], told[0]["text"])
        assert len(said["variant"]) == len(said["variant_ids"])
        parts = [i for i, (a, b) in enumerate(zip(said["baseline_ids"], said["variant_ids"])) if a != b]
        assert said["differs_at"] == (parts[0] if parts else None)


def case_why_adds_up(server):
    server.start()
    told = capture("scores@3.h1")
    n = int(math.isqrt(len(told["v0/scores.3"])))
    for query, key in [(8, 3), (14, 0), (0, 0), (5, 5)]:
        said = server.json("why", {"prompt": PROMPT, "edits": EDITS, "layer": LAYER, "head": HEAD, "query": query, "key": key, "top": 5})
        for part, v in [("before", 0), ("after", 1)]:
            wanted = told["v%d/scores.3" % v][query * n + key]
            assert abs(said[part]["score"] - wanted) < 1e-5 * (1 + abs(wanted)), (said[part]["score"], wanted)
            assert abs(sum(said[part]["channels"]) - said[part]["score"]) < 1e-9 and len(said[part]["channels"]) == 32
        logits = [token["logit"] for token in said["writes"]]
        assert len(logits) == 5 and logits == sorted(logits, reverse=True)
        assert said["bias"] == 0
    server.error(server.post("why", {"layer": 3, "head": 1, "query": 99, "key": 0}), 400, "argument")
    server.error(server.post("why", {"layer": 3, "head": 1}), 400, "argument")


def case_why_has_a_bias(server):
    """ALiBi: the channels and what the distance adds are the score; the head's scores have no bias, and its slope."""
    model = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors", "bloom", "model.gguf")
    tokens = [1, 5, 9, 20, 33, 40, 7]
    server.start("-m", model)
    told = capture("scores@1.h2", edits="", prompt=["-m", model, "--tokens", ",".join(map(str, tokens))])["v0/scores.1"]
    place = {"prompt": {"tokens": tokens}, "layer": 1, "head": 2}
    maps, facts = safetensors(server.post("head", {**place, "edits": "q@1.h2=scale:0.5", "only": "scores"})[2])
    assert facts["slope"] == 2 ** -6, facts["slope"]
    for query, key in [(6, 0), (5, 3), (2, 2)]:
        said = server.json("why", {**place, "edits": "", "query": query, "key": key})
        bias, wanted = (key - query) * facts["slope"], told[query * len(tokens) + key]
        assert abs(said["bias"] - bias) < 1e-9, (said["bias"], bias)
        assert abs(said["before"]["score"] + bias - wanted) < 1e-5 * (1 + abs(wanted))
        assert abs(maps["scores"][query * len(tokens) + key] + bias - wanted) < 1e-5 * (1 + abs(wanted))


FIGURES = [
    {"kind": "modify"},
    {"kind": "modify", "prompts": [PROMPT], "layer": 2, "head": 1, "eps": "5e-1,logspace:1e-4,1e-2,3", "scale": "log",
     "all_heads": True, "baseline": True, "title": "It's <b>*&*</b>"},
    {"kind": "mean", "prompts": [PROMPT, {"text": "A good teacher"}], "colormap": "viridis", "labels": "index", "hide_axes": True},
    {"kind": "grid", "prompts": [PROMPT], "layer": 3, "head": 1, "cols": [{"label": "half", "edits": EDITS}], "baseline": True,
     "masked": "zero"},
    {"kind": "grid", "prompts": [PROMPT], "layer": 3, "head": 1, "rows": [{"label": "as it is", "edits": ""}], "scale": "linear",
     "range": "auto", "gamma": 0.5},
    {"kind": "grid", "prompts": [PROMPT], "layer": 3, "head": 1, "cols": [{"label": "half", "edits": EDITS}], "diff": True,
     "skip_keys": 1, "range": [-0.25, 0.25], "show": "pattern", "values": "always"},
    {"kind": "heads", "prompt": {"tokens": [1, 5, 9, 20, 33]}, "variant": "q@2.h0=scale:0.1"},
    {"kind": "heads", "prompt": {"text": "-p --chat 'x' \"y\" $HOME"}, "layers": "1-2"},
    {"kind": "rows", "prompts": [PROMPT], "query": -2, "values": "never", "panel_size": 120.5},
]


def case_figures_are_files(server):
    server.start()
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.abspath(QKV), os.path.join(folder, "qkv"))
        env = dict(os.environ, PATH=folder + ":" + os.environ["PATH"])
        n = 0
        refused = set()
        for figure in FIGURES:
            for kind in ["png", "svg", "pdf", "html", "safetensors", "npz", "csv"]:
                request = {**figure, "format": kind}
                status, _, dry = server.post("figure", {**request, "dry": True})
                status, headers, body = server.post("figure", request)
                if status == 400:  # what the format has no use for; the program refuses it, too
                    said = json.loads(body)["error"]["message"]
                    name = said.split("`")[1]
                    assert name in request, (request, said)
                    refused.add(name)
                    continue
                assert status == 200, (request, body[:300])
                command = json.loads(dry)
                done = subprocess.run(["sh", "-c", command["command"]], cwd=folder, env=env, capture_output=True)
                assert done.returncode == 0, (command, done.stderr)
                with open(os.path.join(folder, "figure." + kind), "rb") as file:
                    assert file.read() == body, (command, "differs")
                n += 1
                if kind in ("png", "svg", "pdf", "html"):
                    check_recipe(server, figure, body)
        assert n >= 50 and refused <= {"gamma", "labels", "hide_axes", "values", "panel_size"}, (n, refused)


def case_figure_names(server):
    """A file's name is in the command line, and in the recipe; a path or an option is not one."""
    server.start()
    figure = {"kind": "grid", "prompt": PROMPT, "layer": 1, "head": 0, "cols": [{"label": "Plain", "edits": ""}]}
    said = server.json("figure", {**figure, "format": "csv", "name": "mill-l1.0_a", "dry": True})
    assert said["words"][-2:] == ["--data", "mill-l1.0_a.csv"] and said["command"].endswith("--data mill-l1.0_a.csv"), said
    assert server.json("figure", {**figure, "dry": True})["words"][-2:] == ["-o", "figure.png"]
    status, _, body = server.post("figure", {**figure, "format": "svg", "name": "mill"})
    assert status == 200 and b"mill.svg" in body
    for name in ["", "-o", ".hidden", "../up", "a/b", "a b", "a;b", "a\nb", "ü", "x" * 121, 5]:
        server.error(server.post("figure", {**figure, "name": name, "dry": True}), 400, "argument")


def check_recipe(server, figure, body):
    status, _, answer = server.ask("POST", "/api/recipe", body, {"Content-Type": "application/octet-stream"})
    assert status == 200, answer
    said = json.loads(answer)
    prompt = figure.get("prompt") or (figure.get("prompts") or [PROMPT])[0]
    assert said["state"]["prompt"] == prompt and said["same_model"] and said["state"]["model"] == "default", said
    assert said["kind"] == figure["kind"], said
    assert all(isinstance(part, str) and part for part in said["left_out"]), said
    assert any("title" in part for part in said["left_out"]) == ("title" in figure), said
    for key in ("layer", "head"):
        if key in figure:
            assert said["state"][key] == figure[key], said
    if figure.get("cols"):
        assert said["state"]["edits"] == [EDITS], said


def case_figure_refusals(server):
    server.start()
    for bad in [{"kind": "x"}, {}, {"kind": "modify", "format": "gif"}, {"kind": "modify", "dpi": 5000}, {"kind": "modify", "dpi": 100, "format": "svg"},
                {"kind": "modify", "eps": "linspace:0,1,100000"}, {"kind": "modify", "panel_size": 1e6}, {"kind": "modify", "report": True},
                {"kind": "grid", "cols": [{"label": str(i), "edits": ""} for i in range(97)]}, {"kind": "modify", "prompts": [PROMPT] * 9},
                {"kind": "grid", "cols": [{"label": "a=b", "edits": EDITS}]}, {"kind": "modify", "prompt": PROMPT, "prompts": [PROMPT]},
                {"kind": "modify", "font": "No Such Font"}, {"kind": "modify", "layer": 99}, {"kind": "modify", "text": "paths"},
                {"kind": "modify", "hide_notes": True, "format": "csv"}, {"kind": "heads", "variant": "q@9=zero"}]:
        status, _, body = server.post("figure", bad)
        assert status == 400, (bad, status, body[:200])
    # What would take gigabytes is refused before anything is computed; its command is told all the same.
    large = {"kind": "grid", "prompt": PROMPT, "dpi": 210, "panel_size": 1000,
             "cols": [{"label": str(i), "edits": "q@3.h1=scale:%d" % i} for i in range(60)]}
    said = server.error(server.post("figure", large), 400, "argument")
    assert "million pixels, and 100 million are the most here" in said["message"], said
    assert "--dpi 210" in server.json("figure", {**large, "dry": True})["command"]
    many = {"kind": "grid", "prompts": [{"tokens": [5 + i] * 120} for i in range(8)], "format": "csv",
            "cols": [{"label": str(i), "edits": "q@3.h1=scale:%d" % i} for i in range(60)]}
    said = server.error(server.post("figure", many), 400, "argument")
    assert "this figure has 7 million cells, and 4 million are the most here" in said["message"], said
    for file in [b"", b"x", b"\x89PNG\r\n\x1a\n", b"%PDF-1.4", b"<svg></svg>", b"{}", os.urandom(5000)]:
        server.error(server.ask("POST", "/api/recipe", file, {"Content-Type": "application/octet-stream"}), 400, "format")
    with tempfile.TemporaryDirectory() as folder:
        sweep = os.path.join(folder, "s.sqlite")
        for words, kind in [(["lens", "-p", PROMPT["text"]], "study"), (["plot", sweep], "chart of a sweep")]:
            figure = os.path.join(folder, "figure.png")
            if kind != "study":
                subprocess.run([QKV, "sweep", "-p", PROMPT["text"], "--layers", "0", "--epsilon", "0.5", "--targets", "q",
                                "--metrics", "sink", "-o", sweep, "--quiet"], check=True)
            subprocess.run([QKV, *words, "-o", figure, "--quiet"], check=True, stdout=subprocess.DEVNULL)
            with open(figure, "rb") as file:
                answer = server.ask("POST", "/api/recipe", file.read(), {"Content-Type": "application/octet-stream"})
            said = server.error(answer, 400, "unsupported")
            assert said["message"] == "this is a %s: drop a figure of attention maps" % kind, said


def case_mistakes_in_edits(server):
    """The error says where in the text it is, and how much of it is wrong."""
    server.start()
    for edits, at, part in [("q@9=zero", 2, "9"), (EDITS + " + k@9=zero", 21, "9"), (EDITS + " + ", 19, ""),
                            ("  q@3.h1=zero  +   q@3=zero", 19, "q@3=zero"),
                            ("q@3.h1=zero + k@3=zero + nothing", 25, "nothing")]:
        for name in ["check", "head", "next", "overview"]:
            said = server.error(server.post(name, {"edits": edits, **({"layer": 1, "head": 1} if name == "head" else {})}), 400,
                                "plan" if "nothing" not in edits and not edits.endswith("+ ") else "syntax")
            assert said["at"] == at and edits[at:at + said["length"]] == part, (edits, said)
    # Which of a thousand it is, without trying one more edit after the other.
    many = ["v@%d[%d]=zero" % (layer, token) for layer in range(6) for token in range(100)]
    for place in [0, 1, 299, 598, 599]:
        again = many[:place + 1] + [many[place]] + many[place + 1:]
        edits = " + ".join(again)
        said = server.error(server.post("check", {"edits": edits, "prompt": {"tokens": [5] * 100}}), 400, "plan")
        at = len(" + ".join(again[:place + 1]) + " + ")
        assert said["at"] == at and edits[at:at + said["length"]] == many[place], (place, said)
    said = server.error(server.post("check", {"edits": "resid_post@1=add:@/etc/passwd#x"}), 400, "plan")
    assert "vectors from files are not available here" in said["message"], said
    said = server.json("check", {"edits": EDITS + " + k@2.g0[1:]=zero", "prompt": PROMPT})
    assert said["ok"] and [edit["site"] for edit in said["edits"]] == ["q", "k"], said
    assert said["edits"][1]["layers"] == [2] and said["edits"][1]["heads"] == [0] and said["edits"][1]["head_kind"] == "g"


def case_prompts(server):
    """Other scripts, chats, special tokens, and prompts that are too long."""
    server.start()
    for text in ["مرحبا بالعالم", "你好，世界", "👩‍👩‍👧‍👦 🇺🇳", "a\tb\nc", " ", "e\u0301", "\ufeffx"]:
        said = server.json("tokens", {"prompt": {"text": text}})
        assert said["text"] == text and said["n"] == len(said["ids"]) == len(said["texts"]), said
        assert server.post("head", {"prompt": {"text": text}, "layer": 0, "head": 0})[0] == 200
    server.error(server.post("tokens", {"prompt": {"text": "word " * 500}}), 400, "argument")
    server.error(server.post("tokens", {"prompt": {"tokens": [99999]}}), 400, "argument")
    chat = {"turns": [{"role": "user", "content": "hi"}]}
    said = server.error(server.post("tokens", {"prompt": {"chat": chat}}), 400, "unsupported")
    assert "chat template" in said["message"], said
    said = server.json("tokens", {"prompt": {"text": "<|bos|>", "parse_special": True}})
    assert said["n"] == 2, said
    assert server.ask("POST", "/api/tokens", b'{"prompt":{"text":"\xff"}}', {"Content-Type": "application/json"})[0] == 400


def case_hostile_json(server):
    server.start()
    kinds = [b"", b"null", b"[]", b"{", b"{}" * 2, b"[" * 100000, b'{"a":' * 5000, b'{"prompt":{"text":"' + b"a" * 900000 + b'"}}',
             b'{"layer":1e999}', b'{"layer":-0}', b'{"layer":1.0,"head":0}', b'{"head":99999999999999999999999}', b'{"layer":true}',
             b'{"prompt":{"tokens":[' + b"1," * 200000 + b"1]}}", b'{"\\u0000":1}', b'{"edits":"\\u0000"}', b'\xef\xbb\xbf{}',
             b'{"edits":"' + b"q@0=zero + " * 5000 + b'"}', b'{"edits":"q@' + b"9" * 19000 + b'=zero"}',
             b'{"edits":"q@0[' + b"0," * 9000 + b'0]=zero"}', b'{"model":null,"edits":null}', b"nan", b'{"layer":NaN}']
    endpoints = ["model", "tokens", "check", "head", "overview", "losses", "next", "curve", "generate", "why", "figure", "study"]
    before = None
    for turn in range(2):
        for body in kinds:
            for name in endpoints:
                status, _, answer = server.ask("POST", "/api/" + name, body, {"Content-Type": "application/json"})
                assert status in (200, 400), (name, body[:60], status, answer[:200])
                if status == 400:
                    message = json.loads(answer)["error"]["message"]
                    assert message and "\n" not in message and len(message) < 1100, message
        if turn == 0:
            before = server.memory()
    server.works()
    assert os.environ.get("SANITIZED") == "1" or server.memory() - before < 16 << 20, server.memory() - before
