"""What the hub refuses, what qkv refuses, and what of both is said."""
import json
import socket
import time

from case import NAME, Skipped, expect, expect_equal, pattern
from cases_files import DIRECTORY
from hub import Repository

WEIGHTS = "model.safetensors"
TOKEN = "hf_secretSecretSecret"


def always(status, headers=()):
    return lambda request: request.reply(status, b"refused", headers)


def first(n, status, headers=(), where="/"):
    """Refuses the first n requests."""
    left = [n]

    def rule(request):
        if where not in request.path:
            return False
        left[0] -= 1
        return left[0] >= 0 and request.reply(status, b"refused", headers)

    return rule


def expect_secret(case, run):
    for text in (run.out, run.err):
        expect(TOKEN not in text, "the token is shown:", text)


# ---- tokens ----


def case_token(case):
    """The token goes to the endpoint's own host and port, and not along a redirect to another port."""
    case.variables["HF_TOKEN"] = TOKEN + "\n"
    repository = case.directory()
    run = case.pull()
    case.expect_pulled(repository, DIRECTORY)
    expect_secret(case, run)
    for request in case.hub.requests:
        given = request.headers.get("Authorization")
        expect_equal(given, "Bearer " + TOKEN if request.at_hub else None, request.path)
    expect([r for r in case.hub.requests if not r.at_hub], "nothing was redirected")


def case_token_on_the_same_host(case):
    """A redirect within the endpoint (of a model that was renamed) keeps it; a host of another name does not."""
    case.variables["HF_TOKEN"] = TOKEN
    repository = case.directory()
    other = case.hub.store.address.replace("127.0.0.1", "localhost")

    def renamed(request):
        if request.path.startswith("/org/tiny/resolve/") and "tokenizer.json" not in request.path:
            return request.reply(307, b"", [("Location", request.path.replace("/org/tiny/", "/org/renamed/"))])
        if "/org/tiny/resolve/" in request.path:
            return request.reply(302, b"", [("Location", other + "/store/org/tiny/tokenizer.json")])
        return False

    case.hub.rules.append(renamed)
    case.hub.repositories["org/renamed"] = repository
    case.pull()
    expect_equal({r.headers.get("Authorization") for r in case.hub.asked("/org/renamed/resolve/")}, {"Bearer " + TOKEN})
    expect_equal({r.headers.get("Authorization") for r in case.hub.asked("/store/")}, {None})
    expect_equal({r.headers.get("Host") for r in case.hub.asked("/store/org/tiny/tokenizer")}, {other[7:]})


def case_token_file(case):
    path = case.work / ".cache" / "huggingface" / "token"
    path.parent.mkdir(parents=True)
    path.write_text(" %s\n" % TOKEN)
    case.directory()
    case.pull()
    expect_equal(case.hub.asked("/api/")[-1].headers.get("Authorization"), "Bearer " + TOKEN, "from the home")
    other = case.work / "other"
    other.write_text("hf_other")
    case.variables["HF_TOKEN_PATH"] = str(other)
    case.pull()
    expect_equal(case.hub.asked("/api/")[-1].headers.get("Authorization"), "Bearer hf_other", "HF_TOKEN_PATH")
    other.write_text("two\r\nX-More: lines")
    run = case.refused(says="token")
    expect("X-More" not in run.err, run.err)
    case.variables["HF_HUB_DISABLE_IMPLICIT_TOKEN"] = "1"
    case.pull()
    expect_equal(case.hub.asked("/api/")[-1].headers.get("Authorization"), None, "disabled")


def case_unauthorized(case):
    case.directory()
    case.hub.rules = [always(401)]
    case.refused(says=["wants a token (401)", "set HF_TOKEN", case.hub.endpoint + "/" + NAME])
    case.hub.rules = [always(403, [("X-Error-Code", "GatedRepo")])]
    case.refused(says=["is gated (403)", "accept its licence at " + case.hub.endpoint + "/" + NAME, "set HF_TOKEN"])
    case.variables["HF_TOKEN"] = TOKEN
    run = case.refused(says=["is gated", "refused the token (403)", "accept its licence"])
    expect_secret(case, run)
    case.hub.rules = [always(401)]
    run = case.refused(says=["refused the token (401)", "check HF_TOKEN"])
    expect_secret(case, run)
    expect_equal(len(case.hub.requests), 4, "attempts")
    expect(not case.cache.exists(), "something was written")


