"""Models of Hugging Face transformers: any causal language model, with its key-value cache.

One idea: a runner turns tokens into rows of logits, for one sequence or a batch, without a
tokenizer; a model is a runner with a tokenizer.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import safe_open
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

from stencilm.errors import ModelError, TokenizerError
from stencilm.foreign import reported_as, said
from stencilm.matching.reasoning import ReasoningFormat
from stencilm.models.batches import TransformersBatch
from stencilm.models.kv_cache import KeyValueCache
from stencilm.models.prompts import encode_prompt, stop_token_ids
from stencilm.models.protocol import Prompt
from stencilm.models.sequences import CachedSequence, context_size_of
from stencilm.models.threads import SMALL_MODEL, one_thread
from stencilm.shown import in_a_line, is_word, shown_value
from stencilm.tokenizers import TokenizerInfo
from stencilm.tokenizers.merge_prefixes import check_tokenizer_file
from stencilm.tool_calls.reasoning import reasoning_format
from stencilm.whole_numbers import count, shown

_HUB_TIMEOUT = 10.0  # seconds
_FEW_TOKENS = 32
# The parameter of `forward` that takes the cache: one name before transformers 5.24, mostly the
# other since.
_CACHE_ARGUMENTS = ("past_key_values", "cache")


class TransformersRunner:
    """The forward passes of a transformers causal language model, without a tokenizer.

    The model is put in evaluation mode and stays on its device; logits are returned as float32 on
    the CPU.
    """

    def __init__(self, model: Any, *, static_cache: int | None = None) -> None:
        if static_cache is not None:
            static_cache = count("static_cache", static_cache, least=1, otherwise=", or None")
        if not all(hasattr(model, name) for name in ("config", "eval", "get_input_embeddings")):
            raise TypeError(_no_causal_model(f"model is {shown_value(model):.60}"))
        _check_causal(model)
        self.model = model.eval()
        self._static_cache = static_cache
        sizes = [
            size
            for size in (context_size_of(model.config.get_text_config()), static_cache)
            if size is not None
        ]
        self._context_size = min(sizes, default=None)
        parameters = inspect.signature(model.forward).parameters
        self._keeps_last_logits_only = "logits_to_keep" in parameters
        num_parameters = sum(weight.numel() for weight in model.parameters())
        self._is_small = num_parameters <= SMALL_MODEL and model.device.type == "cpu"
        self._cache_argument = next((name for name in _CACHE_ARGUMENTS if name in parameters), None)
        self._takes_positions = {"attention_mask", "position_ids"} <= parameters.keys()
        self._takes_own_masks: bool | None = None  # determined when it is first needed
        weight = getattr(model.get_input_embeddings(), "weight", None)
        self._num_embeddings = None if weight is None else int(weight.shape[0])

    @property
    def context_size(self) -> int | None:
        """The number of positions that the model was built for; None if it is not declared."""
        return self._context_size

    @property
    def runs_batches(self) -> bool:
        """Whether rows of different lengths may share a pass.

        The cache can be masked, and if it has a sliding window, reordered as well.
        """
        if not self._takes_positions or self._static_cache is not None:
            return False
        cache = self.new_cache()
        if cache is None or cache.is_recurrent:
            return False
        return cache.sees_everything or cache.can_reorder

    def start_batch(self, prompts: Sequence[Sequence[int]]) -> TransformersBatch:
        """Several sequences that are run together."""
        return TransformersBatch(self, prompts)

    def new_cache(self) -> KeyValueCache | None:
        """An empty cache; None if the model has no cache."""
        if self._cache_argument is None:
            return None
        return KeyValueCache(self.model.config, static_size=self._static_cache)

    def forward(
        self,
        token_ids: Sequence[Sequence[int]],
        cache: KeyValueCache | None,
        rows: int,
        **more: Any,
    ) -> NDArray[np.float32]:
        """Run tokens after those in the cache; returns the logits of the last `rows` positions.

        `token_ids` holds one list for each sequence of the batch, all of the same length. The
        result is float32, shape [batch, rows, width].
        """
        count = len(token_ids[0])
        if cache is not None and not more and cache.num_tokens and count > 1 and cache.is_recurrent:
            # Given several tokens, recurrent layers would start again from an empty state.
            passes = [
                self._run([[row[at]] for row in token_ids], cache, 1, {}) for at in range(count)
            ]
            return np.concatenate(passes[-rows:], axis=1)
        if cache is not None and not more and self._is_worth_a_mask(token_ids, cache):
            more = {"attention_mask": _mask_behind(cache.num_tokens, count)}
        return self._run(token_ids, cache, rows, more)

    def _run(
        self,
        token_ids: Sequence[Sequence[int]],
        cache: KeyValueCache | None,
        rows: int,
        more: dict[str, Any],
    ) -> NDArray[np.float32]:
        options: dict[str, Any] = {"logits_to_keep": rows} if self._keeps_last_logits_only else {}
        if cache is not None and self._cache_argument is not None:
            options |= {self._cache_argument: cache.cache, "use_cache": True}
        self._check_ids(token_ids)
        device = self.model.device
        options |= {name: torch.as_tensor(value, device=device) for name, value in more.items()}
        threads = one_thread() if self._is_small else nullcontext()
        with torch.no_grad(), threads:
            input_ids = torch.tensor([list(row) for row in token_ids], device=device)
            logits = self.model(input_ids=input_ids, **options).logits[:, -rows:]
        if cache is not None:
            cache.num_tokens += input_ids.shape[1]
        # A copy, because the loop writes into the rows, and a float32 CPU tensor would share its
        # memory.
        return np.array(logits.float().cpu().numpy(), dtype=np.float32)

    def _check_ids(self, token_ids: Sequence[Sequence[int]]) -> None:
        """Raise ModelError for a token that has no embedding.

        On a GPU, such a token would make all later passes of the process fail.
        """
        largest = max(map(max, token_ids))
        if self._num_embeddings is not None and largest >= self._num_embeddings:
            raise ModelError(
                f"token {largest} is beyond the {self._num_embeddings} rows of the model's "
                "embeddings: its tokenizer is that of another model, or has grown; give the right "
                "one, or call resize_token_embeddings"
            )

    def _is_worth_a_mask(self, token_ids: Sequence[Sequence[int]], cache: KeyValueCache) -> bool:
        """Whether to build the attention mask here: for few tokens after many.

        transformers builds a mask from a rule on indices, which each layer converts to numbers.
        Measured with the embedded model, a pass over two tokens then costs 1.28 times one over a
        single token, and 1.21 times with a mask that is converted once.
        """
        if not self._is_small or len(token_ids) > 1 or not 1 < len(token_ids[0]) <= _FEW_TOKENS:
            return False
        if cache.num_tokens == 0 or not cache.sees_everything:
            return False
        if self._takes_own_masks is None:
            self._takes_own_masks = self._own_masks_work()
        return self._takes_own_masks

    def _own_masks_work(self) -> bool:
        """Test whether the model accepts a numeric mask: not all models do."""
        results = []
        tries: list[dict[str, Any]] = [{}, {"attention_mask": _mask_behind(3, 2)}]
        for more in tries:
            cache = self.new_cache()
            self._run([[0, 1, 2]], cache, 1, {})
            try:
                results.append(self._run([[1, 0]], cache, 2, more))
            except Exception:  # an unexpected mask may raise anything
                return False
        return bool(np.allclose(results[0], results[1], atol=1e-4))


class TransformersModel(TransformersRunner):
    """A transformers causal language model for a decode loop.

    Its stop tokens are those of the tokenizer, the configuration and the generation configuration
    together.

    Args:
        model: A causal language model of transformers.
        tokenizer: Its tokenizer.
        static_cache: Positions of a static key-value cache; None for one that grows.
    """

    def __init__(self, model: Any, tokenizer: Any, *, static_cache: int | None = None) -> None:
        super().__init__(model, static_cache=static_cache)
        self.tokenizer = tokenizer
        if not hasattr(tokenizer, "__len__") or not hasattr(tokenizer, "encode"):
            raise TypeError(
                f"tokenizer is {shown_value(tokenizer):.60}, but must be a tokenizer of "
                "transformers: "
                "AutoTokenizer.from_pretrained('organisation/name') returns one"
            )
        vocab_size = max(len(tokenizer), _logits_width(model))
        settings = getattr(model, "generation_config", None)
        self._tokenizer_info = TokenizerInfo.from_huggingface(
            tokenizer,
            vocab_size=vocab_size,
            stop_token_ids=stop_token_ids(tokenizer, model.config, settings, vocab_size=vocab_size),
        )

    @property
    def tokenizer_info(self) -> TokenizerInfo:
        """The tokenizer's vocabulary, as wide as the model's logits."""
        return self._tokenizer_info

    @property
    def reasoning_format(self) -> ReasoningFormat | None:
        """The model's format of reasoning, taken from its chat template."""
        return reasoning_format(self.tokenizer)

    def encode(self, prompt: Prompt) -> list[int]:
        """The tokens of a text, or of chat messages through the tokenizer's chat template."""
        return encode_prompt(self.tokenizer, prompt)

    def start(self, prompt_ids: Sequence[int]) -> CachedSequence:
        """A new sequence that holds the prompt; the first `append` runs it."""
        return CachedSequence(self, prompt_ids)

    def read(
        self, token_ids: Sequence[int], cache: KeyValueCache | None, rows: int
    ) -> NDArray[np.float32]:
        """`forward` for one sequence: float32, shape [rows, width]."""
        logits: NDArray[np.float32] = self.forward([token_ids], cache, rows)[0]
        return logits


