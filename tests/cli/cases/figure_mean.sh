qkv figure mean --layer 0 --head 0 -p 'One.' -p 'Two words.' -o mean.svg
ls
