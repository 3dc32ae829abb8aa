# One token is no tokens, and no line breaks inside the name with its version. In a PDF the small
# print is UTF-16 in hexadecimal digits.
hexadecimal() {
    printf %s "$1" | od -An -v -tx1 | tr -d ' \n' | sed 's/../00&/g' | tr a-f A-F
}
qkv figure modify --layer 0 --head 0 --tokens 5 -o one.pdf
qkv figure modify --layer 0 --head 0 --tokens 5,6 -o two.pdf
grep -ac "$(hexadecimal ' 1 token ')" one.pdf
grep -ac "$(hexadecimal ' 2 tokens ')" two.pdf
grep -ac "$(hexadecimal ' qkv')00A0$(hexadecimal 0.)" one.pdf
