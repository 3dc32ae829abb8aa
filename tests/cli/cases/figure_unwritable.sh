qkv figure modify --layer 0 --head 0 -o a.png -o nowhere/b.png
echo "exit $?" >&2
ln -s /dev/full full.png
qkv figure modify --layer 0 --head 0 -o full.png
echo "exit $?" >&2
ls
