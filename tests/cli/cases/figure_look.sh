# Scale, colours and the look of masked cells: chosen by the length, or as asked for; the recipe has
# them, the small print says so.
awk 'BEGIN { for (i = 0; i < 41; i++) printf "%s%d", i ? "," : "", 5 + i }' >long
cut -d, -f1-40 long >short
look() {
    length=$1 kind=$2
    shift 2
    qkv figure "$kind" --layer 0 --head 0 --tokens "$(cat "$length")" -o out.svg "$@" || return
    tr -d '\n' <out.svg | grep -o '"drawn":{[^}]*}'
}
look short modify
look long modify
look long mean --scale linear --masked zero --colormap magma
look short modify --masked hatch --range auto
look long modify --diff
look long modify --scale power --colormap grey
look short grid --row 'Plain='
look short grid --row 'Plain=' --show scores
look short modify --diff --colormap viridis
look short grid --row 'Plain=' --show scores --scale log
look short grid --row 'Plain=' --show scores --range 0,1
look short grid --row 'Plain=' --show scores --masked white
look short modify --masked grey
exit 0
