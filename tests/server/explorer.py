"""A server to be tested: started, asked with the token or as a stranger would, and ended."""
import http.client
import json
import os
import socket
import subprocess
import time

QKV = os.path.abspath(os.environ.get("QKV", "build/qkv"))
PROMPT = {"text": "The river runs past the old mill and down to the sea."}
EDITS = "q@3.h1=scale:0.5"


def safetensors(body):
    """{name: list of floats}, and the facts that the answer states."""
    import struct
    size = struct.unpack("<Q", body[:8])[0]
    head = json.loads(body[8:8 + size])
    facts = json.loads(head.pop("__metadata__")["qkv"])
    tensors = {}
    for name, item in head.items():
        first, end = item["data_offsets"]
        data = body[8 + size + first:8 + size + end]
        tensors[name] = struct.unpack("<%df" % (len(data) // 4), data)
    return tensors, facts


class Explorer:
    def __init__(self):
        self.process = None
        self.url = self.token = None
        self.port = 0

    def start(self, *options, port=0):
        self.process = subprocess.Popen([QKV, "serve", "--port", str(port), *options],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            raise AssertionError("it did not start: " + self.process.stderr.read())
        address, self.token = self.url.split("/?token=")
        self.port = int(address.rsplit(":", 1)[1])
        return self

    def end(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise AssertionError("SIGTERM did not end the server")
        if self.process:
            self.process.stdout.close()
            self.process.stderr.close()
            self.process = None

    # ---- asking ----

    def connect(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, method, path, body=None, headers=None, connection=None, token=True):
        """(status, headers, body). `headers` are added to, or with None take away, the usual ones."""
        own = {"Authorization": "Bearer " + self.token} if token else {}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            own["Content-Type"] = "application/json"
        own.update(headers or {})
        own = {name: value for name, value in own.items() if value is not None}
        to = connection or self.connect()
        to.request(method, path, body=body, headers=own)
        reply = to.getresponse()
        answer = reply.status, dict((k.lower(), v) for k, v in reply.getheaders()), reply.read()
        if not connection:
            to.close()
        return answer

    def post(self, name, request, **more):
        return self.ask("POST", "/api/" + name, request, **more)

    def json(self, name, request, **more):
        status, _, body = self.post(name, request, **more)
        assert status == 200, (name, request, status, body)
        return json.loads(body)

    def error(self, answer, status, code):
        got, headers, body = answer
        assert got == status, (got, body)
        assert headers["content-type"].startswith("application/json"), headers
        said = json.loads(body)["error"]
        assert said["code"] == code and said["message"], said
        return said

    def raw(self, data, timeout=5, half_close=False):
        """Sends bytes as they are; all that comes back until the end or the timeout."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as s:
            out = b""
            try:
                s.sendall(data)
                if half_close:
                    s.shutdown(socket.SHUT_WR)
                while True:
                    piece = s.recv(65536)
                    if not piece:
                        break
                    out += piece
            except (socket.timeout, ConnectionError):
                pass
            return out

    def works(self):
        """The server answers as ever."""
        said = self.json("tokens", {"prompt": PROMPT})
        assert said["n"] > 5 and self.process.poll() is None, said

    # ---- looking at the process ----

    def memory(self):
        """Resident bytes."""
        with open("/proc/%d/statm" % self.process.pid) as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def processor_time(self):
        """Seconds that all threads have computed."""
        with open("/proc/%d/stat" % self.process.pid) as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def settle(self, most, seconds=30):
        """Waits until no more than `most` descriptors are open."""
        end = time.time() + seconds
        while self.descriptors() > most and time.time() < end:
            time.sleep(0.05)
        return self.descriptors()
