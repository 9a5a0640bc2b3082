# Two commands do everything on a fresh machine: `make demo` and `make test`.
# Each first does what set-up is missing, in the virtual environment .venv; stamps in it remember what is done.

VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
EXTRAS := transformers,tiktoken,sentencepiece,openai,anthropic,playground
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name Cargo.toml)

# How often what ran in the work of pgo/: it tells the compiler what to lay together. It names functions by a hash
# in which the compiler goes in, so another compiler would find nothing in it, and builds without.
PROFILE := pgo/stencilm.profdata
NO_VALUES := '-Cllvm-args=-disable-vp'
ifeq ($(shell rustc -vV 2>/dev/null | cmp -s - pgo/rustc.txt && echo same),same)
WITH_PROFILE := --config "build.rustflags=['-Cprofile-use=$(abspath $(PROFILE))', $(NO_VALUES)]"
endif
# One that reads the raw profiles of rustc's LLVM: `rustup component add llvm-tools` brings it, or name one.
LLVM_PROFDATA ?= $(firstword $(wildcard $(shell rustc --print target-libdir 2>/dev/null)/../bin/llvm-profdata) llvm-profdata)

# Downloads show how far they are.
PIP := --disable-pip-version-check --progress-bar on

# Where the site is built; with VERSION=0.1 in a folder of its own there, beside those of other versions.
SITE ?= site

# The first Python on the path that is new enough; `make PYTHON=...` names another.
PYTHON ?= $(shell for python in python3 python python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)

.PHONY: help setup demo test engines lint bench docs wheel manylinux musllinux check-wheel newcomer sbom profile clean rust
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

help:
	@echo "make demo    show generation under a grammar with the embedded model"
	@echo "make test    run all tests, Rust and Python"
	@echo "make engines run the tests of vLLM, SGLang, Ray, servers and the oldest versions, each in an environment of its own"
	@echo "make lint    check format, lints and types, Rust and Python"
	@echo "make bench   run the benchmarks"
	@echo "make docs    build the documentation as a site of static pages into site/"
	@echo "make setup   only do what the others need: environment, dependencies, extension"
	@echo "make wheel   build the wheel into dist/"
	@echo "make manylinux build the wheel into dist/ against glibc 2.17, with zig as the linker"
	@echo "make musllinux build the wheel for musl into dist/, with zig"
	@echo "make check-wheel install each wheel of dist/ into a new environment without Rust, and try it"
	@echo "make newcomer time the way from each wheel of dist/ to a typed object, then run every command"
	@echo "make sbom    write the bill of materials into dist/"
	@echo "make profile take the profile anew by which the extension is optimised"
	@echo "make clean   remove the environment and what was built"

setup: $(VENV)/.extras

demo: $(VENV)/.built
	@echo "==> A JSON Schema, through the command line: examples/person.schema.json"
	$(BIN)/stencilm generate --prompt "Describe a person." --schema examples/person.schema.json
	@echo "==> A typed object, from Python: examples/person.py"
	$(BIN)/python examples/person.py

test: setup
	@echo "==> Rust tests"
	cargo test --workspace
	@echo "==> Python tests"
	$(BIN)/python -m pytest --numprocesses logical --maxprocesses 4 --dist worksteal

# Each pins its own torch; the environments are kept in .engines.
engines: setup
	tests/engines/run.sh .engines

lint: setup
	@echo "==> Rust: format, lints"
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	@echo "==> Python: lints, format, types"
	$(BIN)/python -m ruff check
	$(BIN)/python -m ruff format --check
	$(BIN)/python -m mypy
	@echo "==> The stub of the extension against the extension"
	$(BIN)/python -m mypy.stubtest stencilm._core

bench: setup
	cargo bench --workspace --bench '*'
	$(BIN)/python -m bench

docs: setup $(VENV)/.docs
	$(BIN)/python -m website --out $(SITE) $(if $(VERSION),--version $(VERSION))

wheel: $(VENV)/.maturin
	$(BIN)/maturin build --release --out dist $(WITH_PROFILE)

# Against an old C library, so that the wheel runs wherever Python 3.11 does; zig brings the headers and links.
manylinux: $(VENV)/.maturin
	$(BIN)/python -m pip install $(PIP) ziglang
	CARGO_ZIGBUILD_ZIG_PATH="$(abspath $(BIN))/python-zig" $(BIN)/maturin build --release --zig \
		--compatibility manylinux_2_17 --out dist $(WITH_PROFILE)

