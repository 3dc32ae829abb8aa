#!/usr/bin/env python3
"""What a command says about how far it is: on a terminal, through a pipe, and with --quiet.

The process is held for some seconds in the middle of its work (SIGSTOP), so that short work takes long
without a processor.
"""
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

QKV = os.environ["QKV"]
PROMPT = "The river runs past the old mill and the children walk along the bank to school."


def run(arguments, hold, terminal):
    """Standard error of the command, held for so many seconds; on a terminal of its own, or a pipe."""
    reader, writer = pty.openpty() if terminal else os.pipe()
    process = subprocess.Popen(
        [QKV, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=writer
    )
    os.close(writer)
    text = bytearray()

    def read():
        while True:
            try:
                some = os.read(reader, 65536)
            except OSError:  # the end of a terminal
                return
            if not some:
                return
            text.extend(some)

    thread = threading.Thread(target=read)
    thread.start()
    if hold:
        time.sleep(0.4)
        process.send_signal(signal.SIGSTOP)
        time.sleep(hold)
        process.send_signal(signal.SIGCONT)
    status = process.wait()
    thread.join()
    os.close(reader)
    if status != 0:
        sys.exit(f"qkv {' '.join(arguments)}: status {status}: {text.decode()}")
    return text.decode()


def expect(what, text, pattern):
    if not re.search(pattern, text):
        sys.exit(f"{what}: no {pattern!r} in {text!r}")


def expect_silence(what, text):
    if text:
        sys.exit(f"{what}: {text!r}")


def check_bars(what, text, unit):
    """Each is drawn over the last one, and none has less; nothing of them stays."""
    expect(what, text, r"\r\[[#.]{24}\] \d+ %(, \d+ of \d+ " + unit + r")?, (\d+ min )?\d+ s left\x1b\[K")
    if not text.endswith("\r\x1b[K"):
        sys.exit(f"{what}: the line stays: {text[-80:]!r}")
    shares = [int(x) for x in re.findall(r"\] (\d+) %", text)]
    if shares != sorted(shares) or shares[-1] > 100 or len(set(shares)) < 2:
        sys.exit(f"{what}: {shares}")
    widths = [len(line) for line in re.sub(r"\x1b\[K", "", text).split("\r") if line.startswith("[")]
    if max(widths) >= 80:
        sys.exit(f"{what}: {max(widths)} columns")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with open("lines.txt", "w") as file:
            file.write("".join(f"{i} times: {PROMPT}\n" for i in range(250)))
        measure = ["measure", "-t", "1", "-f", "lines.txt", "--metrics", "all"]
        check_bars("a terminal", run(measure, 1.2, True), "prompts")
        expect_silence("--quiet on a terminal", run([*measure, "--quiet"], 1.2, True))
        text = run(measure, 10.5, False)
        expect("a pipe", text, r"\Aqkv measure: \d+ %, \d+ of 250 prompts after \d+ s, about \d.* left\n")
        expect("a pipe", text, r"\nqkv measure: computed in \d+ s\n\Z")
        if text.count("\n") != 2 or "\r" in text:
            sys.exit(f"a pipe: {text!r}")
        for terminal in (False, True):
            # A machine that does something else may take its time once.
            said = [run(["measure", "-p", PROMPT], 0, terminal) for _ in range(3)]
            expect_silence("short work", min(said, key=len))
        with open("more.txt", "w") as file:
            file.write("".join(f"{i} times: {PROMPT}\n" for i in range(1000)))
        sweep = ["sweep", "-t", "1", "-f", "more.txt", "--targets", "q", "--epsilon", "0.5",
                 "--metrics", "sink", "-o", "x.sqlite"]
        text = run(sweep, 1.2, True)
        check_bars("a sweep", text[: text.rindex("\x1b[K") + 3], "cells")
        expect("a sweep", text, r"complete: \d+ cells")


main()
