qkv run --tokens 5,6,7,8 --variant 'q@0.h0=scale:0.5 + v@1=zero' --capture pattern@0 \
    --capture pattern@1.h0 --capture logits
