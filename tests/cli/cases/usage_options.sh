# One line and exit status 2 for every command line that makes no sense.
check() {
    "$@"
    echo "exit $?" >&2
}
check qkv run --weather
check qkv run -x
check qkv run -p
check qkv run --prompt
check qkv info --json=yes
check qkv info model.gguf
check qkv tokens
check qkv tokens one two
check qkv run -p text --capture 'pattern@0' -t many
check qkv run -p text --capture 'pattern@0' -t -1
check qkv figure modify --scale cubic -o a.png
check qkv figure modify --layer first -o a.png
check qkv figure modify --head 2.5 -o a.png
check qkv figure modify --eps 1,,2 -o a.png
check qkv figure modify --eps nan -o a.png
check qkv figure modify --eps= -o a.png
check qkv figure modify --dpi 0 -o a.png
check qkv figure modify --gamma x -o a.png
check qkv figure modify --gamma 0.5 -o a.png
check qkv figure modify --gamma 0.5 --scale log -o a.png
check qkv figure modify --dpi 150 -o a.svg -o a.pdf
check qkv figure modify --dpi 150 --data a.safetensors
check qkv figure grid --row A=q@0=patch:a --source a=one --source b=two -o a.png
check qkv figure modify --source a=one -o a.png
check qkv figure modify --range 1 -o a.png
check qkv figure modify --range 1,0 -o a.png
check qkv figure modify --diff --range 0,1 -o a.png
check qkv figure modify --diff --baseline -o a.png
check qkv figure modify --diff --scale log -o a.png
check qkv figure modify --skip-keys -1 -o a.png
check qkv figure modify
check qkv figure modify -o a.gif
check qkv figure modify -o a
check qkv figure modify -o a.png -o b.png -o a.png
check qkv figure modify -o a.png --data a.npy
check qkv figure modify -p one -p two -o a.png
check qkv figure grid -o a.png
check qkv figure grid --row label -o a.png
check qkv figure grid --show q --row a= -o a.png
ls
