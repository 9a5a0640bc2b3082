"""`LLParserLimits`: stored, but without effect; this package has bounds of its own."""

from __future__ import annotations

from stencilm.whole_numbers import truth, whole_number

_DEFAULTS = {
    "max_items_in_row": 2_000,
    "initial_lexer_fuel": 1_000_000,
    "step_lexer_fuel": 200_000,
    "step_max_items": 50_000,
    "max_lexer_states": 250_000,
    "max_grammar_size": 500_000,
    "precompute_large_lexemes": True,
    "verbose_errors": True,
}


class LLParserLimits:
    """Bounds of the original, accepted for compatibility; those of `stencilm.Limits` apply.

    Raises:
        TypeError: A bound is not an integer, or a switch neither True nor False.
        ValueError: A bound is negative.
    """

    max_items_in_row: int
    initial_lexer_fuel: int
    step_lexer_fuel: int
    step_max_items: int
    max_lexer_states: int
    max_grammar_size: int
    precompute_large_lexemes: bool
    verbose_errors: bool

    def __init__(
        self,
        *,
        max_items_in_row: int | None = None,
        initial_lexer_fuel: int | None = None,
        step_lexer_fuel: int | None = None,
        step_max_items: int | None = None,
        max_lexer_states: int | None = None,
        max_grammar_size: int | None = None,
        precompute_large_lexemes: bool | None = None,
        verbose_errors: bool | None = None,
    ) -> None:
        given = {
            "max_items_in_row": max_items_in_row,
            "initial_lexer_fuel": initial_lexer_fuel,
            "step_lexer_fuel": step_lexer_fuel,
            "step_max_items": step_max_items,
            "max_lexer_states": max_lexer_states,
            "max_grammar_size": max_grammar_size,
            "precompute_large_lexemes": precompute_large_lexemes,
            "verbose_errors": verbose_errors,
        }
        for name, value in given.items():
            if value is None:
                value = _DEFAULTS[name]
            elif isinstance(_DEFAULTS[name], bool):
                truth(name, value)
            else:
                value = whole_number(name, value, least=0)
            setattr(self, name, value)
