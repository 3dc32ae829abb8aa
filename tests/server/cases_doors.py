"""Who is let in: tokens, hosts, origins, methods, types, paths; and what every answer says."""
import http.client
import json
import socket
import subprocess

from explorer import PROMPT, QKV, safetensors


def case_token(server):
    server.start()
    for headers in [{}, {"Authorization": "Bearer "}, {"Authorization": "Bearer " + "0" * 48},
                    {"Authorization": server.token}, {"Authorization": "Basic " + server.token},
                    {"Authorization": "Bearer " + server.token[:-1]},
                    {"Authorization": "Bearer " + server.token + "0"},
                    {"Cookie": "qkv-%d=%s" % (server.port, "0" * 48)},
                    {"Cookie": "qkv-1=" + server.token}, {"Cookie": "token=" + server.token},
                    {"Cookie": "x=qkv-%d=%s" % (server.port, server.token)}]:
        for method, path in [("GET", "/"), ("GET", "/main.js"), ("GET", "/explorer.js"), ("GET", "/api/state"), ("GET", "/none"),
                             ("POST", "/api/tokens")]:
            body = {"prompt": PROMPT} if method == "POST" else None
            server.error(server.ask(method, path, body, headers, token=False), 401, "token")
    for path in ["/?token=", "/?token=" + "0" * 48, "/?token=%00" + server.token, "/?tok=" + server.token,
                 "/main.js?token=" + server.token, "/api/state?token=" + server.token]:
        server.error(server.ask("GET", path, token=False), 401, "token")


def case_token_page(server):
    """A user who opens the address without its token reads why, not JSON; programs get JSON as before."""
    server.start()
    browser = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
    for path in ["/", "/?token=" + "0" * 48]:
        status, headers, body = server.ask("GET", path, headers=browser, token=False)
        assert status == 401 and headers["content-type"] == "text/html; charset=utf-8", (status, headers)
        assert b"<p>" in body and b"qkv serve printed" in body and b"{" not in body, body
        assert server.token.encode() not in body
    status, headers, body = server.ask("GET", "/none", headers=browser)
    assert status == 404 and b"nothing of that name" in body and b"{" not in body, (status, body)
    server.error(server.ask("GET", "/", headers={"Accept": "*/*"}, token=False), 401, "token")


def case_entrance(server):
    server.start()
    status, headers, body = server.ask("GET", "/?token=" + server.token, token=False)
    assert status == 303 and headers["location"] == "/" and body == b"", (status, headers)
    cookie = headers["set-cookie"]
    assert cookie == "qkv-%d=%s; Path=/; HttpOnly; SameSite=Strict" % (server.port, server.token), cookie
    mine = {"Cookie": "a=b; " + cookie.split(";")[0] + "; c=d"}
    status, headers, body = server.ask("GET", "/", headers=mine, token=False)
    assert status == 200 and b"<html" in body and headers["content-type"].startswith("text/html")
    assert server.ask("GET", "/api/state", headers=mine, token=False)[0] == 200
    # Another server of this machine may set a cookie of the same name: it does not lock us out.
    both = {"Cookie": "qkv-%d=other; %s; qkv-%d=%s" % (server.port, cookie.split(";")[0], server.port, "x" * 500)}
    assert server.ask("GET", "/api/state", headers=both, token=False)[0] == 200
    wrong = {"Cookie": "qkv-%d=other; qkv-%d=%s" % (server.port, server.port, "x" * 500)}
    assert server.ask("GET", "/api/state", headers=wrong, token=False)[0] == 401
    # A link on another site: a page of ours redirects to the explorer, so that the new cookie counts.
    other = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}
    status, headers, body = server.ask("GET", "/?token=" + server.token, headers=other, token=False)
    assert status == 200 and b'content="0;url=/"' in body and headers["set-cookie"] == cookie


def case_random_tokens(server):
    seen = set()
    for _ in range(3):
        seen.add(server.start().token)
        server.end()
    assert len(seen) == 3 and all(len(token) == 48 for token in seen), seen


