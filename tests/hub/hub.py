"""A small server on loopback that plays the hub, and a second one that plays the host of its large files.

    hub = Hub()
    hub.repositories["org/name"] = Repository({"config.json": b"{}", "model.safetensors": b"..."})
    ... HF_ENDPOINT=hub.endpoint qkv pull org/name ...
    hub.requests                            what was asked, in order

A case changes what a server does by putting functions into `hub.rules`: each is called with the request before
anything else and answers it itself (returns True), or leaves it to the next one.
"""
import hashlib
import json
import os
import re
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LARGE = 4096  # files of this size and more are in LFS, as on the hub


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def git_id(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Repository:
    """Files by path, at one commit. `listed` may replace or add entries of the list of files."""

    def __init__(self, files, commit=None, revisions=("main",)):
        self.files = dict(files)
        self.commit = commit or hashlib.sha1(repr(sorted(self.files)).encode() + os.urandom(8)).hexdigest()
        self.revisions = set(revisions)
        self.siblings = None  # instead of the list that the files give
        self.tree = None  # pages, each a list of entries; None: the server has no such thing

    def blob(self, path):
        data = self.files[path]
        return sha256(data) if len(data) >= LARGE else git_id(data)

    def sibling(self, path):
        data = self.files[path]
        entry = {"rfilename": path, "size": len(data), "blobId": git_id(data)}
        if len(data) >= LARGE:
            entry["blobId"] = git_id(b"a pointer")
            entry["lfs"] = {"sha256": sha256(data), "size": len(data), "pointerSize": 134}
        return entry

    def info(self, name):
        siblings = self.siblings
        if siblings is None:
            siblings = [self.sibling(path) for path in sorted(self.files)]
        return {"id": name, "sha": self.commit, "private": False, "siblings": siblings}


class Record:
    """What was asked, and how many bytes of the answer's body were sent."""

    def __init__(self, request):
        self.command, self.path, self.headers = request.command, request.path, request.headers
        self.at_hub, self.sent = request.at_hub(), 0


class Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 0

    def log_message(self, *args):
        pass

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def do_GET(self):
        self.is_head = self.command == "HEAD"
        hub = self.server.hub
        self.record = Record(self)
        with hub.lock:
            hub.requests.append(self.record)
            rules = list(hub.rules)
        for rule in rules:
            if rule(self):
                return
        self.server.answer(self)

    do_HEAD = do_GET

    # ---- what rules and servers answer with ----

    def at_hub(self):
        return self.server is self.server.hub.server

    def reply(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if not self.is_head:
            self.write(body)
        return True

    def write(self, data):
        step = 1 << 16
        for at in range(0, len(data), step):
            self.wfile.write(data[at : at + step])
            self.record.sent += len(data[at : at + step])

    def first_byte(self):
        match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        return int(match[1]) if match else 0

    def reply_file(self, data, etag, headers=(), stop_after=None, ranges=True):
        """A file, or what is asked for of it; stop_after: the connection ends after so many bytes of the answer."""
        begin = self.first_byte() if ranges else 0
        if begin and self.headers.get("If-Range") not in (None, etag):
            begin = 0
        if begin >= len(data) and begin:
            return self.reply(416, headers=[("Content-Range", "bytes */%d" % len(data))])
        self.send_response(206 if begin else 200)
        for name, value in [("ETag", etag), *headers]:
            self.send_header(name, value)
        if begin:
            self.send_header("Content-Range", "bytes %d-%d/%d" % (begin, len(data) - 1, len(data)))
        self.send_header("Content-Length", str(len(data) - begin))
        self.end_headers()
        if self.is_head:
            return True
        if stop_after is not None:
            self.write(data[begin : begin + stop_after])
            self.close_connection = True
            return True
        self.write(data[begin:])
        return True


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, hub, answer):
        super().__init__(("127.0.0.1", 0), Request)
        self.hub, self.answer = hub, answer
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass

    @property
    def address(self):
        return "http://127.0.0.1:%d" % self.server_address[1]


class Hub:
    def __init__(self):
        self.lock = threading.Lock()
        self.requests, self.rules, self.repositories = [], [], {}
        self.server = Server(self, self.answer)
        self.store = Server(self, self.answer_store)

    @property
    def endpoint(self):
        return self.server.address

    def asked(self, text, command="GET"):
        """The requests whose path holds the text."""
        with self.lock:
            return [r for r in self.requests if text in r.path and r.command == command]

    def sent(self, text):
        return sum(r.sent for r in self.asked(text))

    def answer(self, request):
        path = urllib.parse.urlsplit(request.path).path
        for pattern, function in (
            (r"/api/models/([^/]+/[^/]+)/revision/([^/]+)", self.answer_info),
            (r"/api/models/([^/]+/[^/]+)/tree/([^/]+)", self.answer_tree),
            (r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", self.answer_file),
        ):
            match = re.fullmatch(pattern, path)
            if match:
                return function(request, *map(urllib.parse.unquote, match.groups()))
        return request.reply(404)

    def find(self, request, name, revision):
        repository = self.repositories.get(name)
        if not repository:
            request.reply(404, headers=[("X-Error-Code", "RepoNotFound")])
        elif revision != repository.commit and revision not in repository.revisions:
            request.reply(404, headers=[("X-Error-Code", "RevisionNotFound")])
            repository = None
        return repository

    def answer_info(self, request, name, revision):
        repository = self.find(request, name, revision)
        if repository:
            request.reply(200, json.dumps(repository.info(name)).encode())

    def answer_tree(self, request, name, revision):
        repository = self.find(request, name, revision)
        if not repository:
            return
        if repository.tree is None:
            return request.reply(404)
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(request.path).query)
        page = int(query.get("cursor", ["0"])[0])
        headers = []
        if page + 1 < len(repository.tree):
            url = "%s%s?recursive=true&cursor=%d" % (self.endpoint, request.path.split("?")[0], page + 1)
            headers = [("Link", '<%s>; rel="next"' % url)]
        request.reply(200, json.dumps(repository.tree[page]).encode(), headers)

    def answer_file(self, request, name, revision, path):
        repository = self.find(request, name, revision)
        if not repository:
            return
        if path not in repository.files:
            return request.reply(404, headers=[("X-Error-Code", "EntryNotFound")])
        data, blob = repository.files[path], repository.blob(path)
        headers = [("X-Repo-Commit", repository.commit)]
        if len(data) < LARGE:
            return request.reply_file(data, '"%s"' % blob, headers)
        headers += [
            ("X-Linked-Etag", '"%s"' % blob),
            ("X-Linked-Size", str(len(data))),
            ("Location", "%s/store/%s/%s" % (self.store.address, name, urllib.parse.quote(path))),
        ]
        return request.reply(302, b"elsewhere", headers)

    def answer_store(self, request):
        match = re.fullmatch(r"/store/([^/]+/[^/]+)/(.+)", urllib.parse.unquote(request.path))
        data = self.repositories[match[1]].files[match[2]]
        return request.reply_file(data, '"store-%s"' % sha256(data)[:16])
