# One token is not "tokens", and no line breaks inside the name with its version. In a PDF the small
# print is UTF-16 in hexadecimal digits.
hexadecimal() {
    python3 -c 'import sys; print(sys.argv[1].encode("utf-16-be").hex().upper())' "$1"
}
qkv figure modify --layer 0 --head 0 --tokens 5 -o one.pdf
qkv figure modify --layer 0 --head 0 --tokens 5,6 -o two.pdf
grep -ac "$(hexadecimal ' 1 token ')" one.pdf
grep -ac "$(hexadecimal ' 2 tokens ')" two.pdf
grep -ac "$(hexadecimal ' qkv')00A0$(hexadecimal 0.)" one.pdf
