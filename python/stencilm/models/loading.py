"""Choose the backend that runs a model, and find a model by name.

One idea: frameworks are imported here, when a model needs them. An error about a missing one names
the extra that installs it.
"""

from __future__ import annotations

import os
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from stencilm.errors import ModelError
from stencilm.models.protocol import LanguageModel
from stencilm.shown import shown_value

EMBEDDED_MODEL = "tiny"


def load_backend(
    name_or_path: str | Path,
    *,
    device: str | None,
    dtype: str | None,
    options: dict[str, Any],
) -> LanguageModel:
    """The backend of a model by name; `stencilm.load` documents the arguments."""
    source = _find(name_or_path)
    is_embedded = name_or_path == EMBEDDED_MODEL
    if is_embedded and device is None and dtype is None and not options and not _has_torch():
        from stencilm.models.embedded import EmbeddedModel

        return EmbeddedModel()
    if is_embedded and dtype is None:
        dtype = "float32"  # the weights are float16, which is slow on CPUs
    backend: LanguageModel = _transformers_backend().load_transformers(
        source, device=device, dtype=dtype, options=options, show_progress=not is_embedded
    )
    return backend


def wrap_transformers(
    model: Any, tokenizer: Any, *, static_cache: int | None = None
) -> LanguageModel:
    """The backend for a transformers model that the caller has loaded."""
    backend: LanguageModel = _transformers_backend().TransformersModel(
        model, tokenizer, static_cache=static_cache
    )
    return backend


def wrap_mlx(model: Any, tokenizer: Any) -> LanguageModel:
    """The backend for an mlx-lm model that the caller has loaded."""
    backend: LanguageModel = _backend("mlx", "models of MLX need", "mlx").MlxModel(model, tokenizer)
    return backend


def wrap_llama_cpp(llama: Any) -> LanguageModel:
    """The backend for a `llama_cpp.Llama` that the caller has loaded."""
    module = _backend("llama_cpp", "models of llama.cpp need", "llama-cpp")
    backend: LanguageModel = module.LlamaCppModel(llama)
    return backend


def _find(name_or_path: str | Path) -> str | Path:
    """The folder of a model, or its hub id. Raises ModelError if the name can be neither."""
    if name_or_path == EMBEDDED_MODEL:
        return Path(__file__).parents[1] / "tiny"
    folder = Path(name_or_path).expanduser()
    if name_or_path != "" and os.path.isdir(folder):
        if not (folder / "config.json").is_file():
            raise ModelError(f"the folder {str(folder)!r} holds no model: it has no config.json")
        return folder
    name = str(name_or_path)
    if isinstance(name_or_path, Path) or not re.fullmatch(r"[\w-][\w.-]*(/[\w-][\w.-]*)?", name):
        raise ModelError(
            f"there is no model folder {shown_value(name):.200}: give 'tiny', a folder with a "
            "config.json, or "
            "a hub id such as 'organisation/name'"
        )
    return name


def _has_torch() -> bool:
    return all(find_spec(package) is not None for package in ("torch", "transformers"))


def _transformers_backend() -> Any:
    return _backend("transformers", "local models need", "transformers")


def _backend(module: str, what: str, extra: str) -> Any:
    """Import a module of this folder.

    Raises ModelError if the packages of its extra are missing.
    """
    try:
        return import_module(f"stencilm.models.{module}")
    except ImportError as error:
        missing = (error.name or extra).partition(".")[0]
        raise ModelError(
            f"{what} the package {missing!r}: pip install 'stencilm[{extra}]'"
        ) from error
