# A text under two edits; the second one changes nothing, and says so. Then the same as lines of a file.
qkv generate -p 'The river runs to the sea.' -n 16 --variant 'v@*=scale:0.1' --variant 'q@0=scale:1' -o out.jsonl
sed 's/,"log_probabilities":\[[^]]*\]//; s/"model":"[^"]*"/"model":"M"/' out.jsonl
qkv generate -p 'The river runs to the sea.' -n 16 --explain --variant 'z@3.h1=zero' --variant 'logits=scale:0.5'
printf 'The old mill\n\nA small bird\n' | qkv generate -f - -n 4
