# make tables   do the runs that the papers' tables need, write the tables and the report
#               (PAPERS= SCALE= SOURCE= PROTOCOL= SEEDS= UPDATES= MODELS= DATASETS= ENGINE= EXTENSIONS=
#               SET="training.batch_size=32": any hyperparameter, several separated by blanks,
#               MINUTES= to end in time and go on from there, WHOLE=1 to begin only what can be finished by then)
# make plan     what `make tables` would do and cost, before anything is spent (as above, and WORKERS=; DEVICE=h100
#               estimates for that GPU, PROBE=1 tries every kind of run here, which takes minutes)
# make minutes  one small task per paper, trained live in its room: each effect with its interval, under an hour on two cores
# make report   what there is so far as web pages, under paper_tables/report
# make verify   lay out every published table again, from records alone, and say whether anything differs (PAPERS=)
# make data     draw data sets before they are needed (DATASETS= N= ENGINE=)
# make proofs   check every proposition, and write down which hold (PAPERS=)
# make test     check that everything is in step, every chapter runs, every test passes, types agree
# make chapters run every cell of every chapter, those marked `slow` too, which `make test` leaves out
# make whole    every cell and every test, also those that `make test` leaves out for time (marked `slow` and `whole`)
# make faults   kill, fill, alter and starve it, and count what is lost
# make lab      read and edit the chapters in JupyterLab
# make docs     the book as web pages with search and an API reference, under _docs (BOOK=quarto: nbdev's site, where Quarto is)
# make bench    speed: of the metrics beside scikit-learn's, of drawing images, of a training step, of slots
# make export   write the package and README.md from the notebooks
# make clean    remove what can be made again (not the runs)

PYTHON ?= python3
PAPERS ?=
SCALE ?=
SOURCE ?= rendered
PROTOCOL ?= paper
SEEDS ?=
UPDATES ?=
SET ?=
MODELS ?=
ENGINE ?= local
DATASETS ?=
WORKERS ?=
MINUTES ?=
WHOLE ?=
DEVICE ?=
PROBE ?=
N ?=
BOOK ?= sphinx
EXTENSIONS ?= $(DISENTANGLE_EXTENSIONS)
export DISENTANGLE_EXTENSIONS := $(EXTENSIONS)

# Runs and tests start many processes, and one that has to compile all its modules anew takes three times as long to import them.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
READY := .venv/ready

# What tables are asked for, in the words of the commands
REQUEST = $(if $(PAPERS),--papers $(PAPERS)) $(if $(SCALE),--scale $(SCALE)) --source $(SOURCE) --protocol $(PROTOCOL) \
    $(if $(SEEDS),--seeds $(SEEDS)) $(if $(UPDATES),--updates $(UPDATES)) \
    $(if $(MODELS),--models $(MODELS)) $(if $(DATASETS),--datasets $(DATASETS)) $(if $(SET),--set $(SET))

# Until when
LIMIT = $(if $(MINUTES),--minutes $(MINUTES)) $(if $(WHOLE),--whole-runs)

.PHONY: tables plan minutes report verify data proofs test test-types test-chapters test-code chapters whole faults lab docs docs-sphinx docs-quarto bench export clean

tables: $(READY)
	@$(BIN)/disentangle_tables $(REQUEST) --engine $(ENGINE) $(LIMIT); status=$$?; $(BIN)/disentangle_report && exit $$status

plan: $(READY)
	@$(BIN)/disentangle_plan $(REQUEST) $(if $(WORKERS),--workers $(WORKERS)) $(if $(DEVICE),--device $(DEVICE)) $(if $(PROBE),--probe)

# Two chapters at a time, a thread each; their executed copies are in build/minutes.
minutes: $(READY)
	@mkdir -p build/minutes
	@printf '%s\n' $(notdir $(patsubst %/,%,$(dir $(wildcard nbs/*/*_in_minutes.ipynb)))) | OMP_NUM_THREADS=1 xargs -P 2 -I ROOM \
	    sh -c '$(BIN)/papermill --log-level ERROR --no-progress-bar --stdout-file - nbs/ROOM/*_in_minutes.ipynb build/minutes/ROOM.ipynb'

report: $(READY)
	@$(BIN)/disentangle_report

verify: $(READY)
	@$(BIN)/disentangle-repro verify $(if $(PAPERS),--papers $(PAPERS))

data: $(READY)
	$(BIN)/disentangle_data $(DATASETS) $(if $(N),--n $(N)) --engine $(ENGINE)

proofs: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/disentangle-repro proofs --run $(if $(PAPERS),--papers $(PAPERS))

test: $(READY)
	tests/in_step
	$(BIN)/ruff check
	@$(MAKE) --no-print-directory --jobs=3 test-types test-chapters test-code

# Side by side: each of them alone leaves a core idle a sixth of the time.
test-types: $(READY)
	$(BIN)/mypy

test-chapters: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/nbdev_test --n_workers 2

test-code: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/pytest -q --numprocesses 2 --dist loadfile --no-loadscope-reorder

chapters: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/nbdev_test --n_workers 3 --flags slow

whole: chapters
	OMP_NUM_THREADS=1 $(BIN)/pytest -q --numprocesses 3 --dist loadfile --no-loadscope-reorder --whole

faults: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/pytest -q tests/faults --whole

lab: $(READY)
	$(BIN)/jupyter lab --notebook-dir nbs

docs: docs-$(BOOK)

docs-sphinx: .venv/docs
	rm -rf build/book
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -q -W --keep-going -j auto -c nbs/_book -d build/book/doctrees nbs build/book/html
	$(BIN)/python nbs/_book/links.py build/book/html
	rm -rf _docs && mv build/book/html _docs
	@echo "The book: file://$(CURDIR)/_docs/index.html"

docs-quarto: $(READY)
	$(BIN)/nbdev_docs

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
	$(BIN)/python -m pip install --disable-pip-version-check --no-compile --constraint constraints.txt --editable '.[dev]'
	@touch $@

# What the book needs besides
.venv/docs: $(READY)
	$(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	@touch $@

clean:
	rm -rf .venv _docs _proc build dist *.egg-info paper_tables/report paper_tables/tables/smoke .pytest_cache .ruff_cache .mypy_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
