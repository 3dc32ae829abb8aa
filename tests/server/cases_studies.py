"""Studies through four doors: the command line, C, Python and the server give the same numbers. And what the server refuses."""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

from explorer import PROMPT, QKV

MODEL = os.environ.get("MODEL", "models/default.gguf")
RIVER, LAMPS = PROMPT["text"], "In the evening the lamps are lit, and the street is quiet."
PAIR = ["The river runs past the city, and people swim in the", "The church runs past the city, and people swim in the"]

# A small study of every kind: prompts, and options, which between them have fields of every type.
CASES = {
    "effects": ([RIVER, LAMPS], {"spec": "{\"sweep\": {\"targets\": \"none,q\"}, \"tables\": [{\"title\": \"T\", \"metric\": \"tv\", \"rows\": \"layer\","
                                         " \"columns\": \"head\"}]}\n",
                                 "layers": "1-2", "epsilon": "0.5,1e-3", "metrics": "sink,tv", "length": 8, "change": True, "scale": "linear"}),
    "lens": (["The river runs to the"], {"answer": " sea", "top": 3, "heads": True}),
    "patch": (PAIR, {"metric": ["logit_diff: river/ church", "kl"], "site": "resid_pre,z", "layers": "0-1", "top": 4}),
    "compare": ([RIVER, LAMPS], {"edit": "q@3.h1=zero + v@1=scale:0.5", "distance": "js", "top": 5}),
    "massive": ([RIVER, LAMPS], {"size": 50, "ratio": 20.5, "layer": 5}),
    "check": ([], {"length": 9}),
    "weights": ([], {"circuit": "composition", "layers": "0-1", "minus_random": True}),
    "next": ([RIVER], {"variant": ["z@3.h1=zero", "v@*=scale:0.5"], "top": 3, "of": " river, sea", "diff": " river/ sea"}),
    "measure": ([RIVER, LAMPS], {"variant": "q@3=scale:1e-3", "metrics": "sink,entropy,tv", "layers": "2-3"}),
    "modify": ([RIVER], {"layer": 2, "head": 1, "eps": "0.5,1e-3", "baseline": True}),
    "mean": ([RIVER], {"layer": 2, "head": 1, "diff": True}),
    "grid": ([RIVER], {"layer": 2, "head": 1, "row": ["Queries=q@2=scale:0.5", "Keys=k@2=zero"], "col": "All=z@1=zero"}),
    "pattern": ([RIVER], {"layer": 2, "head": "1,2", "skip_keys": 1}),
    "heads": ([RIVER], {"variant": "q@2=scale:0.5", "layers": "1-2"}),
    "rows": ([RIVER], {"layers": "1-2", "query": -1}),
    "roles": ([RIVER], {"length": 12, "sequences": 1, "seed": 3, "sink": 0.3, "pairs": "The river runs past the river\t river\n"}),
    "ships": ([RIVER, LAMPS], {"target": "k", "epsilon": 0.001, "top": 3}),
    "sahara": ([RIVER, LAMPS], {"steps": 2, "op": "mean", "space": "feature"}),
    "phrase-rates": ([RIVER, LAMPS], {"heads": "3.h0,2.h1", "phrases": "river\nthe\n", "new_tokens": 6, "ignore_case": True}),
    "streaming-llm": ([RIVER], {"sinks": "0,1", "recent": 4, "length": 12}),
    "h2o": ([RIVER], {"budgets": "4,6", "only_all": True}),
    "snapkv": ([RIVER], {"budgets": "4", "window": 2, "prompt_tokens": 8, "only_all": True}),
    "kivi": ([RIVER], {"bits": "2", "group": 2, "keep": 4, "only_all": True}),
    "retrieval-heads": ([LAMPS], {"decode": "forced", "lengths": "64", "depths": "0,1", "needle": "The boat on the lake is blue.",
                                  "question": "Which colour is the boat on the lake?", "top": 6}),
}


def request_of(kind, **more):
    prompts, options = CASES[kind]
    return {"kind": kind, "prompts": [{"text": text} for text in prompts], "options": options, **more}


