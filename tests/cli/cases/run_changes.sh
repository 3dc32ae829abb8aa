# What edits did to attention and to the next token: the table, and the same as JSON.
qkv run -p 'The river runs to the sea.' --variant 'q@3.h1=scale:1e-3' --variant 'v@5=zero' --capture pattern@3 \
    --capture pattern@4.h2 --capture 'logits[-1]' | sed -n '/^attention/,$p'
# A single head without variants; tokens beyond 32 cells are put together.
qkv run -p 'A small bird' --capture pattern@3.h1 | sed -n '/^layer/,$p'
qkv run -p "$(yes 'The river runs to the sea.' | head -6 | tr '\n' ' ')" --capture pattern@1.h0 | sed -n '/^layer/,$p'
# Nothing changed, nothing to show: an edit without effect, and tensors of other kinds.
qkv run -p 'A small bird' --variant 'q@3.h1=scale:1' --capture pattern@3 --quiet | sed -n '/^attention/,$p'
qkv run -p 'A small bird' --variant 'q@3.h1=scale:2' --capture q@3 --capture pattern@3:first | sed -n '/^tensor/,$p' | cut -c1-30
qkv run -p 'The river runs to the sea.' --variant 'q@3.h1=scale:1e-3' --capture pattern@3 --capture 'logits[-1]' --json |
    sed -n '/"changes"/,$s/\([0-9]\.[0-9]\{4\}\)[0-9]*/\1/p'
