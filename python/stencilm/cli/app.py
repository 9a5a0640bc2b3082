"""The list of commands, and the one place where a problem becomes a sentence and an exit code.

One idea: commands raise; only `run` prints problems. A new command is one file with a function
and one line in `_COMMANDS`.
"""

from __future__ import annotations

import errno
import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from traceback import walk_tb
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

import stencilm
from stencilm.cli.audit import audit
from stencilm.cli.bench import bench
from stencilm.cli.check import check
from stencilm.cli.convert import convert
from stencilm.cli.examples import EXAMPLES
from stencilm.cli.explain import explain
from stencilm.cli.failure import INTERRUPTED, USAGE, Failure, sentence_of, sentence_of_system
from stencilm.cli.generate import generate
from stencilm.cli.index import index
from stencilm.cli.mask import mask
from stencilm.cli.playground import playground
from stencilm.cli.trace import trace
from stencilm.errors import StencilError
from stencilm.views.characters import visible

_COMMANDS: tuple[Callable[..., Any], ...] = (
    generate,
    check,
    convert,
    explain,
    mask,
    trace,
    index,
    bench,
    audit,
    playground,
)


def _epilog(name: str) -> str:
    """The examples of a command, one per line, with brackets escaped, which would mean a style."""
    return "\n\n".join(["Examples:", *(call.replace("[", r"\[") for call in EXAMPLES[name])])


class _Command(TyperCommand):
    """A command that takes an option once, unless it may be repeated; a flag may always be.

    Otherwise all values but the last would be dropped silently: a schema that nobody checks.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        once = [one for one in given if not getattr(one, "is_flag", True) and not one.multiple]
        for option in once:
            if once.count(option) > 1:
                name = max(option.opts, key=len)
                raise Failure(f"{name} is given {once.count(option)} times: give it once", USAGE)
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="stencilm",
    help="Make a language model write text that fits a schema, a type or another grammar.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for _command in _COMMANDS:
    app.command(cls=_Command, epilog=_epilog(_command.__name__))(_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"stencilm {stencilm.__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    # No docstring: it would replace the help text above.
    del version


def run(arguments: Sequence[str]) -> int:
    """Run a command line without the program's name; print any problem, return the exit code."""
    _write_utf8()
    try:
        result = app(args=list(arguments), prog_name="stencilm", standalone_mode=False)
        if result == INTERRUPTED:  # the message of newer versions of typer
            return _report("interrupted", INTERRUPTED)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except Failure as failure:
        return _report(failure, failure.exit_code)
    except StencilError as error:
        return _report(sentence_of(error), 1)
    except BrokenPipeError:
        _drop_output()
        return 1
    except OSError as error:
        if error.filename is None and _is_of_print(error):
            _drop_output()
            return _report(f"cannot write to standard output: {sentence_of_system(error)}", 1)
        return _report(sentence_of_system(error), 1)
    except typer.Abort:
        return _report("interrupted", INTERRUPTED)
    except Exception as error:
        # Usage errors of the option parser; their class moved when typer vendored click.
        if not hasattr(error, "format_message"):
            raise
        sentence = str(error.format_message())
        return _report(sentence, 2) if sentence else 2


_BLANKS = re.compile(r"\s+")
_LONG_WORD = re.compile(r"(\S{300})\S{100,}")
"""A long word of an argument, such as a number of 5,000 digits; only its beginning is shown."""


def _report(problem: object, exit_code: int) -> int:
    # In one line, in which quotations keep their blanks.
    sentence = _BLANKS.sub(lambda run: " " if run[0].strip(" \t") else run[0], str(problem).strip())
    sentence = visible(_LONG_WORD.sub(r"\1…", sentence))
    print(f"stencilm: {sentence}", file=sys.stderr)
    return exit_code


def _is_of_print(error: OSError) -> bool:
    """Whether the error comes from printing a command's output or help, as to a full device."""
    *_, (frame, _) = walk_tb(error.__traceback__)
    library = str(frame.f_globals.get("__name__")).partition(".")[0]
    is_of_help = library in ("click", "rich", "typer")
    return is_of_help or Path(frame.f_code.co_filename).parent == Path(__file__).parent


class _ClosedOutput(io.TextIOBase):
    """Standard output that was closed before the process began: writing to it fails."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "it is closed")


def _drop_output() -> None:
    """Discard pending output, which nobody reads; otherwise exiting would try to flush it."""
    if isinstance(sys.stdout, _ClosedOutput):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _write_utf8() -> None:
    """Print any character on any terminal; Windows consoles may have a narrower encoding.

    A result that cannot be written is a failure. Problems that cannot be written are discarded; the
    exit code still tells them.
    """
    if sys.stdout is None:
        sys.stdout = _ClosedOutput()
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - open while it runs
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")
