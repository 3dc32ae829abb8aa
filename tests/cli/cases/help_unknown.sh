qkv help weather
