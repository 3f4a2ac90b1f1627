# `make demo` and `make test` are all that a fresh machine needs: each makes .venv first.
PYTHON ?= python3 python3.13 python3.12 python3.11
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint bench screenshots clean

demo: $(READY)
	@# The planted fault makes the ranks differ: code 1 is what the demo is about, 130 is leaving before the verdict.
	@$(BIN)/ckpt-tui demo || { code=$$?; [ $$code -eq 1 ] || [ $$code -eq 130 ] || exit $$code; }

test: $(READY)
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/python -m benchmarks

screenshots: $(READY)
	$(BIN)/python scripts/screenshots.py

clean:
	rm -rf $(VENV) .models .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# The first of $(PYTHON) that runs and is new enough.
$(READY): pyproject.toml constraints.txt $(wildcard ckpt_tui/native/src/* vendor/xxhash/*)
	@for name in $(PYTHON); do \
	  if $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "making $(VENV) with $$name"; exec $$name -m venv $(VENV); \
	  fi; \
	done; echo "Python 3.11 or newer is needed; name it with: make PYTHON=/path/to/python3.11 ..." >&2; exit 1
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@
