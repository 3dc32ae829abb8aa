# Writes OUT, a C file with the table of the files in FROM (one folder, no folders below): their names and bytes.
# Run at build time: cmake -DFROM=... -DOUT=... -P embed.cmake. src/page/page_files.c looks things up in it.
file(GLOB files RELATIVE ${FROM} ${FROM}/*)
list(FILTER files EXCLUDE REGEX "^\\.")
list(SORT files)
set(arrays "")
set(table "")
set(index 0)
foreach(name ${files})
    file(READ ${FROM}/${name} hex HEX)
    string(LENGTH "${hex}" digits)
    math(EXPR n "${digits} / 2")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    # A NUL after each, so that a text can be used as a string.
    string(APPEND arrays "static const unsigned char file_${index}[] = {${bytes}0x00};\n")
    string(APPEND table "    {\"${name}\", (const char *)file_${index}, ${n}},\n")
    math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${OUT} "/* Made by cmake/embed.cmake. */\n#include \"page/page_files.h\"\n\n${arrays}\n"
    "const qkv_page_entry qkv_page_table[] = {\n${table}    {NULL, NULL, 0},\n};\n")
