"""Too much, too slow, too large, broken off: the server continues, and its memory stays as it was."""
import http.client
import json
import os
import random
import signal
import socket
import struct
import subprocess
import threading
import time

from explorer import EDITS, PROMPT, QKV

SANITIZED = os.environ.get("SANITIZED") == "1"
HEAD = {"prompt": PROMPT, "edits": EDITS, "layer": 3, "head": 1}


def case_many_requests(server):
    """10,000 over a few connections, and 500 of which each has a connection of its own."""
    server.start()
    many = 1000 if SANITIZED else 10000
    connection = server.connect()
    for i in range(many // 10):
        request = {**HEAD, "edits": "q@3.h1=scale:%g" % (i / many)}
        assert server.post("head", request, connection=connection)[0] == 200
    before = server.memory()
    for i in range(many):
        request = {**HEAD, "edits": "q@3.h1=scale:%g" % (i / many)}
        assert server.post("head", request, connection=connection)[0] == 200
    connection.close()
    for i in range(500):
        assert server.ask("GET", "/index.html")[0] == 200
    grown = server.memory() - before
    assert SANITIZED or grown < 4 << 20, "memory grew by %d bytes" % grown
    print("memory grew by %d bytes over %d requests" % (grown, many + 500))


def case_own_layer_is_fast(server):
    """Another factor of an edit in the head's own layer: a few milliseconds, however it is asked."""
    server.start()
    text = {"text": " ".join([PROMPT["text"]] * 9)}
    n = server.json("tokens", {"prompt": text})["n"]
    assert n > 100, n
    connection = server.connect()
    times = []
    for i in range(200):
        start = time.perf_counter()
        status, _, body = server.post("head", {**HEAD, "prompt": text, "edits": "q@3.h1=scale:%g" % (i / 200)},
                                      connection=connection)
        times.append(time.perf_counter() - start)
        assert status == 200 and len(body) > 2 * 4 * n * n
    times.sort()
    print("own layer, %d tokens: median %.2f ms, 99%% %.2f ms" % (n, times[100] * 1e3, times[197] * 1e3))
    assert SANITIZED or times[100] < 0.02, times[100]


def case_garbage(server):
    server.start()
    server.works()
    dice = random.Random(1)
    before = server.descriptors()
    for _ in range(200):
        server.raw(bytes(dice.randrange(256) for _ in range(dice.randrange(1, 400))), timeout=0.05)
    for data in [b"\r\n" * 1000, b"GET", b"GET /", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                 b"GET / HTTP/1.1\r\nHost\r\n\r\n", b"GET / HTTP/1.1\r\n: x\r\n\r\n", b"\0" * 5000,
                 b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\nHost \x00: y\r\n\r\n"]:
        server.raw(data, timeout=0.2)
    server.works()
    assert server.settle(before) <= before


def case_large_headers_and_bodies(server):
    server.start()
    bearer = b"Authorization: Bearer " + server.token.encode() + b"\r\n"
    for lines in [b"X: " + b"a" * 100000 + b"\r\n", b"".join(b"X%d: y\r\n" % i for i in range(20000)),
                  b"Cookie: " + b"a=b; " * 20000 + b"\r\n"]:
        answer = server.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + lines + bearer + b"\r\n")
        assert b" 200 " not in answer[:20], answer[:100]
    answer = server.raw(b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n" + bearer + b"\r\n")
    assert b" 200 " not in answer[:20], answer[:100]
    # A length that is a lie, too large, negative, or no number.
    for length in [b"1048577", b"99999999999999999999", b"-1", b"x", b"0x10"]:
        answer = server.raw(b"POST /api/tokens HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
                            length + b"\r\n" + bearer + b"\r\n{}", timeout=1)
        assert b" 200 " not in answer[:20], answer[:100]
    answer = server.raw(b"POST /api/tokens HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        b"Content-Length: 1048577\r\n" + bearer + b"\r\n{")
    assert b" 413 " in answer[:20] and b'"too_large"' in answer, answer[:100]
    almost = {"prompt": {"text": "a b" * 1000}, "client": "x", "slot": "y", "seq": 1}
    assert server.post("tokens", almost)[0] == 400  # more tokens than the model takes
    # Without a length, in pieces, and without an end.
    before = server.memory()
    with socket.create_connection(("127.0.0.1", server.port), 10) as s:
        s.sendall(b"POST /api/tokens HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                  b"Transfer-Encoding: chunked\r\n" + bearer + b"\r\n")
        try:
            for _ in range(2000):
                s.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
            raise AssertionError("130 MB were taken")
        except (ConnectionError, socket.timeout):
            pass
    assert SANITIZED or server.memory() - before < 16 << 20, server.memory() - before
    server.works()


def case_two_lengths(server):
    """Requests that two programs would cut differently."""
    server.start()
    bearer = b"Authorization: Bearer " + server.token.encode() + b"\r\n"
    head = b"POST /api/tokens HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + bearer
    for lines in [b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", b"Content-Length: 2\r\nContent-Length: 50\r\n"]:
        answer = server.raw(head + lines + b"\r\n{}GET /api/state HTTP/1.1\r\nHost: localhost\r\n\r\n", timeout=1)
        assert answer.count(b"HTTP/1.1 200") <= 1, answer[:300]
    server.works()


def case_slow_clients(server):
    """Connections that say nothing, or one byte at a time, keep no client out and are cut off."""
    server.start()
    idle = [socket.create_connection(("127.0.0.1", server.port), 10) for _ in range(150)]
    half = [socket.create_connection(("127.0.0.1", server.port), 10) for _ in range(150)]
    for s in half:
        s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
    for _ in range(20):
        start = time.time()
        server.works()
        assert time.time() - start < 5, "it took %g s" % (time.time() - start)
    end = time.time() + 45
    waiting = half[:]
    while waiting and time.time() < end:
        for s in list(waiting):
            try:
                s.sendall(b"y")
                s.setblocking(False)
                if s.recv(1) == b"":
                    waiting.remove(s)
            except BlockingIOError:
                pass
            except OSError:
                waiting.remove(s)
        time.sleep(1)
    assert not waiting, "%d slow connections are still there" % len(waiting)
    server.works()
    for s in idle + half:
        s.close()
    assert server.settle(40) <= 40, server.descriptors()


def case_readers_that_do_not_read(server):
    """Answers that no client reads: others are served meanwhile, and nothing piles up."""
    server.start()
    bearer = b"Authorization: Bearer " + server.token.encode() + b"\r\n"
    request = b"GET /api/state HTTP/1.1\r\nHost: localhost\r\n" + bearer + b"\r\n"
    before = server.memory()
    lazy = []
    for _ in range(30):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect(("127.0.0.1", server.port))
        s.sendall(request * 20)
        lazy.append(s)
    for _ in range(20):
        server.works()
    assert SANITIZED or server.memory() - before < 32 << 20, server.memory() - before
    for s in lazy:
        # Broken off with a reset, in the middle of an answer.
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
    server.works()
    assert server.settle(40) <= 40


def case_broken_off(server):
    """Clients that leave while they are computed for."""
    server.start()
    body = json.dumps({**HEAD, "n": 100}).encode()
    for path, request in [("generate", {"prompt": PROMPT, "n": 100}), ("overview", {"prompt": PROMPT}), ("losses", {"prompt": PROMPT})]:
        for _ in range(30):
            body = json.dumps(request).encode()
            s = socket.create_connection(("127.0.0.1", server.port), 10)
            s.sendall(b"POST /api/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
                      b"Authorization: Bearer %s\r\n\r\n" % (path.encode(), len(body), server.token.encode()) + body)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()
    server.works()
    assert server.settle(40) <= 40


def case_newest_wins(server):
    """Of many requests of one slot the last is answered, and most of the others are not computed."""
    server.start()
    text = {"text": " ".join([PROMPT["text"]] * 9)}
    results = {}

    def send(seq):
        request = {"prompt": text, "edits": "q@0=scale:%g" % (seq / 100), "client": "tab", "slot": "overview", "seq": seq}
        status, _, body = server.post("overview", request)
        results[seq] = status, body

    blocker = threading.Thread(target=lambda: server.post("generate", {"prompt": PROMPT, "n": 100}))
    blocker.start()
    threads = []
    for seq in range(1, 41):
        threads.append(threading.Thread(target=send, args=(seq,)))
        threads[-1].start()
        time.sleep(0.002)
    for thread in threads + [blocker]:
        thread.join()
    assert results[40][0] == 200, results[40]
    replaced = [seq for seq, (status, _) in results.items() if status == 409]
    for seq in replaced:
        assert json.loads(results[seq][1])["error"]["code"] == "replaced"
    assert len(replaced) >= 20, "%d of 39 were replaced" % len(replaced)
    # Another client's, and another slot's, are not.
    for name in [{"client": "other", "slot": "overview"}, {"client": "tab", "slot": "x"}]:
        assert server.post("overview", {"prompt": PROMPT, "seq": 1, **name})[0] == 200


def case_many_parts(server):
    """JSON whose values are tiny: read, it would take a hundred times its bytes."""
    server.start()
    before = server.memory()
    for body in [b'{"prompt":[' + b"{}," * 340000 + b"{}]}", b'{"prompt":[' + b"[]," * 340000 + b"[]]}"]:
        server.error(server.ask("POST", "/api/tokens", body, {"Content-Type": "application/json"}), 413, "too_large")
    file = b'{"recipe": [' + b"{}," * 5000000 + b"{}]}"
    server.error(server.ask("POST", "/api/recipe", file, {"Content-Type": "application/octet-stream"}), 400, "format")
    assert SANITIZED or server.memory() - before < 64 << 20, server.memory() - before
    # Ids of tokens are many numbers, and a text is one value whatever is in it.
    assert server.post("tokens", {"prompt": {"tokens": [5] * 128}})[0] == 200
    assert server.post("check", {"prompt": PROMPT, "edits": "{[,"})[0] == 400
    server.works()


def case_left_with_a_byte(server):
    """Who leaves is not computed for, also where something was sent after the request."""
    server.start()
    curve = {"prompt": {"text": " ".join([PROMPT["text"]] * 7)}, "edits": "v@0=scale:{eps}", "layer": 5, "head": 0,
             "metric": "output_kl", "epsilons": [i / 200 for i in range(200)]}
    start = server.processor_time()
    assert server.post("curve", curve)[0] == 200
    whole = server.processor_time() - start
    body = json.dumps({**curve, "edits": "v@1=scale:{eps}"}).encode()
    start = server.processor_time()
    s = socket.create_connection(("127.0.0.1", server.port), 10)
    s.sendall(b"POST /api/curve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
              b"Authorization: Bearer %s\r\n\r\n" % (len(body), server.token.encode()) + body)
    while server.processor_time() < start + whole / 20:  # until it computes
        time.sleep(0.01)
    s.sendall(b"G")
    s.close()
    assert server.post("next", {"prompt": PROMPT})[0] == 200  # after it
    assert server.processor_time() - start < whole / 2, "%g of %g s" % (server.processor_time() - start, whole)


def case_nobody_waits_for_passes(server):
    """Tokens, facts and edits are told while passes are computed, which a second page would wait for otherwise."""
    server.start()
    curve = {"prompt": {"text": " ".join([PROMPT["text"]] * 7)}, "edits": "v@0=scale:{eps}", "layer": 5, "head": 0,
             "metric": "output_kl", "epsilons": [i / 200 for i in range(200)]}
    answers = []
    before = server.processor_time()
    thread = threading.Thread(target=lambda: answers.append(server.post("curve", curve)))
    thread.start()
    while server.processor_time() < before + 0.1:  # until it computes
        time.sleep(0.01)
    assert server.ask("GET", "/api/state")[0] == 200
    assert server.json("tokens", {"prompt": PROMPT})["n"] > 5
    assert server.json("check", {"prompt": PROMPT, "edits": EDITS})["ok"]
    assert server.json("model", {})["layers"] > 1
    assert not answers, "the curve was computed first"
    thread.join()
    assert answers[0][0] == 200, answers[0]


def case_kept_answers(server):
    """The same request again is answered without a pass, by whomever it is made; with another model or field it is not."""
    server.start()

    def ask(name, request):
        status, headers, body = server.post(name, request)
        assert status == 200, body
        return headers["server-timing"], body

    timing, first_page = ask("overview", {"metric": "sink"})
    assert timing == "kept", "what the page asks for first is computed before it asks"
    for name, request in [("overview", {"prompt": PROMPT, "edits": EDITS, "metric": "sink"}), ("next", {"prompt": PROMPT}),
                          ("losses", {"prompt": PROMPT, "edits": EDITS}), ("generate", {"prompt": PROMPT, "n": 5}),
                          ("why", {"prompt": PROMPT, "layer": 1, "head": 1, "query": 3, "key": 1})]:
        timing, body = ask(name, {**request, "client": "a", "slot": "s", "seq": 1})
        assert timing.startswith("compute;dur="), (name, timing)
        assert ask(name, {**request, "client": "b", "slot": "t", "seq": 7}) == ("kept", body), name
        assert ask(name, {**request, "prompt": {"text": PROMPT["text"] + " And"}})[0] != "kept", name
    assert ask("overview", {"metric": "sink"}) == ("kept", first_page)
    # Mistakes are not kept, and heads, which follow a slider, are computed each time.
    for _ in range(2):
        assert server.post("next", {"edits": "q@99=zero"})[0] == 400
        assert ask("head", HEAD)[0] != "kept"


def case_busy(server):
    """The queue is bounded: beyond it requests are told so at once."""
    server.start()
    text = {"text": " ".join([PROMPT["text"]] * 9)}
    statuses = []
    lock = threading.Lock()

    def send(seed):
        status, _, body = server.post("generate", {"prompt": PROMPT, "n": 60, "temperature": 1, "seed": seed})
        with lock:
            statuses.append((status, json.loads(body).get("error", {}).get("code")))

    threads = [threading.Thread(target=send, args=(seed,)) for seed in range(150)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) <= {(200, None), (503, "busy")}, set(statuses)
    assert statuses.count((200, None)) >= 64, statuses.count((200, None))
    server.json("losses", {"prompt": text})
    server.works()


def case_stop_is_prompt(server):
    """SIGTERM and SIGINT end it within a moment, also while it computes."""
    for number in [signal.SIGTERM, signal.SIGINT]:
        server.start()
        dead = []

        def compute():
            try:
                server.post("generate", {"prompt": PROMPT, "n": 100})
            except (http.client.HTTPException, OSError):
                dead.append(1)

        threads = [threading.Thread(target=compute) for _ in range(5)]
        for thread in threads:
            thread.start()
        time.sleep(0.05)
        start = time.time()
        server.process.send_signal(number)
        assert server.process.wait(10) == -number
        assert time.time() - start < 3
        for thread in threads:
            thread.join()
        assert server.process.stderr.read().count("\n") <= 1
        server.end()


def case_kill_and_restart(server):
    """Killed while connections are open, it comes back at once at the same port, and the same token holds."""
    server.start("--token", "0123456789abcdef")
    port = server.port
    for _ in range(5):
        connections = [server.connect() for _ in range(10)]
        for connection in connections:
            server.post("tokens", {"prompt": PROMPT}, connection=connection)
        server.process.kill()
        server.process.wait()
        server.end()
        server.start("--token", "0123456789abcdef", port=port)
        assert server.port == port
        cookie = {"Cookie": "qkv-%d=0123456789abcdef" % port}
        assert server.ask("GET", "/api/state", headers=cookie, token=False)[0] == 200
        for connection in connections:
            connection.close()


def case_two_servers(server):
    """Each has a cookie of its own: a browser does not tell ports apart."""
    server.start()
    other = subprocess.Popen([QKV, "serve", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        url = other.stdout.readline().strip()
        port = int(url.split("/?token=")[0].rsplit(":", 1)[1])
        token = url.split("=")[1]
        both = "qkv-%d=%s; qkv-%d=%s" % (server.port, server.token, port, token)
        for place in (server.port, port):
            connection = http.client.HTTPConnection("127.0.0.1", place, timeout=30)
            connection.request("GET", "/api/state", headers={"Cookie": both})
            assert connection.getresponse().status == 200
            connection.close()
    finally:
        other.terminate()
        other.wait()
        other.stdout.close()
