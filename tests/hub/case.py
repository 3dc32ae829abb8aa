"""What every case has: a hub, an empty cache, and ways to run qkv and to look at what it left."""
import json
import os
import pathlib
import subprocess
import tempfile

from hub import Hub, Repository

from case_runner import Skipped  # noqa: F401

QKV = os.environ["QKV"]
NAME = "org/tiny"


def expect(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(w) for w in what))


def expect_equal(a, b, what=""):
    expect(a == b, what, "\n  is        %r\n  should be %r" % (a, b))


def pattern(size, seed=1):
    """Bytes of which no two stretches are alike."""
    import random

    return random.Random(seed).randbytes(size)


class Run:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err


class Case:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.work = pathlib.Path(self.folder.name)
        self.cache = self.work / "cache"
        self.hub = Hub()
        self.started = []
        self.variables = {}

    def end(self):
        for process in self.started:
            process.kill()
            process.wait()
        self.folder.cleanup()

    # ---- the hub ----

    def directory(self, name=NAME, **more):
        """A model as a directory, with a few files that are not to be fetched."""
        files = {
            "config.json": b'{"model_type": "llama"}',
            "generation_config.json": b"{}",
            "tokenizer.json": pattern(9000, 2),
            "tokenizer_config.json": b'{"a": 1}',
            "model.safetensors": pattern(3000000),
            "README.md": b"# a model",
            "pytorch_model.bin": pattern(5000, 3),
            "model.fp16.safetensors": pattern(5000, 4),
            "consolidated.safetensors": pattern(5000, 5),
            "onnx/model.onnx": pattern(5000, 6),
            "onnx/config.json": b"{}",
            "tokenizer.py": b"print()",
        }
        files.update(more.pop("files", {}))
        self.hub.repositories[name] = Repository(files, **more)
        return self.hub.repositories[name]

    def sharded(self, shards=("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")):
        index = {"metadata": {}, "weight_map": {"t%d" % i: shard for i, shard in enumerate(shards)}}
        repository = self.directory(
            files={
                "model.safetensors.index.json": json.dumps(index).encode(),
                "model-00001-of-00002.safetensors": pattern(70000, 7),
                "model-00002-of-00002.safetensors": pattern(80000, 8),
                "model-00003-of-00003.safetensors": pattern(90000, 9),
            }
        )
        del repository.files["model.safetensors"]
        return repository

    # ---- qkv ----

    def environment(self):
        unset = ("HF_", "HUGGING", "TRANSFORMERS_", "http_proxy", "https_proxy", "all_proxy", "SSL_CERT", "CURL_CA")
        env = {k: v for k, v in os.environ.items() if not k.startswith(unset) and not k.lower().endswith("_proxy")}
        env.update(HF_ENDPOINT=self.hub.endpoint, HF_HUB_CACHE=str(self.cache), HOME=str(self.work), NO_PROXY="*")
        env.pop("REQUESTS_CA_BUNDLE", None)
        env.pop("XDG_CACHE_HOME", None)
        env.update(self.variables)
        return env

    def start(self, *args):
        process = subprocess.Popen(
            [QKV, *args], env=self.environment(), cwd=self.work, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        self.started.append(process)
        return process

    def run(self, *args):
        process = self.start(*args)
        out, err = process.communicate(timeout=300)
        return Run(process.returncode, out, err)

    def pull(self, *args):
        """One that must succeed."""
        run = self.run("pull", *(args or (NAME,)))
        expect(run.status == 0, "qkv pull failed:", run.err)
        return run

    def refused(self, *args, says):
        """One that must fail, with one line that holds the text, and change nothing that counts."""
        run = self.run("pull", *(args or (NAME,)))
        expect(run.status == 1, "exit status", run.status, run.err)
        lines = [line for line in run.err.splitlines() if line.startswith("qkv: ")]
        expect_equal(len(lines), 1, "lines of error: " + run.err)
        for text in [says] if isinstance(says, str) else says:
            expect(text in lines[0], "the line does not say %r: %s" % (text, lines[0]))
        return run

    # ---- what is on the disk ----

    def store(self, name=NAME):
        return self.cache / ("models--" + name.replace("/", "--"))

    def blobs(self, name=NAME):
        folder = self.store(name) / "blobs"
        return sorted(p.name for p in folder.iterdir()) if folder.exists() else []

    def snapshot(self, repository, name=NAME):
        """Path to bytes of the snapshot of a repository's commit."""
        folder = self.store(name) / "snapshots" / repository.commit
        found = {}
        for path in sorted(folder.rglob("*")):
            if path.is_dir():
                continue
            expect(path.is_symlink(), path, "is not a link")
            target = os.readlink(path)
            expect(not os.path.isabs(target), path, "is a link to", target)
            found[str(path.relative_to(folder))] = path.read_bytes()
        return found

    def reference(self, revision="main", name=NAME):
        path = self.store(name) / "refs" / revision
        return path.read_text() if path.exists() else None

    def expect_pulled(self, repository, paths, revision="main", name=NAME):
        expect_equal(self.snapshot(repository, name), {p: repository.files[p] for p in paths}, "the snapshot")
        blobs = sorted({repository.blob(p) for p in paths})
        expect_equal([b for b in self.blobs(name) if b in blobs], blobs, "blobs")
        expect(not [b for b in self.blobs(name) if b.endswith(".incomplete")], "something is incomplete")
        if revision:
            expect_equal(self.reference(revision, name), repository.commit, "the reference")