def plain(tables):
    """{name: (columns, rows)}"""
    return {table["name"]: (table["columns"], table["rows"]) for table in tables}


# ---- the doors ----


def through_command(said, folder):
    """The command line that the server tells, and what it writes to standard output."""
    for name, field in said["files"].items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(said["options"][field])
    done = subprocess.run([QKV, *said["words"][1:], *said.get("more", [])], capture_output=True, cwd=folder, timeout=300)
    assert done.returncode == 0, (said["command"], done.stderr)
    return done.stdout


def through_c(kind):
    prompts, options = CASES[kind]
    done = subprocess.run([os.environ["STUDY_DOOR"], MODEL, kind, json.dumps(options), *prompts], capture_output=True, timeout=300)
    assert done.returncode == 0, (kind, done.stderr)
    return plain(json.loads(done.stdout))


PYTHON = """
import json, math, sys
try:
    import numpy, qkv
except ImportError as why:
    sys.exit(print(json.dumps("the module cannot be imported: %s" % why)))
if not hasattr(qkv.Model, "study"):
    sys.exit(print(json.dumps("the module has no studies")))
model = qkv.open(sys.argv[1], threads=1)

def value(cell):
    cell = cell.item() if hasattr(cell, "item") else cell
    return None if cell == "" or isinstance(cell, float) and math.isnan(cell) else cell

answers = {}
for kind, (prompts, options) in json.load(sys.stdin).items():
    tables = model.study(kind, *prompts, **options).tables
    answers[kind] = [{"name": name, "columns": list(table.dtype.names), "rows": [[value(row[c]) for c in table.dtype.names] for row in table]}
                     for name, table in tables.items()]
print(json.dumps(answers))
"""


def through_python():
    """{kind: tables}, or a text: why there are none."""
    environment = {**os.environ, "PYTHONPATH": os.environ.get("PYTHON_DOOR", "")}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", PYTHON, MODEL], input=json.dumps(CASES).encode(), capture_output=True,
                          timeout=300, env=environment)
    assert done.returncode == 0, done.stderr.decode()
    said = json.loads(done.stdout)
    return said if isinstance(said, str) else {kind: plain(tables) for kind, tables in said.items()}


def without_empty(tables):
    """The module has one value for an empty text and none."""
    return {name: (columns, [[None if cell == "" else cell for cell in row] for row in rows]) for name, (columns, rows) in tables.items()}


def case_study_doors(server):
    server.start("-t", "1")
    status, _, body = server.ask("GET", "/api/kinds")
    assert status == 200, body
    kinds = [kind["name"] for kind in json.loads(body)["kinds"]]
    assert sorted(kinds) == sorted(CASES), "every kind has a case here: %s" % (set(kinds) ^ set(CASES))
    python = through_python()
    if isinstance(python, str):
        print("without Python: " + python)
    for kind in kinds:
        answer = server.json("study", request_of(kind))
        tables = plain(answer["tables"])
        assert next(iter(tables.values()))[1], (kind, "the first table is empty")
        with tempfile.TemporaryDirectory() as folder:
            answer.update(options=CASES[kind][1], more=["-t", "1"])
            written = json.loads(through_command(answer, folder))
        assert plain(written["tables"]) == tables, kind
        for same in ["study", "title", "notes", "warnings"]:
            assert written[same] == answer[same], (kind, same)
        assert written["recipe"]["id"] == answer["recipe"]["id"] == answer["id"], kind
        assert through_c(kind) == tables, kind
        if not isinstance(python, str):
            assert python[kind] == without_empty(tables), kind


