# Maps of long prompts are drawn with fewer cells, and the report says so; short ones are not.
qkv figure modify --tokens "$(seq -s, 1 70)" -o out.png --report long.html 2>/dev/null
qkv figure modify --tokens "$(seq -s, 1 64)" -o out.png --report short.html 2>/dev/null
grep -c 'Maps of more than 64 tokens' long.html short.html
ls
