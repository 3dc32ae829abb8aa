# Ctrl-C, and the text of a model without a tokenizer: what was generated stays, on standard output and in the file.
shape=4,8,8,512,1024,300,16384
qkv-bench --shape $shape --type f16 --keep models -T 8 -t 1 --repeats 1 --only load >/dev/null 2>&1
cat >stop.py <<'PY'
import json, signal, subprocess, sys, time
command = ["qkv", "generate", "-m", sys.argv[1], "--tokens", "1,2,3", "-n", "16000", "-o", "out.jsonl"] + sys.argv[2:]
# A shell has background jobs ignore SIGINT, and so would this process have its children.
signal.signal(signal.SIGINT, signal.SIG_DFL)
with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as run:
    seen = b""
    if "--json" in command: time.sleep(3)
    while "--json" not in command and len(seen) < 60 and run.poll() is None: seen += run.stdout.read(60)
    run.send_signal(signal.SIGINT)
    rest, errors = run.communicate(timeout=60)
said = (seen + rest).decode()
lines = [json.loads(line) for line in open("out.jsonl")]
# How far it was depends on the machine.
print("by signal", -run.returncode, "".join(line for line in errors.decode().splitlines() if " %" not in line))
if "--json" in command:
    lines = json.loads(said)[0]["variants"]
    said = lines[0]["text"] + "\n"
print([line["finish"] for line in lines], 10 < len(lines[0]["ids"]) < 16000)
print(lines[0]["text"] == "".join(f" {i}" for i in lines[0]["ids"]), lines[0]["text"] + "\n" in said)
PY
python3 stop.py models/$shape-f16.gguf
python3 stop.py models/$shape-f16.gguf --variant v@0=zero
python3 stop.py models/$shape-f16.gguf --json
ls
