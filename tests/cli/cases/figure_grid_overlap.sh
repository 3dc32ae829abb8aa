qkv figure grid --layer 0 --head 0 --tokens 5,6 --row 'A=q@0=zero' --col 'B=q@0.h0=zero' -o out.svg
status=$?
ls
exit $status
