qkv weather
