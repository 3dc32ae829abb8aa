# Maps of an HTML report: weights under the pointer, tokens, groups of identical panels, the figure's look.
look() {
    python3 - "$@" <<'PY'
import html.parser, sys

class Page(html.parser.HTMLParser):
    """The cards, the numbers of their maps, their colours, and the tokens that the script names."""
    def __init__(self):
        super().__init__()
        self.cards, self.maps, self.fills, self.drawn, self.tokens = [], [], [], [], {}
        self.inside, self.list = [], None
    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        kind = attrs.get("class", "")
        if tag == "div" and kind == "card":
            self.cards.append([])
        elif tag == "svg" and kind == "map":
            self.maps.append(attrs)
            self.fills.append([])
            self.drawn.append(0)
        elif tag == "ol":
            self.list = self.tokens.setdefault(attrs["id"], [])
        elif tag == "li" and self.list is not None:
            self.list.append("")
        elif tag == "li" and self.cards and not self.inside:
            self.cards[-1].append("")
        elif tag == "rect" and self.maps and "fill" in attrs:
            self.fills[-1].append(attrs["fill"])
            self.drawn[-1] += int(attrs["width"]) if attrs["height"] == "1" else 0
        if tag in ("table", "script", "h2") and self.cards:
            self.inside.append(tag)
    def handle_endtag(self, tag):
        if tag == "ol":
            self.list = None
    def handle_data(self, text):
        if self.list:
            self.list[-1] += text
        elif self.list is None and self.cards and self.cards[-1] and not self.inside and not self.done():
            self.cards[-1][-1] += text.strip("\n")
    def done(self):
        return len(self.maps) >= len(self.cards)

page = Page()
page.feed(open(sys.argv[1]).read())
for names, found, fills, drawn in zip(page.cards, page.maps, page.fills, page.drawn):
    n, side = int(found["data-n"]), int(found["data-side"])
    weights = found["data-weights"].split(" ")
    rows = [weights[i * side:(i + 1) * side] for i in range(side)]
    hidden = [c > r for r in range(side) for c in range(side)]
    sums = [sum(float(w) for w in row if w != "m") for row in rows]
    print(" | ".join(names))
    print("  %d tokens, %d x %d cells" % (n, side, len(weights) // side), end="")
    print(", rows sum to 1" if all(abs(s - 1) < 0.01 for s in sums) else ", pooled", end="")
    print(", masked above the diagonal" if [w == "m" for w in weights] == hidden else ", not masked", end="")
    print(", hatched" if "url(#hatch)" in fills else "", end="")
    print(", all drawn" if drawn == side * side else
          ", only the others drawn" if drawn == hidden.count(False) else ", some drawn", end="")
    print(", %d tokens named" % len(page.tokens["tokens" + found["data-prompt"]]))
for word in sys.argv[2:]:
    print(word, sum(word == t for t in page.tokens["tokens0"]))
PY
}
# Powers of two: scaling the query or the key by one gives the same bits on every processor.
qkv figure modify --layer 5 --head 0 --eps 0.5,0.125 -p 'one < two & "three"' --report a.html
look a.html '<' '"'
qkv figure modify --layer 5 --head 0 --eps 0.5,0.125 --tokens "$(seq -s, 5 104)" --report long.html
look long.html
qkv figure grid --layer 5 --head 0 --tokens 5,6,7 --tokens 9,8 --col 'Own=' --col 'Zero=v@5=zero' --masked hatch \
    --colormap viridis --report grid.html
look grid.html
# The colour bar is the figure's scale.
for page in a.html long.html grid.html; do
    sed -n 's/.*aria-label="\(colours from [^"]*\)".*/\1/p' $page
    sed -n 's/.*>\(Attention Weight[^<]*\)<\/text><\/svg>.*/\1/p' $page
done
