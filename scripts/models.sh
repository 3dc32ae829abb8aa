#!/bin/sh
# Writes docs/models.md: every family, and how far the results are from those of Hugging Face transformers.
#
#     scripts/models.sh [BUILD]           measure with the tests of a build (default: build) and write docs/models.md
#     scripts/models.sh --check           does docs/models.md name every family that the source lists?
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
page=$root/docs/models.md

if [ "${1-}" = --check ]; then
    status=0
    for file in "$root"/src/model/family/*.c; do
        name=$(sed -n 's/^    \.name = "\(.*\)",$/\1/p' "$file")
        [ -n "$name" ] || continue # the list of families, or directories of one
        grep -q "| \`$name\` |" "$page" || { echo "models.sh: docs/models.md lacks $name" >&2; status=1; }
    done
    exit $status
fi

build=${1:-$root/build}
lines=$("$build/tests/test_vectors" 2>&1 | grep 'largest difference') ||
    { echo "models.sh: $build/tests/test_vectors does not run: make test builds it" >&2; exit 1; }

# "llama model.gguf largest difference: pattern 3.2e-06, logits 1.4e-06, ..." as "3.2e-06, 1.4e-06"
differences() { printf '%s\n' "$lines" | awk -v f="$1" -v m="$2" '$1 == f && $2 == m { print $6 " " $8 }' | tr -d '\n' | sed 's/,$//'; }

{
    cat <<'EOF'
# Models

Largest differences from Hugging Face transformers (5.12.1, F32, eager attention), on tiny random models of every
family in `tests/vectors`: two prompts, the baseline and sixteen edits, attention of every layer (absolute) and
logits (relative to the largest). The tests fail beyond 5e-5 and 1e-4. This page is written by `scripts/models.sh`;
the peculiarities of a family are described in the opening comment of its file, `src/model/family/*.c`.

| GGUF's name | `config.json` | reference model | GGUF: attention, logits | directory: attention, logits |
|---|---|---|---|---|
EOF
    printf '%s\n' "$lines" | awk '$2 == "model.gguf" { print $1 }' | while read -r folder; do
        vectors=$root/tests/vectors/$folder
        class=$(tr -d '\n' <"$vectors/hf/config.json" | sed 's/.*"architectures": *\[ *"\([^"]*\)".*/\1/')
        file=$vectors/model.gguf made=$(differences "$folder" model.gguf)
        [ -e "$file" ] || file=$vectors/hf made='llama.cpp has no such model'
        name=$("$build/qkv" info -m "$file" | awk '$1 == "architecture" { print $2 }')
        # shellcheck disable=SC2016 # Markdown's quotes, not the shell's
        printf '| `%s` | %s | %s | %s | %s |\n' "$name" "$class" "$folder" \
            "$made" "$(differences "$folder" hf)"
    done
    cat <<'EOF'

The same model in two safetensors files (`llama_gqa/hf-sharded`) and in BF16 (`qwen3/hf-bf16`) is compared too. The
window of `mistral` is only in its directory: llama.cpp's format has no key for it. `qkv convert` writes a key that
qkv reads. llama.cpp has no `gpt_neo`, `gptj`, `opt`, `codegen` and `persimmon`: their GGUF files are written by `qkv
convert`, under these names, and read by qkv alone.

The slopes of ALiBi in `mpt` are those that `alibi_bias_max` asks for, as in llama.cpp and in the program that trained
these models; transformers' class takes 8 whatever the config says.

Of models for images and text the language part is opened, and a notice names the other parts:
`Gemma3ForConditionalGeneration` (Gemma 3 4B and larger), `Gemma4ForConditionalGeneration`,
`Idefics3ForConditionalGeneration`, `InternVLForConditionalGeneration`, `Llama4ForConditionalGeneration`,
`LlavaForConditionalGeneration`, `LlavaNextForConditionalGeneration`, `LlavaOnevisionForConditionalGeneration`,
`Mistral3ForConditionalGeneration`, `Qwen2VLForConditionalGeneration`, `Qwen2_5_VLForConditionalGeneration`,
`Qwen3VLForConditionalGeneration`, `SmolVLMForConditionalGeneration`, `VipLlavaForConditionalGeneration`; within them,
language parts of the types `gemma3_text`, `gemma4_text`, `granite`, `llama`, `llama4_text`, `ministral3`, `mistral`,
`phi3`, `qwen2`, `qwen2_vl_text`, `qwen2_5_vl_text`, `qwen3` and `qwen3_vl_text`. M-RoPE is plain RoPE there: the
three positions of a text's token are equal.

Activations are SiLU, GELU, exact or in its tanh form, ReLU and its square, whichever the config names (`silu`, `gelu`,
`gelu_new`, `relu2`, ...), and xIELU in Apertus.

Not supported, and refused by name: every other architecture; Gemma 4 with experts; multi-head
latent attention. Layers may differ in the number and the width of their heads, in RoPE and in the feed-forward;
circuits are computed of layers of one shape, which `--layers` chooses.

## Quantised weights

Weights of any type are converted to F32, and all arithmetic is F32. So a quantised file gives exactly what an F32
file with the same, dequantised values gives: `tests/unit/test_hf_convert.c` and `test_synthetic.c` run every type
that ggml can write. Weights are converted in tiles that stay in the cache, those of experts too: no matrix takes memory
beyond the file.
EOF
} >"$page.part"
mv "$page.part" "$page"
echo "$page"
