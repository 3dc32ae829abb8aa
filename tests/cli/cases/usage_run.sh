check() {
    "$@"
    echo "exit $?" >&2
}
check qkv run --capture 'pattern@0'
check qkv run -p one -p two --capture 'pattern@0'
check qkv run -p one --explain -o out.npy
check qkv run -p one --source a=two
check qkv run -p one --source ab=two --source a=two --variant 'q@1=patch:ab + k@1=patch:b'
check qkv run -p one --memory 0
check qkv run -p one --capture 'pattern@0' -o out.txt
check qkv run -p one --capture 'pattern@0' -o out.npy -o out.npy
check qkv run --tokens 1,x --capture 'pattern@0'
check qkv run --tokens '' --capture 'pattern@0'
check qkv run --tokens 1,99999999999 --capture 'pattern@0'
check qkv run -p one --source other --capture 'pattern@0'
check qkv run -p one --source-tokens =1,2 --capture 'pattern@0'
check qkv run -p one --source-tokens a=1,two --capture 'pattern@0'
ls
