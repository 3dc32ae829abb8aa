# Pages of a given width, in all units and formats: exactly that wide. What is too narrow says what is enough.
"$MAKE_SWEEP" r.sqlite 3 4 3 q,v scale 1e-3,1e-2,1 sink || exit
size() {
    python3 - "$@" <<'PY'
import re, struct, sys
for name in sys.argv[1:]:
    data = open(name, 'rb').read()
    if name.endswith('.png'):
        print(name, struct.unpack('>I', data[16:20])[0], 'pixels')
    elif name.endswith('.pdf'):
        print(name, '%.2f points' % float(re.search(rb'/MediaBox \[ 0 0 ([0-9.]+)', data)[1]))
    else:
        print(name, '%.2f points' % float(re.search(rb'<svg[^>]* width="([0-9.]+)', data)[1]))
PY
}
qkv figure modify --layer 0 --head 1 --tokens 5,6,7 --width 85mm --dpi 300 -o f.png -o f.svg -o f.pdf
size f.png f.svg f.pdf
qkv plot r.sqlite --kind lines --width 8.5cm --dpi 300 -o l.png -o l.svg -o l.pdf
size l.png l.svg l.pdf
qkv plot r.sqlite --kind ranking --epsilon 1 --width 3.5in -o b.svg
qkv plot r.sqlite --kind heatmap --epsilon 1 --width 240pt -o h.svg
size b.svg h.svg
qkv figure modify --layer 0 --head 1 --tokens 5,6,7 --width 20mm -o no.svg
qkv plot r.sqlite --width 2cm -o no.svg
qkv plot r.sqlite --width 85 -o no.svg
qkv plot r.sqlite --width -5mm -o no.svg
qkv plot r.sqlite --width nanmm -o no.svg
qkv figure modify --tokens 5,6 --width 85mm --panel-size 90 -o no.svg
qkv figure modify --tokens 5,6 --width 85mm --report no.md
ls
