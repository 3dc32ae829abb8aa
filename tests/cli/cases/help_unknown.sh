qkv help --man weather
qkv help --names run
qkv help weather
