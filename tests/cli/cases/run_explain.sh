# What would be computed, and nothing is.
qkv run --tokens 5,6,7 --variant 'v@2=zero' --capture pattern@2 --explain | sed 's/[;,].*//; s/^total.*/total/'
# One head's projection and one small attention.
qkv run --tokens 5,6,7 --variant 'q_in@2.h1=zero' --capture pattern@2 --explain | sed -n 's/ [0-9.e-]* GFLOP.*//; /^variant/p'
qkv run --tokens 5,6,7 --capture pattern@2 --explain | tail -c 1 | od -An -c
qkv run --tokens 5,6,7 --memory 1 -t 1 --capture pattern@0 | wc -l
