# docs/metrics.md is what the program prints.
qkv metrics --markdown | diff - "$MODELS/../docs/metrics.md"