def case_host(server):
    """DNS rebinding: a name that leads here is not a name of this machine."""
    server.start()
    port = server.port
    for host in ["evil.example", "evil.example:%d" % port, "localhost.evil.example", "127.0.0.1.evil.example:80",
                 "localhost:%d@evil.example" % port, "127.0.0.2", "0.0.0.0", "[::2]", "2130706433", "0x7f.1", "",
                 "localhost:", "localhost:x", "localhost:123456", "[::1", "::1", "[::1]x", "localhost.", "a" * 5000]:
        server.error(server.ask("GET", "/api/state", headers={"Host": host}), 403, "host")
        server.error(server.ask("GET", "/?token=" + server.token, headers={"Host": host}, token=False), 403, "host")
    for host in ["127.0.0.1", "localhost", "LOCALHOST:%d" % port, "[::1]:9", "127.0.0.1:65535"]:
        assert server.ask("GET", "/api/state", headers={"Host": host})[0] == 200, host
    bearer = b"Authorization: Bearer " + server.token.encode() + b"\r\n"
    for lines in [b"", b"Host: localhost\r\nHost: evil.example\r\n", b"Host: evil.example\r\nHost: localhost\r\n"]:
        answer = server.raw(b"GET /api/state HTTP/1.1\r\n" + lines + bearer + b"\r\n")
        assert b" 403 " in answer[:20] or b" 400 " in answer[:20], answer[:200]
    answer = server.raw(b"GET /api/state HTTP/1.0\r\n" + bearer + b"\r\n")
    assert b" 403 " in answer[:20], answer[:200]


def case_origin(server):
    """Other sites, also with the cookie, which a browser may send along."""
    server.start()
    here = "127.0.0.1:%d" % server.port
    cookie = {"Cookie": "qkv-%d=%s" % (server.port, server.token)}
    for origin in ["http://evil.example", "https://" + here, "http://127.0.0.1", "http://localhost:%d" % server.port,
                   "http://127.0.0.1:1", "null", "", "http://" + here + ".evil.example", "file://", "http://" + here + "/"]:
        answer = server.post("tokens", {"prompt": PROMPT}, headers={"Origin": origin, **cookie}, token=False)
        server.error(answer, 403, "origin")
        assert "access-control-allow-origin" not in answer[1]
    for site in ["cross-site", "same-site", "CROSS-SITE", "x"]:
        for path in ["/api/state", "/main.js"]:
            server.error(server.ask("GET", path, headers={"Sec-Fetch-Site": site, **cookie}, token=False), 403, "origin")
        image = {"Sec-Fetch-Site": site, "Sec-Fetch-Dest": "image", **cookie}
        server.error(server.ask("GET", "/", headers=image, token=False), 403, "origin")
    bearer = b"Authorization: Bearer " + server.token.encode() + b"\r\n"
    two = b"Origin: http://%s\r\nOrigin: http://evil.example\r\n" % here.encode()
    answer = server.raw(b"GET /api/state HTTP/1.1\r\nHost: %s\r\n" % here.encode() + two + bearer + b"\r\n", timeout=1)
    assert b" 403 " in answer[:20], answer[:200]
    good = {"Origin": "http://" + here, "Sec-Fetch-Site": "same-origin", **cookie}
    assert server.post("tokens", {"prompt": PROMPT}, headers=good, token=False)[0] == 200
    # What a browser asks before it lets another site's page send JSON gets no permission.
    preflight = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    status, headers, _ = server.ask("OPTIONS", "/api/tokens", headers=preflight, token=False)
    assert status == 403 and not [name for name in headers if name.startswith("access-control")], headers


def case_forms(server):
    """What a form of another site can send without asking: it is not JSON by its type."""
    server.start()
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonx", None]:
        answer = server.ask("POST", "/api/tokens", json.dumps({"prompt": PROMPT}).encode(), {"Content-Type": kind})
        server.error(answer, 415, "type")
    assert server.ask("POST", "/api/tokens", json.dumps({"prompt": PROMPT}).encode(),
                      {"Content-Type": "application/json; charset=utf-8"})[0] == 200
    server.error(server.ask("POST", "/api/recipe", b"x", {"Content-Type": "text/plain"}), 415, "type")


