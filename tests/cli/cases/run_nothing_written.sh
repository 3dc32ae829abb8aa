# An output that cannot hold the result is told before any other one is written.
qkv run --tokens 5,6 --capture pattern -o a.safetensors -o b.npy
echo "exit $?" >&2
awk 'BEGIN { for (i = 0; i < 128; i++) printf "%s5", i ? "," : "" }' >ids
qkv run --tokens "$(cat ids)" --capture 'k@*' --capture logits --capture pattern \
    --variant 'q@1=zero' --variant 'q@2=zero' -o a.safetensors -o b.json
echo "exit $?" >&2
qkv figure modify --layer 0 --head 0 --tokens 5,6 -o a.svg -o b.png --dpi 2400 --panel-size 5000
echo "exit $?" >&2
ls