def case_study_files(server):
    """Pictures, pages and tables are the files of the command line, byte for byte; the fields of the look have their effect."""
    server.start()
    types = {"png": "image/png", "svg": "image/svg+xml", "pdf": "application/pdf", "html": "text/html; charset=utf-8",
             "csv": "text/csv; charset=utf-8", "sqlite": "application/octet-stream"}
    assert json.loads(server.ask("GET", "/api/kinds")[2])["formats"] == ["json", *types]
    looks = {"png": {"dpi": 72, "title": "A *river*"}, "svg": {"width": 240.5, "no_notes": True}, "csv": {"table": "answer"}}
    wanted = [("lens", format) for format in types] + [("patch", "sqlite"), ("patch", "html"), ("weights", "csv"), ("phrase-rates", "svg")]
    for kind, format in wanted:
        look = looks.get(format, {}) if kind == "lens" else {}
        request = request_of(kind, format=format, name="a-file", options={**CASES[kind][1], **look})
        status, headers, body = server.post("study", request)
        assert status == 200 and headers["content-type"] == types[format], (kind, format, status, body[:200])
        with tempfile.TemporaryDirectory() as folder:
            said = server.json("study", {**request, "dry": True})
            printed = through_command({**said, "options": request["options"]}, folder)
            path = os.path.join(folder, "a-file." + format)
            assert os.path.exists(path) == (said["words"][-1] != "-"), said
            if os.path.exists(path):
                with open(path, "rb") as file:
                    printed = file.read()
        assert printed == body, (kind, format, len(printed), len(body))
    answer = server.json("study", request_of("lens"))
    assert [picture["name"] for picture in answer["pictures"]][:2] == ["heads", "blocks"] and answer["n_printed"] == 1, answer["pictures"]
    assert "recipe" not in server.json("study", request_of("lens", options={"no_recipe": True}))


def case_study_prompts(server):
    """Token ids, the library's own prompts, a chat without a template; the same request again is kept, and one without prompts is another."""
    server.start("-p", RIVER)
    ids = server.json("tokens", {"prompt": PROMPT})["ids"]
    as_text = server.json("study", {"kind": "lens", "prompts": [PROMPT]})
    as_ids = server.json("study", {"kind": "lens", "prompts": [{"tokens": ids}]})
    assert plain(as_ids["tables"]) == plain(as_text["tables"]) and "--tokens" in as_ids["words"]
    status, headers, body = server.post("study", {"kind": "lens", "prompts": [PROMPT], "client": "a", "slot": "b", "seq": 3})
    assert headers["server-timing"] == "kept" and json.loads(body) == as_text
    own = server.json("study", {"kind": "roles", "options": {"length": 5, "sequences": 1}})
    one = server.json("study", {"kind": "roles", "options": {"length": 5, "sequences": 1}, "prompts": [PROMPT]})
    assert plain(own["tables"]) != plain(one["tables"]) and "-p" not in own["words"]
    chat = {"chat": {"turns": [{"role": "user", "content": RIVER}]}}
    said = server.error(server.post("study", {"kind": "lens", "prompts": [chat]}), 400, "unsupported")
    assert "no chat template" in said["message"], said
    said = server.error(server.post("study", {"kind": "lens"}), 400, "argument")
    assert said["message"] == "the study 'lens' wants 1 prompt, and 0 are given", said


def case_study_two_models(server):
    """A comparison with another model of the list; a name that is none reaches no file."""
    with tempfile.TemporaryDirectory() as folder:
        other = shutil.copy(MODEL, os.path.join(folder, "other.gguf"))
        server.start("-t", "1", "-m", other)
        names = [model["name"] for model in json.loads(server.ask("GET", "/api/state")[2])["models"]]
        assert names[0] == "other.gguf" and len(names) > 1, names
        request = {"kind": "compare", "prompts": [PROMPT], "model": names[1], "second_model": names[0], "options": {"edit": "q@0=zero"}}
        answer = server.json("study", request)
        written = json.loads(through_command({**answer, "more": ["-t", "1"]}, folder))
        assert plain(written["tables"]) == plain(answer["tables"]) and written["notes"] == answer["notes"], answer["notes"]
        assert answer["words"].count("-m") == 2 and answer["words"][5] == other, answer["words"]
        for second in [other, "/etc/passwd", "", "x" * 5000, 7]:
            server.error(server.post("study", {**request, "second_model": second}), 400, "argument")
        said = server.error(server.post("study", {"kind": "compare", "prompts": [PROMPT]}), 400, "argument")
        assert "second_model" in said["message"], said


