"""The original's kernels by their names: each is `apply_token_bitmask_inplace` with its backend.

One idea: a function of a kernel's name does what the kernel does. What lies within the kernels,
such as the program that Triton compiles, is not here.
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
