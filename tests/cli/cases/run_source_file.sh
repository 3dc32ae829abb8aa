# A source may be a file; its last newline does not count.
printf 'The river\n' >other
qkv run -p 'The river' --source a=@other --variant 'q@1=patch:a' --capture pattern@1 -o out.safetensors
qkv run -p 'The river' --source a=@nowhere --variant 'q@1=patch:a' --capture pattern@1
