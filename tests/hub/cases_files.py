"""Which files are fetched, and what the cache looks like then."""
import os
import pathlib

from case import NAME, expect, expect_equal, pattern
from hub import LARGE, Repository

SETTINGS = ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"]
DIRECTORY = [*SETTINGS, "model.safetensors"]


def case_directory(case):
    repository = case.directory()
    run = case.pull()
    case.expect_pulled(repository, DIRECTORY)
    snapshot = case.store() / "snapshots" / repository.commit
    expect_equal(run.out, "%s\nnext: qkv info -m %s\n" % (snapshot, NAME), "standard output")
    for path in DIRECTORY:
        expect("qkv pull: %s, " % path in run.err, "no line about", path, "in", run.err)
    expect_equal(os.readlink(snapshot / "config.json"), "../../blobs/" + repository.blob("config.json"))
    # A complete file is not fetched again, and nothing is touched.
    before = {p: p.lstat().st_mtime_ns for p in case.cache.rglob("*")}
    case.hub.requests.clear()
    run = case.pull()
    expect_equal(run.out.splitlines()[0], NAME + " is up to date")
    expect_equal([r.path for r in case.hub.requests if "/resolve/" in r.path], [], "asked for")
    expect_equal({p: p.lstat().st_mtime_ns for p in case.cache.rglob("*")}, before, "files of the cache")


def case_shards(case):
    repository = case.sharded()
    case.pull()
    case.expect_pulled(
        repository,
        [*SETTINGS, "model.safetensors.index.json", "model-00001-of-00002.safetensors",
         "model-00002-of-00002.safetensors"],
    )
    expect_equal(len(case.hub.asked("index.json")), 1, "requests for the index")
    # From the index in the cache.
    case.hub.requests.clear()
    case.pull()
    expect_equal(case.hub.asked("/resolve/"), [], "asked for")


def case_only_weights(case):
    """Weights with another name, where they are the only ones."""
    repository = case.directory()
    for path in ("model.safetensors", "consolidated.safetensors"):
        del repository.files[path]
    case.pull()
    case.expect_pulled(repository, [*SETTINGS, "model.fp16.safetensors"])


def case_several_weights(case):
    repository = case.directory()
    del repository.files["model.safetensors"]
    case.refused(says=["several *.safetensors", "model.safetensors.index.json"])


def case_revisions(case):
    repository = case.directory(revisions=["main", "v1.0", "team/next"])
    case.pull(NAME + "@team/next")
    case.expect_pulled(repository, DIRECTORY, revision="team/next")
    expect_equal(case.reference("main"), None, "refs/main")
    case.pull(NAME + "@" + repository.commit)
    expect_equal(sorted(p.name for p in (case.store() / "refs").iterdir()), ["team"], "refs")
    case.pull(NAME + "@v1.0")
    expect_equal(case.reference("v1.0"), repository.commit)


def case_new_commit(case):
    """What two commits have in common is fetched once."""
    first = case.directory()
    case.pull()
    second = case.directory(files={"config.json": b'{"model_type": "llama", "x": 1}'})
    case.hub.requests.clear()
    case.pull()
    expect_equal([r.path.split("/")[-1] for r in case.hub.asked("/resolve/")], ["config.json"], "asked for")
    case.expect_pulled(second, DIRECTORY)
    expect_equal(case.snapshot(first)["config.json"], first.files["config.json"])


def case_links_instead_of_blobs(case):
    """Where links cannot be made, Hugging Face's tools leave files in the snapshot: they count."""
    repository = case.directory()
    case.pull()
    path = case.store() / "snapshots" / repository.commit / "model.safetensors"
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)
    (case.store() / "blobs" / repository.blob("model.safetensors")).unlink()
    case.hub.requests.clear()
    case.pull()
    expect_equal(case.hub.asked("/resolve/"), [], "asked for")
    expect(not path.is_symlink(), "the file was replaced")


def gguf_repository(case):
    files = {
        "tiny-Q4_K_M.gguf": pattern(50000, 1),
        "tiny-Q8_0.gguf": pattern(90000, 2),
        "BF16/tiny-BF16-00001-of-00002.gguf": pattern(60000, 3),
        "BF16/tiny-BF16-00002-of-00002.gguf": pattern(61000, 4),
        "mmproj-tiny-f16.gguf": pattern(5000, 5),
        "config.json": b"{}",
    }
    case.hub.repositories[NAME] = Repository(files)
    return case.hub.repositories[NAME]


def case_gguf(case):
    repository = gguf_repository(case)
    run = case.refused(says=["several GGUF files", "Q4_K_M (50 kB)", "Q8_0 (90 kB)", "BF16 (121 kB)"])
    expect("mmproj" not in run.err, run.err)
    expect(not case.cache.exists(), "something was written")
    case.refused(NAME + ":Q2_K", says=["no GGUF file 'Q2_K'", "Q4_K_M (50 kB)"])
    repository.files["other-Q8_0.gguf"] = pattern(5000)
    case.refused(NAME + ":Q8_0", says=["several GGUF files that 'Q8_0'", "tiny-Q8_0.gguf (90 kB)"])
    del repository.files["other-Q8_0.gguf"]
    run = case.pull(NAME + ":q4_k_m")
    path = case.store() / "snapshots" / repository.commit / "tiny-Q4_K_M.gguf"
    expect_equal(run.out.splitlines()[0], str(path), "standard output")
    case.expect_pulled(repository, ["tiny-Q4_K_M.gguf"])
    case.pull(NAME + ":tiny-Q8_0.gguf")
    run = case.pull(NAME + ":BF16")
    parts = ["BF16/tiny-BF16-00001-of-00002.gguf", "BF16/tiny-BF16-00002-of-00002.gguf"]
    case.expect_pulled(repository, [*parts, "tiny-Q4_K_M.gguf", "tiny-Q8_0.gguf"])
    expect(run.out.splitlines()[0].endswith(parts[0]), run.out)
    target = os.readlink(case.store() / "snapshots" / repository.commit / parts[0])
    expect_equal(target, "../../../blobs/" + repository.blob(parts[0]), "the link in a folder")


