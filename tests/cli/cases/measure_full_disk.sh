# A full disk is told with its reason, also where it shows in the middle of the work.
ln -s /dev/full out.csv
qkv measure --variant 'q@0=zero' --variant 'k@0=zero' -o out.csv >/dev/null
echo "exit $?" >&2
ls