def _no_causal_model(what: str) -> str:
    return (
        f"{what}, but must be a causal language model of transformers: "
        "AutoModelForCausalLM.from_pretrained('organisation/name') returns one"
    )


def _check_causal(model: Any) -> None:
    """Raise TypeError for a model of another kind, whose scores are not those of a next token.

    A model with an encoder would read the whole text there, and write something else.
    """
    name = type(model).__name__
    if getattr(model.config, "is_encoder_decoder", False):
        raise TypeError(
            f"model is {name}, which has an encoder, but must be a causal language model; for this "
            "one, give stencilm.LogitsProcessor to its generate"
        )
    # Models with code of their own may have that method alone.
    has_method = hasattr(model, "prepare_inputs_for_generation")
    if not has_method and not getattr(model, "can_generate", lambda: True)():
        raise TypeError(_no_causal_model(f"model is {name}, which predicts no next token"))


def load_transformers(
    source: str | Path,
    *,
    device: str | None,
    dtype: str | None,
    options: dict[str, Any],
    show_progress: bool = True,
) -> TransformersModel:
    """The model and tokenizer of a folder (a Path) or a hub id (a str).

    dtype names a torch type such as "float32"; "auto" and None take the type in which the weights
    were saved. No code of the folder or of the hub is run, and weights are only read from
    safetensors, because reading a pickle runs code in it.

    Raises:
        ModelError: Either cannot be loaded, with a reason, or only by running code.
    """
    torch_dtype = _torch_dtype(dtype)
    _check_trust(options)
    if isinstance(source, str):
        _require_on_hub(source)
    elif "gguf_file" not in options:
        _check_weights(source)
    with reported_as(lambda error: _not_loaded(source, error)):
        if isinstance(source, Path) and not {"gguf_file", "config"} & options.keys():
            _check_layers(source)
        with _progress_bars(show_progress):
            _check_tokenizer(source)
            tokenizer = AutoTokenizer.from_pretrained(str(source), trust_remote_code=False)
            model: Any
            model, found = AutoModelForCausalLM.from_pretrained(
                str(source),
                dtype=torch_dtype,
                **options | _SAFE,
                output_loading_info=True,
            )
        _check_complete(source, found)
        if device is not None:
            model.to(device)
    return TransformersModel(model, tokenizer)


