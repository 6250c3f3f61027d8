.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
EXTRAS := torch or jax or tensorflow or browser or sweep or serve or explorer
unexport PYTHONDONTWRITEBYTECODE  # of some machines: each process would compile all that it imports, seconds

.PHONY: help venv test test-rest test-all demo docs bench catalogue lint

help:  ## show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/'

venv: $(READY)  ## set up .venv with the project and what its tests need

$(READY): setup.py pyproject.toml $(wildcard tvm_neuron/native/*.cc tvm_neuron/native/*.h tvm_neuron/runtime/*.cc)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

test: venv  ## run the quick tests, some of every room
	$(BIN)/python -m pytest -n auto --dist loadfile

test-rest: venv  ## run the slow tests
	$(BIN)/python -m pytest -m 'slow and not (many or $(EXTRAS))' -n auto --dist loadfile --no-loadscope-reorder --ignore tests/models
	$(BIN)/python -m pytest -m 'slow and not (many or $(EXTRAS))' -n 2 tests/models  # apart: TVM keeps every network that was run in memory

test-all: test test-rest  ## run all tests but those that need extras: hours
	$(BIN)/python -m pytest -m 'many and not ($(EXTRAS))' -n auto --dist loadfile

demo: venv  ## the main job: ResNet-50 from ONNX to the hardware model
	$(BIN)/python demo/resnet50.py

docs: venv  ## the pages in build/html/index.html: tutorials, run, and the reference, whose links and examples are checked
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'tvm-neuron[docs]'
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/html
	$(BIN)/python -m sphinx -q -W --keep-going -b doctest -D plot_gallery=0 docs build/doctest

bench: venv  ## measure all, print one table, write JSON
	$(BIN)/python -m benchmarks

catalogue: venv  ## networks of every family, exported by torch and measured: hours
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'tvm-neuron[catalogue]'
	$(BIN)/python -m pip install --quiet --no-deps timm==1.0.31 torchvision==0.29.2  # they ask for a torch with CUDA
	$(BIN)/python -m benchmarks.catalogue --chip inf2 --json build/catalogue_inf2.jsonl
	$(BIN)/python -m benchmarks.catalogue --chip inf1 --json build/catalogue_inf1.jsonl
	$(BIN)/python -m benchmarks.catalogue --publish build/catalogue_inf1.jsonl build/catalogue_inf2.jsonl

lint: venv  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/mypy