def case_gated_files(case):
    """A gated model lists its files to everybody, and gives them to no one."""
    case.directory()
    gated = always(401, [("X-Error-Code", "GatedRepo")])
    case.hub.rules = [lambda r: "/resolve/" in r.path and gated(r)]
    case.refused(says=["is gated (401)", "set HF_TOKEN"])
    expect_equal(case.reference(), None, "the reference")


def case_store_refuses(case):
    """Who stores the files knows of no token and of no repository: what it says is not taken for the hub's word."""
    repository = case.directory()
    case.variables["HF_TOKEN"] = TOKEN
    host = case.hub.store.address.split("//")[1]
    for status in (401, 403, 404):
        refuses = always(status)
        case.hub.rules = [lambda r: "/store/" in r.path and WEIGHTS in r.path and refuses(r)]
        run = case.refused(says="%s answered %d for %s, %s" % (host, status, NAME, WEIGHTS))
        expect("HF_TOKEN" not in run.err and "no file" not in run.err, run.err)
    case.hub.rules = []
    case.pull()
    case.expect_pulled(repository, DIRECTORY)


# ---- statuses ----


def case_not_found(case):
    repository = case.directory()
    case.refused("org/other", says=["no model org/other", "404"])
    case.refused(NAME + "@v9", says="no revision 'v9'")
    case.refused(NAME + ":Q4_K_M", says="no GGUF files")
    repository.siblings = [repository.sibling(p) for p in repository.files]
    del repository.files["tokenizer.json"]
    case.refused(says=["no file 'tokenizer.json'", "404"])
    expect_equal(case.reference(), None, "the reference")
    case.hub.rules = [always(404)]
    case.refused(says=["no model org/tiny", "or no revision 'main'"])


def case_too_many_requests(case):
    repository = case.directory()
    case.hub.rules = [
        first(1, 429, [("Retry-After", "2")], "/api/"),
        first(1, 429, [("Retry-After", "2")], "/store/"),
        first(1, 429, [], "/config.json"),
    ]
    begin = time.monotonic()
    run = case.pull()
    expect(time.monotonic() - begin >= 5, "it did not wait as long as it was told")
    case.expect_pulled(repository, DIRECTORY)
    expect_equal(run.err.count("answered 429 and asks for a pause; trying again in 2 s"), 2, run.err)
    expect_equal(run.err.count("trying again"), 3, run.err)


def case_far_too_many_requests(case):
    case.directory()
    case.hub.rules = [always(429, [("Retry-After", "100000")])]
    case.refused(says=["429", "100000 s"])
    expect_equal(len(case.hub.requests), 1, "attempts")


def case_server_error(case):
    repository = case.directory()
    case.hub.rules = [first(1, 500, where="/api/"), first(1, 502, where="/store/")]
    case.pull()
    case.expect_pulled(repository, DIRECTORY)
    case.hub.rules = [always(503)]
    case.hub.requests.clear()
    case.refused(says=["503", "try later"])
    expect_equal(len(case.hub.requests), 5, "attempts")


def case_other_status(case):
    case.directory()
    case.hub.rules = [always(451, [("X-Error-Message", "not here\x1b[31m")])]
    run = case.refused(says=["451", "not here"])
    expect("\x1b" not in run.err, "control characters reach the terminal")
    case.hub.rules = [always(304)]
    case.refused(says="304")


# ---- what is wrong with what comes ----


def case_wrong_digest(case):
    for path in ("config.json", WEIGHTS):
        repository = case.directory()
        repository.siblings = [repository.sibling(p) for p in repository.files]
        repository.files[path] = bytes(len(repository.files[path]))
        case.refused(says=[path, "digest"])
        blob = [e for e in repository.siblings if e["rfilename"] == path][0]
        blob = blob["lfs"]["sha256"] if "lfs" in blob else blob["blobId"]
        expect(not [b for b in case.blobs() if b.startswith(blob)], "it is still there")
        expect_equal(case.reference(), None, "the reference")
        expect(path not in case.snapshot(repository), "it has a link")