def _not_loaded(source: str | Path, error: BaseException) -> ModelError:
    reason = said(error)
    if "trust_remote_code" in str(error):
        reason = f"it brings code of its own, which load does not run; {_BY_HAND}"
    elif "ignore_mismatched_sizes" in reason:
        reason = "its weights are not of the sizes that its config.json tells; fetch both again"
    elif "safetensors" in reason:
        reason = f"{reason}; load reads no pickled weights; {_BY_HAND}"
    return ModelError(f"cannot load the model {str(source)!r}: {reason}")


def _check_tokenizer(source: str | Path) -> None:
    """Raise ModelError if the tokenizers library would abort the process.

    The loader chooses one of several files by its own version, so all of them are checked.
    """
    folder = source
    if isinstance(folder, str):
        from huggingface_hub import snapshot_download

        try:
            folder = Path(snapshot_download(folder, allow_patterns="tokenizer*.json"))
        except Exception:  # the loader knows other ways to find files, and reports errors
            return
    for file in sorted(folder.glob("tokenizer*.json")):
        try:
            check_tokenizer_file(file)
        except TokenizerError as error:
            raise _not_loaded(source, error) from error


def _check_layers(folder: Path) -> None:
    """Raise ModelError if the weights cannot be read, or are fewer than the model's layers.

    The loader creates all layers before it reads weights: with a corrupt number of layers, it would
    never end.
    """
    num_weights = 0
    files = sorted(folder.glob("*.safetensors"))
    if not files or not (folder / "config.json").is_file():
        return  # the weights are elsewhere; the loader reports errors
    for file in files:
        with (
            reported_as(lambda error, file=file: _not_loaded(file, error)),  # type: ignore[misc]
            safe_open(file, framework="pt") as opened,
        ):
            num_weights += len(opened.keys())
    config: Any = AutoConfig.from_pretrained(str(folder), trust_remote_code=False)
    num_layers = getattr(config.get_text_config(), "num_hidden_layers", None)
    if isinstance(num_layers, int) and num_layers > num_weights:
        raise ModelError(
            f"cannot load the model {str(folder)!r}: its config.json tells of {shown(num_layers)} "
            f"layers, but its files hold {num_weights} weights; fetch them again"
        )


