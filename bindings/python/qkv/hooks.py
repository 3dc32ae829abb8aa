"""Names that people who come from TransformerLens know."""
from __future__ import annotations

from ._core import check, encoded, ffi, lib, new_error, text_of

__all__ = ["hooks", "site"]


def hooks() -> dict[str, str]:
    """Hooks of TransformerLens, `L` being the layer where they have one, and what they are here.

    >>> import qkv
    >>> qkv.hooks()["blocks.L.attn.hook_q"]
    'q@L'
    """
    number = ffi.new("qkv_site *")
    found: dict[str, str] = {}
    while True:
        name = lib.qkv_hook_name(len(found), number)
        if name == ffi.NULL:
            return found
        here = text_of(lib.qkv_site_name(number[0]))
        if lib.qkv_site_has_layer(number[0]):
            found[f"blocks.L.{text_of(name)}"] = f"{here}@L"
        else:
            found[text_of(name)] = here


def site(hook: str) -> str:
    """The site of one hook.

    >>> import qkv
    >>> qkv.site("blocks.3.attn.hook_q")
    'q@3'
    >>> qkv.site("blocks.*.hook_mlp_out")
    'mlp_out@*'
    >>> qkv.site("blocks.-1.hook_resid_post"), qkv.site("ln_final.hook_normalized")
    ('resid_post@-1', 'final_norm')
    """
    out, err = ffi.new("char[]", lib.QKV_HOOK_SIZE), new_error()
    check(lib.qkv_hook_translate(out, encoded(str(hook)), err), err)
    return text_of(out)


def translated(text: str) -> str:
    """A place that may be written as a hook."""
    return site(text) if text.startswith("blocks.") or ".hook_" in text else text