def case_methods_and_paths(server):
    server.start()
    for method, path in [("GET", "/api/tokens"), ("POST", "/api/state"), ("POST", "/api/kinds"), ("GET", "/api/study"), ("PUT", "/api/tokens"), ("DELETE", "/"),
                         ("POST", "/"), ("TRACE", "/"), ("CONNECT", "/api/head"), ("X" * 40, "/")]:
        server.error(server.ask(method, path), 405, "method")
    for path in ["/..", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/etc/passwd", "/index.html/",
                 "/./index.html", "/index.html%00.js", "/api/../index.html", "/INDEX.HTML", "/page/index.html", "/api/",
                 "/api/none", "/%s", "/\\..\\x", "/" + "a" * 3000, "/index.html;x"]:
        server.error(server.ask("GET", path), 404, "not_found")
    status, headers, body = server.ask("HEAD", "/index.html")
    assert status == 200 and body == b"" and int(headers["content-length"]) > 100
    for target in [b"http://evil.example/", b"*", b"evil.example:80", b"index.html"]:
        answer = server.raw(b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " +
                            server.token.encode() + b"\r\nConnection: close\r\n\r\n")
        assert b" 200 " not in answer[:20], answer[:200]
    server.works()


def case_models_by_name_only(server):
    """No path of a request reaches the file system."""
    server.start()
    for name in ["/etc/passwd", "../../models/default.gguf", "models/default.gguf", "default.gguf", "./default", "", "no",
                 "org/name", "default\n", "x" * 4000]:
        said = server.error(server.post("model", {"model": name}), 400, "argument")
        assert "list" in said["message"], said
    server.error(server.post("model", {"model": "x" * 5000}), 400, "argument")
    server.error(server.post("model", {"model": 1}), 400, "argument")
    server.error(server.post("figure", {"kind": "modify", "format": "../../x.png"}), 400, "argument")
    server.error(server.post("figure", {"kind": "modify", "output": "/tmp/x.png"}), 400, "argument")


def case_headers_of_every_answer(server):
    server.start()
    answers = [server.ask("GET", "/"), server.ask("GET", "/none"), server.ask("GET", "/", token=False),
               server.ask("GET", "/?token=" + server.token, token=False), server.ask("GET", "/api/state"),
               server.ask("GET", "/", headers={"Host": "evil.example"}), server.post("tokens", {"x": 1}),
               server.post("head", {"layer": 0, "head": 0})]
    for status, headers, _ in answers:
        policy = headers["content-security-policy"]
        for part in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "form-action 'none'",
                     "base-uri 'none'", "frame-ancestors 'none'"]:
            assert part in policy, policy
        assert "unsafe" not in policy and "*" not in policy, policy
        assert headers["x-content-type-options"] == "nosniff" and headers["cache-control"] == "no-store", headers
        assert headers["referrer-policy"] == "no-referrer" and headers["x-frame-options"] == "DENY", headers
        assert headers["cross-origin-resource-policy"] == "same-origin", headers
        assert not [name for name in headers if name.startswith("access-control")], headers
        assert "server" not in headers, headers
    page = server.ask("GET", "/")[2].decode()
    assert "<script>" not in page and "onclick=" not in page and "style=" not in page and "http" + "s://" not in page


def case_text_stays_text(server):
    """A prompt is data in JSON, in SVG and in an HTML file."""
    server.start()
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)> \"'&]]>"
    said = server.json("tokens", {"prompt": {"text": evil}})
    assert said["text"] == evil and "".join(said["texts"][1:]) == evil, said
    request = {"kind": "grid", "prompt": {"text": evil}, "layer": 3, "head": 1,
               "cols": [{"label": "<script>alert(3)</script>", "edits": "q@3.h1=scale:0.5"}], "title": "<script>x</script>"}
    for kind in ["svg", "html"]:
        status, _, body = server.post("figure", {**request, "format": kind})
        assert status == 200, body
        for bad in [b"<script>alert", b"<img src=x", b"<script>x", b"</script><script>alert"]:
            assert bad not in body, (kind, bad)