def case_gguf_only_one(case):
    """The only GGUF file is meant, and what was fetched is a model that opens."""
    data = (pathlib.Path(os.environ["MODELS"]) / "default.gguf").read_bytes()
    repository = Repository({"default.gguf": data, "config.json": b"{}", "model.bin": b"x"})
    case.hub.repositories[NAME] = repository
    run = case.pull()
    case.expect_pulled(repository, ["default.gguf"])
    run = case.run("info", "-m", run.out.splitlines()[0])
    expect(run.status == 0, run.err)


def case_gguf_part_missing(case):
    repository = gguf_repository(case)
    del repository.files["BF16/tiny-BF16-00002-of-00002.gguf"]
    case.refused(NAME + ":BF16", says="part 2")


def case_pickles(case):
    repository = case.directory()
    for path in [p for p in repository.files if p.endswith(".safetensors")]:
        del repository.files[path]
    case.refused(says=["pytorch_model.bin", "run code", "never fetched"])
    case.refused(NAME + ":pytorch_model.bin", says=["run code", "never fetched"])
    del repository.files["pytorch_model.bin"]
    case.refused(says="no weights")
    repository.files["adapter_model.safetensors"] = pattern(LARGE)
    del repository.files["config.json"]
    case.refused(says="no config.json")
    expect_equal(case.hub.asked("/resolve/"), [], "asked for")


def case_dry_run(case):
    repository = case.sharded()
    run = case.pull(NAME, "--dry-run")
    expect(not case.cache.exists(), "something was written")
    asked = [r.path.split("/")[-1] for r in case.hub.asked("/resolve/")]
    expect_equal(asked, ["model.safetensors.index.json"], "asked for")
    lines = run.out.splitlines()
    expect("     70 kB  to fetch  model-00001-of-00002.safetensors" in lines, run.out)
    expect(lines[-1].startswith("7 files, 159 kB; 159 kB to fetch"), run.out)
    case.pull()
    (case.store() / "blobs" / repository.blob("model-00001-of-00002.safetensors")).unlink()
    run = case.pull(NAME, "--dry-run")
    lines = run.out.splitlines()
    expect("     80 kB  there     model-00002-of-00002.safetensors" in lines, run.out)
    expect(lines[-1].endswith("; 70 kB to fetch"), run.out)


def case_list_without_digests(case):
    """A hub whose list has names only is asked about each file."""
    repository = case.directory()
    repository.siblings = [{"rfilename": path} for path in repository.files]
    case.pull()
    case.expect_pulled(repository, DIRECTORY)
    expect_equal(len(case.hub.asked("/resolve/", "HEAD")), len(DIRECTORY), "HEAD requests")
    expect_equal(case.hub.asked("/store/", "HEAD"), [], "redirects of HEAD that were followed")


def case_odd_names(case):
    """Names that mean something in an address or a link are files like any other."""
    path = "a folder/100% #1?&+ü-Q8_0.gguf"
    repository = Repository({path: pattern(5000)})
    case.hub.repositories[NAME] = repository
    case.pull()
    case.expect_pulled(repository, [path])


def many(n):
    return [
        {"rfilename": "checkpoints/step-%06d/notes-of-this-step.json" % i, "size": 100, "blobId": "%040x" % i}
        for i in range(n)
    ]


def expect_small_memory():
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    if os.environ.get("SANITIZED", "0") == "0":
        expect(used < 200, "memory in MiB:", used)


def case_many_files(case):
    repository = case.directory()
    repository.siblings = many(100000) + [repository.sibling(path) for path in repository.files]
    case.pull()
    case.expect_pulled(repository, DIRECTORY)
    expect_small_memory()


def case_many_pages(case):
    """A long list that the hub cuts short: pages have the rest."""
    repository = case.directory()
    repository.siblings = many(7901)
    entries = [
        {"type": "file", "path": e["rfilename"], "size": 100, "oid": e["blobId"]} for e in many(100000)
    ]
    entries.append({"type": "directory", "path": "onnx", "size": 0, "oid": "0" * 40})
    for path in repository.files:
        e = repository.sibling(path)
        entry = {"type": "file", "path": path, "size": e["size"], "oid": e["blobId"]}
        if "lfs" in e:
            entry["lfs"] = {"oid": e["lfs"]["sha256"], "size": e["size"], "pointerSize": 134}
        entries.append(entry)
    repository.tree = [entries[i : i + 5000] for i in range(0, len(entries), 5000)]
    case.pull()
    case.expect_pulled(repository, DIRECTORY)
    expect_equal(len(case.hub.asked("/tree/")), len(repository.tree), "pages")
    expect_small_memory()