def case_wrong_size(case):
    for size in (len(pattern(3000000)) - 1, 2999990, 3000010):
        repository = case.directory()
        repository.siblings = [repository.sibling(p) for p in repository.files]
        for e in repository.siblings:
            if e["rfilename"] == WEIGHTS:
                e["size"] = e["lfs"]["size"] = size
        case.refused(says=[WEIGHTS, "size"])
        expect(not [b for b in case.blobs() if b.endswith(".incomplete")], "it is still there")


def case_endless_body(case):
    """More than was promised, without a length."""
    repository = case.directory()

    def endless(request):
        if "/store/" not in request.path or WEIGHTS not in request.path:
            return False
        request.send_response(200)
        request.send_header("Connection", "close")
        request.end_headers()
        while True:
            request.write(bytes(1 << 20))

    case.hub.rules = [endless]
    case.refused(says=[WEIGHTS, "more bytes"])
    expect(case.hub.sent(WEIGHTS) < 100 << 20, "it took", case.hub.sent(WEIGHTS))
    expect_equal(case.reference(), None, repository)


def case_endless_list(case):
    def endless(request):
        request.send_response(200)
        request.send_header("Connection", "close")
        request.end_headers()
        request.write(b'{"siblings": [')
        while True:
            request.write(b'{"rfilename": "a"}, ' * 50000)

    case.hub.rules = [endless]
    case.refused(says=[NAME, "larger than 256 MiB"])


def case_endless_headers(case):
    def endless(request):
        request.send_response(200)
        request.flush_headers()
        while True:
            request.wfile.write(b"X-More: " + b"x" * 1000 + b"\r\n")

    case.hub.rules = [endless]
    case.refused(says="headers")
    case.hub.rules = [lambda r: r.reply(200, b"{}", [("X-Long", "x" * 200000)])]
    case.refused(says="127.0.0.1")


def case_endless_redirects(case):
    case.hub.rules = [lambda r: r.reply(302, b"", [("Location", r.path)])]
    case.refused(says="redirects without end")
    expect_equal(len(case.hub.requests), 11, "requests")


def case_redirects_elsewhere(case):
    secret = case.work / "secret"
    secret.write_text('{"sha": "%s", "siblings": []}' % ("a" * 40))
    for where in ("file://%s" % secret, "ftp://127.0.0.1/x", "gopher://127.0.0.1/x", "http://[", "//"):
        case.hub.rules = [lambda r: r.reply(302, b"", [("Location", where)])]
        case.refused(says="127.0.0.1")


def case_bad_names(case):
    for path in ("../x", "/etc/x", "a/../../x", "a//b", "..", "./x", "a\\..\\x.json", "a\nb", "a\x00b.json", "a\x7f", ""):
        repository = case.directory()
        repository.siblings = [repository.sibling(p) for p in DIRECTORY] + [
            {"rfilename": path, "size": 1, "blobId": "0" * 40}
        ]
        case.refused(says=NAME)
        expect(not case.cache.exists(), "something was written for", repr(path))
    case.refused("org/../x", says="org/../x")
    case.refused(NAME + "@../../x", says="not a model's name")
    case.refused(NAME + ":../x.gguf", says="not a model's name")
    expect_equal(case.hub.asked("/resolve/"), [], "asked for")


def case_bad_shards(case):
    for shard in ("../x.safetensors", "/etc/x.safetensors", "pytorch_model.bin", "not-there.safetensors", "a\x00", 5):
        case.sharded([shard])
        case.refused(says="model.safetensors.index.json")
        expect(not case.cache.exists(), "something was written for", repr(shard))
    for text in (b"", b"{", b"[]", b'{"weight_map": {}}', b'{"weight_map": {"a": "model-00001-of-0', b'{"weight_map": 3}'):
        repository = case.sharded()
        repository.files["model.safetensors.index.json"] = text
        case.refused(says="model.safetensors.index.json")


