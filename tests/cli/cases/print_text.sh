# Letters as text or as outlines; axes in words; without the small print; all of it in the recipe.
"$MAKE_SWEEP" r.sqlite 3 4 3 q,v scale 1e-3,1e-2,1 first_column,entropy || exit
pdf_has() { # FILE TEXT...: which texts can be found in a PDF, through the maps of its fonts
    python3 - "$@" <<'PY'
import re, sys, zlib
data = open(sys.argv[1], 'rb').read()
streams = []
for found in re.finditer(rb'stream\r?\n', data):
    try:
        streams.append(zlib.decompressobj().decompress(data[found.end():]).decode('latin-1'))
    except zlib.error:
        pass
codes = {}
for text in streams:
    if 'beginbfchar' in text:
        codes.update((chr(int(a, 16)), chr(int(b, 16))) for a, b in re.findall(r'<(\w\w)> <(\w{4})>', text))
pieces = []
for text in streams:
    for shown in re.findall(r'(\[(?:\\.|[^\]])*\]TJ|\((?:\\.|[^)])*\)Tj)', text):
        letters = ''.join(re.findall(r'\(((?:\\.|[^)])*)\)', shown))
        pieces.append(''.join(codes.get(c, '?') for c in re.sub(r'\\(.)', r'\1', letters)))
for wanted in sys.argv[2:]:
    print(wanted, '-', any(wanted in piece for piece in pieces))
PY
}
recipe() {
    grep -ao '"\(text\|font\|width\|no_notes\|hide_notes\)":[^,}]*' "$1"
}
echo == figure
qkv figure grid --layer 0 --head 1 -p 'abc <script>' --col 'a<b=q@0=zero' --text text -o f.svg -o f.pdf
grep -o '>a&lt;b<' f.svg
grep -c '<text' f.svg
grep -c '<script' f.svg
pdf_has f.pdf 'a<b' 'Attention Weight' 'Something Else'
qkv figure grid --layer 0 --head 1 -p abc --col 'a<b=q@0=zero' --text paths -o p.svg -o p.pdf
grep -c '<text' p.svg
pdf_has p.pdf 'a<b'
qkv figure grid --layer 0 --head 1 -p abc --col 'a=q@0=zero' --text text --no-notes --width 90mm --font 'dejavu serif' -o n.svg
grep -c 'layer 0, head 1' f.svg n.svg
grep -c 'font-family="DejaVu Sans, ' f.svg n.svg
recipe n.svg
echo == plot
for kind in lines heatmap ranking; do
    qkv plot r.sqlite --kind $kind --metric first_column --epsilon 1e-2 --text text -o $kind.svg -o $kind.pdf
    grep -c '>weight on' $kind.svg
    pdf_has $kind.pdf 'weight on'
done
qkv plot r.sqlite --metric entropy --text text --no-notes --font 'DejaVu Sans Mono' -o e.svg
grep -o '>entropy of attention (nats)<' e.svg
grep -o '>Entropy of attention against' e.svg
grep -c 'mean over' lines.svg e.svg
recipe e.svg
echo == errors
qkv figure modify --tokens 5,6 --text text -o no.png
qkv figure modify --tokens 5,6 --no-notes --report no.md
qkv plot r.sqlite --metric entropy --text text -o no.png
qkv plot r.sqlite --metric entropy --text words -o no.svg
FONTCONFIG_FILE=$PWD/fonts.conf
export FONTCONFIG_FILE
echo '<fontconfig><dir>/usr/share/fonts/truetype/dejavu</dir></fontconfig>' >fonts.conf
qkv plot r.sqlite --metric entropy --font 'No Such' -o no.svg 2>&1 | sed 's/fontconfig has .*DejaVu Sans.*/fontconfig has DejaVu Sans and others/'