# ---- what is refused ----


def case_study_refusals(server):
    """One clear line each, whatever is wrong."""
    server.start()
    with tempfile.TemporaryDirectory() as folder:
        vector = os.path.join(folder, "v.safetensors")
        subprocess.run([QKV, "run", "-p", RIVER, "--capture", "resid_pre@0", "-o", vector, "--quiet"], check=True)
        results = os.path.join(folder, "results.sqlite")
        lens, patch, compare = request_of("lens"), request_of("patch"), request_of("compare")
        bad = {
            "kind` is missing": {},
            "no study \"x\"": {"kind": "x"},
            "kind` is a text": {"kind": ["lens"]},
            "kind` has 4000 bytes": {"kind": "x" * 4000},
            "`format` must be": {**lens, "format": "gif"},
            "`name` is of letters": {**lens, "name": "../x"},
            "no field `prompt` here": {"kind": "lens", "prompt": PROMPT},
            "no field `results` here": {**lens, "results": results},
            "has no field \"anser\"": {**lens, "options": {"anser": " sea"}},
            "has no field \"results\"": {**patch, "options": {**patch["options"], "results": results}},
            "has no field \"page\"": {**lens, "options": {"page": True}},
            "has no field \"hide_notes\"": {**lens, "options": {"hide_notes": True}, "format": "png"},
            "`options` is an object": {**lens, "options": ["answer"]},
            "`top` wants a whole number from 1": {**lens, "options": {"top": "3"}},
            "not '1.5'": {**lens, "options": {"top": 1.5}},
            "not '-1'": {**lens, "options": {"top": -1}},
            "`heads` wants true or false": {**lens, "options": {"heads": "3"}},
            "`answer` wants a text": {**lens, "options": {"answer": {"text": " sea"}}},
            "`distance` wants tv|js|kl|max": {**compare, "options": {"edit": "q@0=zero", "distance": "a\nb"}},
            "`answer` has 20001 bytes": {**lens, "options": {"answer": "a" * 20001}},
            "`metric` has 33 items": {**patch, "options": {"metric": ["logit: %d" % i for i in range(33)]}},
            "`metric` has 40000 items": {**patch, "options": {"metric": "\n" * 39999}},
            "`phrases` has 20001 lines": {**request_of("phrase-rates"), "options": {"heads": "3.h0", "phrases": "a\n" * 20000}},
            "`width` is a number of points": {**lens, "options": {"width": "85mm"}, "format": "svg"},
            "`dpi` is 2400; 600": {**lens, "options": {"dpi": 2400}, "format": "png"},
            "million pixels": {**lens, "options": {"width": 14400}, "format": "png"},
            "`dpi` has an effect on png alone": {**lens, "options": {"dpi": 100}, "format": "csv"},
            "`picture` has an effect on": {**lens, "options": {"picture": "lens"}},
            "next is not written as png": {**request_of("next"), "format": "png"},
            "there is no \"none\"": {**lens, "options": {"picture": "none"}, "format": "png"},
            "vectors from files are not available here": {**compare, "options": {"edit": "resid_pre@0=add:@%s#v0/resid_pre.0" % vector}},
            "`edit` has 30008 bytes": {**compare, "options": {"edit": "q@0=zero" + " " * 30000}},
            "compare wants a `second_model`": {**compare, "options": {}},
            "lens takes one model": {**lens, "second_model": "default"},
            "weights takes no prompts": {"kind": "weights", "prompts": [PROMPT]},
            "'lens' takes 1 prompt, and 2 are given": {**lens, "prompts": [PROMPT, PROMPT]},
            "`prompts` is a list of 64 at most": {**compare, "prompts": [PROMPT] * 65},
            "are the most of a study here": {**compare, "prompts": [{"tokens": [5] * 100}] * 64},
            "the prompt is empty": {**lens, "prompts": [{"text": ""}]},
            "`prompt` is an object": {**lens, "prompts": ["The river"]},
            "only prompt of a request": {**compare, "prompts": [PROMPT, {"chat": {"turns": [{"role": "user", "content": "a"}]}}]},
            "prompts of patch are texts": {**patch, "prompts": [{"tokens": [5, 6]}, {"tokens": [5, 7]}]},
            "`clean` and `corrupt`": {**patch, "prompts": [PROMPT]},
            "not both": {**patch, "options": {**patch["options"], "pairs": "clean,corrupt\na,b\n"}},
            "values are the most here": many_cells(),
        }
        for part, request in bad.items():
            status, headers, body = server.post("study", request)
            message = json.loads(body).get("error", {}).get("message", "") if status != 200 else "it was made"
            assert status == 400 and part in message and "\n" not in message and len(message) < 600, (part, status, message)
        assert not os.path.exists(results)
        # What is named is a text, not a file: a path is a phrase, and a table of one line.
        phrases = server.json("study", request_of("phrase-rates", options={"heads": "3.h0", "phrases": "/etc/passwd", "new_tokens": 2}))
        assert "root:" not in json.dumps(phrases["tables"]), phrases["tables"]
        server.error(server.post("study", {**patch, "prompts": [], "options": {"metric": "kl", "pairs": "/etc/passwd"}}), 400, "format")
    server.works()