def case_bad_lists(case):
    good = {"rfilename": "tiny.gguf", "size": 5, "blobId": "0" * 40}
    for body in (
        b"", b"<html>", b"[]", b"{}", b'{"sha": "../../x", "siblings": []}', b'{"sha": 3, "siblings": []}',
        b'{"sha": "%s"' % (b"a" * 40), b'{"sha": "%s", "siblings": {}}' % (b"a" * 40),
        b'{"sha": "%s", "siblings": [3]}' % (b"a" * 40), b'{"sha": "%s", "siblings": [["a.gguf"]]}' % (b"a" * 40), b'{"sha": "%s", "siblings": [{"size": 3}]}' % (b"a" * 40),
        b'{"sha": "%s", "siblings": [{"rfilename": "a.gguf", ' % (b"a" * 40),
    ):
        case.hub.rules = [lambda r: r.reply(200, body)]
        case.refused(says="not a list of files")
    case.hub.rules = []
    case.hub.repositories[NAME] = repository = Repository({"tiny.gguf": b"bytes"})
    for wrong in ({"size": 1e300}, {"size": 1 << 60}):
        repository.siblings = [{**good, **wrong}]
        case.refused(says=["tiny.gguf", "size"])
    # A digest that is none is asked for; what the file then has counts.
    for wrong in ({"blobId": "../../../x"}, {"size": -1}, {"lfs": {"sha256": "/etc/x", "size": 5}}, {"size": "5"}):
        repository.siblings = [{**good, **wrong}]
        case.pull()
        case.expect_pulled(repository, ["tiny.gguf"])


# ---- no way there ----


def case_no_network(case):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        case.variables["HF_ENDPOINT"] = "http://127.0.0.1:%d" % free.getsockname()[1]
        case.refused(says="cannot reach 127.0.0.1")
    case.variables["HF_ENDPOINT"] = "ftp://127.0.0.1"
    case.refused(says="HF_ENDPOINT")
    case.variables["HF_ENDPOINT"] = case.hub.endpoint + "//"
    case.directory()
    case.pull()
    for name in ("TRANSFORMERS_OFFLINE", "HF_HUB_OFFLINE"):
        case.variables[name] = "1"
        case.refused(says=name + " is set")


def case_password_in_the_endpoint(case):
    """It is sent, and not shown."""
    shown = case.hub.endpoint + "/hub"
    case.variables["HF_ENDPOINT"] = shown.replace("//", "//ada:password@")
    for status, says in ((404, "at " + shown), (401, "at " + shown + "/" + NAME), (200, shown + " sends")):
        case.hub.rules = [always(status)]
        run = case.refused(says=says)
        expect("ada" not in run.err and "word" not in run.err, run.err)
    expect(case.hub.requests[0].headers.get("Authorization", "").startswith("Basic "), "no password was sent")


def case_certificates(case):
    """A certificate without a known issuer is refused, and so is the way from https to http."""
    import shutil
    import ssl
    import subprocess

    if not shutil.which("openssl"):
        raise Skipped("no openssl here")
    key, certificate = str(case.work / "key.pem"), str(case.work / "certificate.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", certificate,
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
        check=True, capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    case.hub.server.socket = context.wrap_socket(case.hub.server.socket, server_side=True)
    case.variables["HF_ENDPOINT"] = "https://localhost:%d" % case.hub.server.server_address[1]
    repository = case.directory()
    case.refused(says=["cannot reach localhost", "certificate"])
    expect_equal(case.hub.requests, [], "asked for")
    case.variables["SSL_CERT_FILE"] = certificate
    case.refused(says=["redirects", "https never to http"])
    expect_equal(case.hub.asked("/store/"), [], "asked over http")
    expect_equal(case.reference(), None, repository)
    case.hub.repositories[NAME] = repository = Repository({"tiny.gguf": b"small"})
    case.pull()
    case.expect_pulled(repository, ["tiny.gguf"])


def case_proxy(case):
    """The token of an endpoint is not a header for a proxy on the way to it."""
    case.variables.update(HF_TOKEN=TOKEN, HF_ENDPOINT="https://hub.invalid", NO_PROXY="", https_proxy=case.hub.endpoint)
    asked = []
    case.hub.rules = [lambda r: asked.append(r.headers) or r.reply(403)]
    from hub import Request

    Request.do_CONNECT = Request.do_GET
    case.refused(says=["cannot reach hub.invalid", "403"])
    expect_equal(len(asked), 1, "requests at the proxy")
    expect_equal(json.dumps(dict(asked[0])).count(TOKEN), 0, "the token at the proxy")