# For musl, with zig as above, whose musl stands in for a cross-compiler.
musllinux: $(VENV)/.maturin
	rustup target add x86_64-unknown-linux-musl
	$(BIN)/python -m pip install $(PIP) ziglang
	CARGO_ZIGBUILD_ZIG_PATH="$(abspath $(BIN))/python-zig" $(BIN)/maturin build --release --zig \
		--target x86_64-unknown-linux-musl --compatibility musllinux_1_2 --out dist $(WITH_PROFILE)

check-wheel: $(VENV)/.maturin
	$(BIN)/python -m release.check_wheel dist/*.whl

newcomer: $(VENV)/.maturin
	$(BIN)/python -m release.newcomer dist/*.whl

sbom: $(VENV)/.maturin
	@mkdir -p dist
	$(BIN)/python -m release.sbom > dist/stencilm.cdx.json

profile: setup
	rm -rf target/profile
	$(BIN)/maturin build --release --out target/profile/wheel --target-dir target/profile/build \
		--config "build.rustflags=['-Cprofile-generate=$(abspath target/profile/raw)', $(NO_VALUES)]"
	$(BIN)/python -m pip install --quiet --no-deps --target target/profile/site target/profile/wheel/*.whl
	LLVM_PROFILE_FILE=target/profile/work.profraw PYTHONPATH=target/profile/site $(BIN)/python -m pgo
	$(LLVM_PROFDATA) merge --sparse --output=$(PROFILE) target/profile/work.profraw
	rustc -vV > pgo/rustc.txt

clean:
	rm -rf $(VENV) .engines target dist out site python/stencilm/_core*.so python/stencilm/_core*.pyd

# Before anything is downloaded.
rust:
	@cargo --version >/dev/null 2>&1 || { echo "stencilm is built from source with Rust, but there is no cargo on the path: install Rust with rustup (https://rustup.rs), open a new shell, and run this again"; exit 1; }

$(VENV)/pyvenv.cfg: | rust
	@test -n "$(PYTHON)" || { echo "stencilm needs Python 3.11 or newer: install it, or name it with make PYTHON=/path/to/python"; exit 1; }
	@echo "==> Making the virtual environment $(VENV)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.maturin: | $(VENV)/pyvenv.cfg
	@echo "==> Downloading maturin, which builds the extension (10 MB)"
	$(BIN)/python -m pip install $(PIP) "pip>=25.1" "maturin>=1.9,<2"
	@touch $@

$(VENV)/.tools: pyproject.toml | $(VENV)/.maturin
	@echo "==> Downloading the development tools: linters, a type checker, test runners (100 MB)"
	$(BIN)/python -m pip install $(PIP) --group tools
	@touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/.tools
	@echo "==> Downloading what the site is built with (30 MB)"
	$(BIN)/python -m pip install $(PIP) --group docs
	@touch $@

# The release profile, because a demo and a speed test should not measure the debug build.
$(VENV)/.built: $(VENV)/.maturin $(RUST_SOURCES) $(PROFILE) pyproject.toml
	@echo "==> Building the extension (some minutes the first time), and downloading numpy, pydantic and typer (30 MB)"
	env -u CONDA_PREFIX VIRTUAL_ENV="$(abspath $(VENV))" $(BIN)/maturin develop --release $(WITH_PROFILE)
	@touch $@

$(VENV)/.extras: pyproject.toml $(VENV)/.built $(VENV)/.tools
ifdef TORCH_INDEX
	@echo "==> Downloading torch from $(TORCH_INDEX)"
	$(BIN)/python -m pip install $(PIP) --index-url "$(TORCH_INDEX)" torch
else
	@$(BIN)/python -c "import torch" 2>/dev/null || echo "==> torch comes from the usual index: on Linux with CUDA, 5 GB once unpacked; TORCH_INDEX=URL names an index without"
endif
	@echo "==> Downloading the packages of the extras: torch, transformers, tokenizers, clients of APIs"
	@# The package is there, so this brings nothing but what its extras name.
	$(BIN)/python -m pip install $(PIP) "stencilm[$(EXTRAS)]"
	@echo "==> Installing MLX, where there are wheels of it"
	@$(BIN)/python -m pip install $(PIP) --only-binary :all: --group mlx || echo "There are none for this machine: the tests of MLX are skipped"
	@touch $@