def many_cells():
    """10,000 cells: 28 pairs of 16 tokens at 6 layers, at four sites."""
    row = "%s,%s\n" % (RIVER.replace(",", ""), RIVER.replace("river", "church").replace(",", ""))
    return {"kind": "patch", "options": {"metric": "kl", "site": "resid_pre,resid_post,attn_out,mlp_out", "pairs": "clean,corrupt\n" + 28 * row}}


# ---- what is stopped ----

SLOW = {
    "roles": ([RIVER], {"length": 60, "sequences": 10000}),
    "phrase-rates": ([RIVER] * 64, {"heads": "3.h0", "phrases": "zebra", "new_tokens": 100}),
    "sahara": ([RIVER + " " + LAMPS] * 64, {"steps": 20}),
    "ships": ([" ".join([RIVER] * 3)] * 64, {}),
    "retrieval-heads": ([LAMPS], {"decode": "forced", "lengths": "100", "needle": "The boat on the lake is blue.",
                                  "question": "Which colour?", "depths": ",".join("%g" % (i / 2000) for i in range(2000))}),
    "kivi": ([" ".join([RIVER] * 3)] * 64, {}),
}


def case_study_stops(server):
    """A newer request of the same slot ends a study within moments, and so does a client that leaves."""
    server.start()
    for kind, (prompts, options) in SLOW.items():
        request = {"kind": kind, "prompts": [{"text": text} for text in prompts], "options": options, "client": "c", "slot": "s"}
        answers = []
        before = server.processor_time()
        thread = threading.Thread(target=lambda: answers.append(server.post("study", {**request, "seq": 1})))
        thread.start()
        while server.processor_time() < before + 0.2 and not answers:  # until it computes
            time.sleep(0.01)
        assert not answers, (kind, "it was done at once", answers[0][2][:300])
        start = time.time()
        assert server.post("study", request_of("lens", client="c", slot="s", seq=2))[0] == 200
        thread.join()
        assert time.time() - start < 10, (kind, time.time() - start)
        server.error(answers[0], 409, "replaced")
        body = json.dumps(request).encode()
        with socket.create_connection(("127.0.0.1", server.port), 10) as s:
            s.sendall(b"POST /api/study HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
                      b"Authorization: Bearer %s\r\n\r\n" % (len(body), server.token.encode()) + body)
            before = server.processor_time()
            while server.processor_time() < before + 0.2:
                time.sleep(0.01)
        start = time.time()
        assert server.post("next", {"prompt": PROMPT, "top": 3 + len(kind)})[0] == 200
        assert time.time() - start < 10, (kind, time.time() - start)
    server.works()
