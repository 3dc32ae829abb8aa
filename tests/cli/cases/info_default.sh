# Away from its build tree the program looks beside itself first, and says where it looked.
mkdir -p usr/bin usr/share/qkv
cp "$(readlink -f "$QKV")" usr/bin/qkv
ln -s "$MODELS/default.gguf" usr/share/qkv/default.gguf
usr/bin/qkv info | sed -n 's,^file .*/run/,,p'
