"""The original's kernels by name: each is `apply_token_bitmask_inplace` with its backend.

One idea: a function with a kernel's name has the kernel's effect. Internals of the kernels, such as
the program that Triton compiles, are not provided.
"""

from stencilm.compat.xgrammar.kernels.apply_token_bitmask_inplace_cpu import (
    apply_token_bitmask_inplace_cpu,
)
from stencilm.compat.xgrammar.kernels.apply_token_bitmask_inplace_cuda import (
    apply_token_bitmask_inplace_cuda,
)
from stencilm.compat.xgrammar.kernels.apply_token_bitmask_inplace_torch import (
    apply_token_bitmask_inplace_torch,
)
from stencilm.compat.xgrammar.kernels.apply_token_bitmask_inplace_torch_compile import (
    apply_token_bitmask_inplace_torch_compile,
)
from stencilm.compat.xgrammar.kernels.apply_token_bitmask_inplace_triton import (
    apply_token_bitmask_inplace_triton,
)

__all__ = [
    "apply_token_bitmask_inplace_cpu",
    "apply_token_bitmask_inplace_cuda",
    "apply_token_bitmask_inplace_torch",
    "apply_token_bitmask_inplace_torch_compile",
    "apply_token_bitmask_inplace_triton",
]
