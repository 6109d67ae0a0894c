# make tables   do the runs that the papers' tables need, write the tables and the report
#               (PAPERS= SCALE= SOURCE= PROTOCOL= SEEDS= UPDATES= MODELS= DATASETS= ENGINE= EXTENSIONS=)
# make plan     what `make tables` would do and cost, before anything is spent (as above, and WORKERS=)
# make report   what there is so far as web pages, under paper_tables/report
# make data     draw data sets before they are needed (DATASETS= N= ENGINE=)
# make proofs   check every proposition, and write down which hold (PAPERS=)
# make test     check that everything is in step, every chapter runs, every test passes
# make faults   kill, fill, alter and starve it, and count what is lost
# make lab      read and edit the chapters in JupyterLab
# make docs     the book as web pages, under _docs
# make bench    speed: of the metrics beside scikit-learn's, of drawing pictures, of a training step, of slots
# make export   write the package and README.md from the notebooks
# make clean    remove what can be made again (not the runs)

PYTHON ?= python3
PAPERS ?=
SCALE ?=
SOURCE ?= rendered
PROTOCOL ?= paper
SEEDS ?=
UPDATES ?=
MODELS ?=
ENGINE ?= local
DATASETS ?=
WORKERS ?=
N ?=
EXTENSIONS ?= $(DISENTANGLE_EXTENSIONS)
export DISENTANGLE_EXTENSIONS := $(EXTENSIONS)

BIN := .venv/bin
READY := .venv/ready

# What tables are asked for, in the words of the commands
REQUEST = $(if $(PAPERS),--papers $(PAPERS)) $(if $(SCALE),--scale $(SCALE)) --source $(SOURCE) --protocol $(PROTOCOL) \
    $(if $(SEEDS),--seeds $(SEEDS)) $(if $(UPDATES),--updates $(UPDATES)) \
    $(if $(MODELS),--models $(MODELS)) $(if $(DATASETS),--datasets $(DATASETS))

.PHONY: tables plan report data proofs test faults lab docs bench export clean

tables: $(READY)
	@$(BIN)/disentangle_tables $(REQUEST) --engine $(ENGINE); status=$$?; $(BIN)/disentangle_report && exit $$status

plan: $(READY)
	@$(BIN)/disentangle_plan $(REQUEST) $(if $(WORKERS),--workers $(WORKERS))

report: $(READY)
	@$(BIN)/disentangle_report

data: $(READY)
	$(BIN)/disentangle_data $(DATASETS) $(if $(N),--n $(N)) --engine $(ENGINE)

proofs: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/disentangle-repro proofs --run $(if $(PAPERS),--papers $(PAPERS))

test: $(READY)
	tests/in_step
	OMP_NUM_THREADS=1 $(BIN)/nbdev_test --n_workers 2
	OMP_NUM_THREADS=1 $(BIN)/pytest -q --numprocesses 2 --dist loadfile
	$(BIN)/ruff check

faults: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/pytest -q tests/faults --whole

lab: $(READY)
	$(BIN)/jupyter lab --notebook-dir nbs

docs: $(READY)
	@if command -v quarto >/dev/null; then $(BIN)/nbdev_docs; else \
	    echo "Quarto is not installed: plain pages by nbconvert"; \
	    find nbs -name '*.ipynb' -not -path '*/.*' | while read -r chapter; do \
	        $(BIN)/jupyter nbconvert --log-level ERROR --to html --output-dir "_docs/$$(dirname "$${chapter#nbs/}")" \
	            "$$chapter" || exit 1; \
	    done && find _docs -name '*.html' -exec sed -i -E 's|(href="[^":]*)\.ipynb|\1.html|g' {} +; fi

bench: $(READY)
	$(BIN)/python benchmarks/bench_metrics.py
	$(BIN)/python benchmarks/bench_data.py
	$(BIN)/python benchmarks/bench_training.py
	$(BIN)/python benchmarks/bench_slots.py
	$(BIN)/python benchmarks/bench_slot_jacobian.py

export: $(READY)
	$(BIN)/nbdev_export
	tests/readme > README.md

# Everything the project needs, at the versions of constraints.txt; done once, and again when one of these files changes.
$(READY): constraints.txt settings.ini setup.py
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later is needed: make PYTHON=..." if sys.version_info < (3, 11) else 0)'
	@echo "Setting up .venv: this takes a few minutes, once."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

clean:
	rm -rf .venv _docs _proc build dist *.egg-info paper_tables/report paper_tables/tables/smoke .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
