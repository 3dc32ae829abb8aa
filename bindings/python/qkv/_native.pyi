"""The compiled module: see ffi_build.py."""
from typing import Any, Callable, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

class _FFI:
    CData: Any
    NULL: Any
    def def_extern(self, *, error: int = ..., onerror: Callable[..., None] = ...) -> Callable[[F], F]: ...
    def __getattr__(self, name: str) -> Any: ...

ffi: _FFI
lib: Any
