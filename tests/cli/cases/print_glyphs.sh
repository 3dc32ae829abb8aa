# Scripts that no font of the machine has are named, with the package that has them; others are drawn in silence.
"$MAKE_SWEEP" r.sqlite 2 2 2 q scale 1e-3,1 sink || exit
mkdir cache
cat >fonts.conf <<'CONF'
<fontconfig><dir>/usr/share/fonts/truetype/dejavu</dir><cachedir>cache</cachedir></fontconfig>
CONF
FONTCONFIG_FILE=$PWD/fonts.conf
export FONTCONFIG_FILE
words='river Fluß река النهر 河流 かわ 강 नदी ธาร 🌊'
echo '== figure' >&2
qkv figure modify --layer 0 --head 1 --tokens 5,6,7 --eps 1 --title "$words" -o f.svg -o f.png
echo '== plot' >&2
qkv plot r.sqlite --title "$words" -o p.svg -o p.pdf
echo '== letters that the font has' >&2
qkv plot r.sqlite --title 'river Fluß река النهر' -o p.svg
qkv figure modify --layer 0 --head 1 --tokens 5,6,7 --eps 1 --title 'Fluß річка' --font 'DejaVu Serif' -o f.svg
ls