def case_listens_here_only(server):
    server.start()
    socket.create_connection(("127.0.0.1", server.port), 5).close()
    if socket.has_ipv6:
        try:
            socket.create_connection(("::1", server.port), 5).close()
        except OSError:
            with open("/proc/net/if_inet6") as lines:
                assert not lines.read().strip(), "::1 does not answer, and there is IPv6"
    with open("/proc/net/tcp") as lines:
        listening = [line.split()[1] for line in lines if line.split()[3] == "0A"]
    mine = [place for place in listening if int(place.split(":")[1], 16) == server.port]
    assert mine == ["0100007F:%04X" % server.port], mine


def refused(*options):
    done = subprocess.run([QKV, "serve", *options], capture_output=True, text=True, timeout=60)
    assert done.returncode in (1, 2) and done.stdout == "", done
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def case_mistakes(server):
    server.start()
    assert "port %d is taken" % server.port in refused("--port", str(server.port))
    assert "choose a token with --token" in refused("--bind", "0.0.0.0")
    token = ["--token", "0123456789abcdef"]
    assert "in numbers" in refused("--bind", "localhost", *token, "--port", "0")
    assert "cannot listen at 203.0.113.1" in refused("--bind", "203.0.113.1", *token, "--port", "0")
    assert "16 to 128" in refused("--token", "short", "--port", "0")
    assert "16 to 128" in refused("--token", "with blanks in it, see?", "--port", "0")
    assert "no-such-model" in refused("-m", "no-such-model", "--port", "0")
    assert "--port" in refused("--port", "70000")
    assert "no model file was named" in refused("-m", "", "--port", "0")
    assert "the prompt is empty" in refused("-p", "", "--port", "0")
    assert "not valid UTF-8" in refused("-p", b"\xff hi", "--port", "0")
    assert "128 are the most that the model takes" in refused("-p", "word " * 300, "--port", "0")
    with open("/dev/full", "w") as full:
        done = subprocess.run([QKV, "serve", "--port", "0"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1 and "cannot write standard output" in done.stderr, done


def case_bound_elsewhere(server):
    server.start("--bind", "0.0.0.0", "--token", "0123456789abcdef")
    assert server.token == "0123456789abcdef"
    assert server.ask("GET", "/api/state", headers={"Host": "192.168.7.9:80"})[0] == 200
    server.error(server.ask("GET", "/api/state", headers={"Host": "evil.example"}), 403, "host")
    server.error(server.ask("GET", "/api/state", token=False), 401, "token")
    server.process.terminate()
    assert "other machines can reach this server" in server.process.stderr.read()


def case_bound_loopback(server):
    """Another address of this machine: it is served there, to those who know the token, and nowhere else."""
    server.start("--bind", "127.0.0.2", "--token", "0123456789abcdef")
    assert server.url == "http://127.0.0.2:%d/?token=0123456789abcdef" % server.port, server.url
    elsewhere = lambda: http.client.HTTPConnection("127.0.0.2", server.port, timeout=60)
    status, headers, _ = server.ask("GET", "/?token=" + server.token, connection=elsewhere(), token=False)
    assert status == 303 and "qkv-%d=" % server.port in headers["set-cookie"], (status, headers)
    cookie = {"Cookie": headers["set-cookie"].split(";")[0]}
    status, _, body = server.ask("GET", "/", headers=cookie, connection=elsewhere(), token=False)
    assert status == 200 and b"<html" in body
    request = {"layer": 3, "head": 1, "edits": "q@3.h1=scale:0.5"}
    status, _, body = server.ask("POST", "/api/head", request, connection=elsewhere())
    assert status == 200 and set(safetensors(body)[0]) == {"before", "after"}
    for path in ["/", "/explorer.js", "/api/state"]:
        server.error(server.ask("GET", path, connection=elsewhere(), token=False), 401, "token")
    server.error(server.ask("POST", "/api/head", request, connection=elsewhere(), token=False), 401, "token")
    wrong = {"Authorization": "Bearer 0123456789abcdeg"}
    server.error(server.ask("GET", "/api/state", headers=wrong, connection=elsewhere()), 401, "token")
    other = {"Origin": "http://evil.example", **cookie}
    server.error(server.ask("GET", "/api/state", headers=other, connection=elsewhere(), token=False), 403, "origin")
    try:
        socket.create_connection(("127.0.0.1", server.port), 5).close()
        raise AssertionError("127.0.0.1 answers, too")
    except ConnectionRefusedError:
        pass
