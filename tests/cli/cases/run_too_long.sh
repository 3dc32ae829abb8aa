# Longer than any context.
awk 'BEGIN { for (i = 0; i < 300000; i++) printf "river " }' >long
qkv run -f long --capture pattern@0 -o out.safetensors
status=$?
ls
exit $status