def _check_complete(source: str | Path, found: dict[str, Any]) -> None:
    """Raise ModelError if the loader did not find some weights, and initialised them at random."""
    missing = sorted(found["missing_keys"])
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ModelError(
            f"cannot load the model {str(source)!r}: its files lack the weights {missing[0]!r}"
            f"{more}, without which it would write at random; fetch them again"
        )


_SAFE = {"trust_remote_code": False, "use_safetensors": True}
_BY_HAND = (
    "if you trust it, load model and tokenizer with transformers and give both to "
    "stencilm.from_transformers"
)
_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.pickle")


def _check_trust(options: dict[str, Any]) -> None:
    """Raise ModelError if the options ask to run code or to read pickles."""
    for name, safe in _SAFE.items():
        if name in options and options[name] not in (safe, None):
            raise ModelError(
                f"load takes no {name}={options[name]!r}: it neither runs code of a model nor "
                f"reads pickled weights; {_BY_HAND}"
            )


def _check_weights(folder: Path) -> None:
    """Raise ModelError if the weights of a folder are pickled."""
    if any(folder.glob("*.safetensors")):
        return
    pickled = sorted(path.name for pattern in _PICKLED for path in folder.glob(pattern))
    if pickled:
        raise ModelError(
            f"the weights of {str(folder)!r} are pickled ({pickled[0]}), and reading a pickle "
            "runs the code in it: convert them with model.save_pretrained(folder) of "
            f"transformers, which writes safetensors; {_BY_HAND}"
        )


def _mask_behind(past: int, length: int) -> NDArray[np.float32]:
    """The mask that is added to attention scores, so that no token attends to later ones."""
    mask = np.zeros((1, 1, length, past + length), dtype=np.float32)
    for row in range(length - 1):
        mask[..., row, past + row + 1 :] = -np.inf
    return mask


def _require_on_hub(name: str) -> None:
    """Ask the hub once, because the loader would retry for a minute before the same error.

    Raises ModelError if the model is neither in the local cache nor on the hub.
    """
    from huggingface_hub import HfApi, try_to_load_from_cache
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, RepositoryNotFoundError

    try:
        if isinstance(try_to_load_from_cache(name, "config.json"), str):
            return
        HfApi().model_info(name, timeout=_HUB_TIMEOUT)
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise ModelError(
            f"there is no model {in_a_line(name, 200)} on the hub, or it is private: check the "
            "name, or log in"
        ) from error
    except HfHubHTTPError:
        pass  # the hub responds, but with another error; the loader has other ways to download
    except Exception as error:
        # No DNS, no route, a proxy, offline mode: each HTTP client has its own exception classes.
        raise ModelError(
            f"the model {name!r} is not in the local cache and the hub cannot be reached: "
            "check the network, or give a folder that holds the model"
        ) from error


@contextmanager
def _progress_bars(show: bool) -> Iterator[None]:
    """Hide the loader's progress bars for the duration of the body, unless they are enabled."""
    bars: Any = transformers_logging  # its functions are not typed
    if show or not bars.is_progress_bar_enabled():
        yield
        return
    bars.disable_progress_bar()
    try:
        yield
    finally:
        bars.enable_progress_bar()


def _torch_dtype(name: str | None) -> Any:
    if name is None or is_word(name, ["auto"]):
        return "auto"
    dtype = getattr(torch, name, None) if isinstance(name, str) else None
    if not isinstance(dtype, torch.dtype):
        raise ModelError(
            f"{shown_value(name):.80} is not a torch dtype: use 'auto', 'float32' or 'bfloat16'"
        )
    return dtype


def _logits_width(model: Any) -> int:
    """The width of the output layer, which may be padded beyond the tokenizer."""
    head = model.get_output_embeddings()
    weight = getattr(head, "weight", None)
    if weight is not None:
        return int(weight.shape[0])
    return int(model.config.get_text_config().vocab_size)
