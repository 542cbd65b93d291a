# Every command here works on a fresh clone: what is missing is set up first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Some commands need less than all that the others need.
EXTRAS ?= test,check,docs,papers,dist
# pip compiles on one core. Some packages hold files for another Python, which cannot be compiled and are never imported.
COMPILE_PACKAGES = $(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true

.DEFAULT_GOAL := help

## Start

help: ## Show this help
	@awk '/^## / { printf "%s%s\n", (n++ ? "\n" : ""), substr($$0, 4) } \
		/^[a-z-]+:.*## / { split($$0, part, ":.*## "); printf "  %-16s%s\n", part[1], part[2] }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make .venv with kadcrawl and everything the other commands need

$(STAMP): setup.cfg setup.py pyproject.toml constraints.txt $(wildcard native/src/*.rs)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kadcrawl needs Python 3.11 or newer; try: make setup PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[$(EXTRAS)]'
	$(COMPILE_PACKAGES)
	touch $(STAMP)

demo: $(STAMP) ## Crawl a sample web of several sites with four peers, to the end, and judge every request
	$(BIN)/python -m scripts.demo

## Check

check: $(STAMP) ## Run ruff, mypy and typos
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/typos

house: $(STAMP) ## Print the figures of the house: circles, files per folder, longest functions, sentences
	$(BIN)/python -m scripts.house $(ARGS)

# The tests start hundreds of processes, each of which would compile the package where no bytecode may be written, and
# pytest would compile all tests. Four forks of pytest run the tests that it has collected (tests/support/forks.py).
# Their files are in memory where there is room, for as long as a test runs or if it fails.
test: $(STAMP) ## Run the tests (TESTS=path to run some)
	$(BIN)/python -m compileall -q -j 0 kadcrawl sim scripts fuzz tests/support
	$(BIN)/python -m scripts.compile_tests
	$(BIN)/python -m scripts.native_build
	TMPDIR="$$($(BIN)/python -m scripts.memory_directory)" $(BIN)/python -m pytest -p tests.support.forks --forks 4 -o tmp_path_retention_policy=failed -m 'not chaos and not worlds and not examples and not browser' $(TESTS)

test-coverage: $(STAMP) ## Run the tests and print their coverage of kadcrawl; processes they start are not counted
	$(BIN)/python -m pytest -n 3 --dist loadgroup -m 'not chaos and not worlds and not examples and not browser' --cov=kadcrawl --cov-branch \
		--cov-report=term-missing:skip-covered $(TESTS)

test-worlds: $(STAMP) ## Run the tests that simulate whole swarms, also those in which a fault was once found, or repeat experiments of the papers (four minutes)
	$(BIN)/python -m compileall -q -j 0 kadcrawl sim scripts fuzz tests/support
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m worlds tests/sim tests/overlay tests/peer/membership tests/replication/owner

test-examples: $(STAMP) ## Run every example of the documentation and compare its output (two minutes; make examples writes it anew)
	$(BIN)/python -m compileall -q -j 0 kadcrawl sim scripts fuzz tests/support
	$(BIN)/python -m pytest -n 4 -m examples tests/docs

test-chaos: $(STAMP) ## Run the tests of whole swarms of processes, whose peers are killed, stopped and cut off (five minutes)
	$(BIN)/python -m pytest -n 4 -m chaos tests/chaos tests/cli tests/sites

test-web: $(STAMP) .cache/web/.installed ## Show the pages of the dashboard in a headless Chromium and test them (a minute; needs chromium, node and npm)
	$(BIN)/python -m pytest -n 0 -m browser tests/web $(ARGS)

# What drives the browser, and what judges the pages: for tests alone, so not in the package.
.cache/web/.installed: Makefile
	mkdir -p .cache/web
	if command -v npm >/dev/null; then npm install --silent --no-audit --no-fund --ignore-scripts --prefix .cache/web \
		playwright-core@1.65.1 axe-core@4.14.1 && touch $@; else echo "there is no npm here, so the tests in the browser are skipped"; fi

NEWER = $(shell for python in python3.14 python3.13 python3.12 $$(ls -d $$HOME/.pyenv/versions/3.1[2-9]*/bin/python 2>/dev/null | sort -rV); do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && echo "$$python" && break; done)

test-newer: ## Run the tests on a newer Python as well, if the machine has one
	$(if $(NEWER),$(MAKE) test PYTHON=$(NEWER) VENV=.venv-newer,@echo "no Python newer than 3.11 here")

fuzz: $(STAMP) $(VENV)/.installed-fuzz ## Fuzz bytes from the network, the disk and people (about three minutes; ARGS="html --seconds 600")
	$(BIN)/python -m fuzz $(ARGS)

chaos: $(STAMP) ## Kill, stop and restart real peers in the middle of a crawl (about ten minutes)
	$(BIN)/python -m scripts.chaos $(ARGS)

chaos-net: $(STAMP) ## Delay, lose and cut what real peers send each other (as root, on Linux; about five minutes)
	$(BIN)/python -m scripts.chaos --network $(ARGS)

soak: $(STAMP) ## Crawl for an hour under random faults, with the judge's verdict at the end (ARGS="--minutes 5 --seed 2")
	$(BIN)/python -m scripts.soak $(ARGS)

## Measure

bench: $(STAMP) .venv-bench/.installed ## Measure against wget2, spider-rs, Scrapy and scrapy-redis on real sites (about five minutes; ARGS="--more")
	$(BIN)/python -m scripts.bench $(ARGS)

bench-links: $(STAMP) ## Measure the link extractor in Python and in native code (half a minute)
	$(BIN)/python -m scripts.bench_links $(ARGS)

profile: $(STAMP) $(VENV)/.installed-profile ## Show what a page costs by rooms of the house (a minute; ARGS="--peers 2 --more")
	$(BIN)/python -m compileall -q kadcrawl scripts
	$(BIN)/python -m scripts.page_profile $(ARGS)

page-counts: $(STAMP) ## Count the statements, tasks, hashes and calls of a page on a fixed web, and compare with the kept counts
	$(BIN)/python -m scripts.page_counts $(ARGS)

bench-overlay: $(STAMP) ## Measure the overlay on loopback: joins, owners after a kill, look-ups (about five minutes)
	$(BIN)/python -m scripts.bench_overlay $(ARGS)

bench-members: $(STAMP) ## Measure the cost of keys and encryption, and a peer under a flood of datagrams (two minutes)
	$(BIN)/python -m scripts.bench_members $(ARGS)

bench-memory: $(STAMP) ## Measure the memory of an idle peer and an idle leaf, as real processes (half a minute)
	$(BIN)/python -m scripts.bench_memory $(ARGS)

bench-web: $(STAMP) ## Measure what the dashboard costs its peer, without viewers and with five, and in Chromium the time of each change of the page (four minutes)
	$(BIN)/python -m scripts.bench_web $(ARGS)

bench-moves: $(STAMP) ## Count the cells that a join and a leave examine and move, and measure a restart with a million URLs
	$(BIN)/python -m scripts.bench_moves
	$(BIN)/python -m scripts.bench_restart
	$(BIN)/python -m scripts.bench_seeds

bench-in-process: $(STAMP) ## Measure 200 peers in one process: memory, CPU, open files (two minutes)
	$(BIN)/python -m scripts.bench_many_peers --way in-process $(ARGS)

bench-simulation: $(STAMP) ## Measure the simulator: memory a peer at a thousand peers, and seeds by CPU second (four minutes)
	$(BIN)/python -m scripts.bench_simulation $(ARGS)

bench-overload: $(STAMP) ## Crawl by host and by URL with ten peers in one process, also stopped by SIGSTOP (seven minutes)
	$(BIN)/python -m scripts.bench_overload $(ARGS)

bench-long: $(STAMP) ## Show what a page costs as a crawl grows, and time stops and restarts (ten minutes; ARGS="--pages 1000000 --minutes 300")
	$(BIN)/python -m scripts.bench_long $(ARGS)

five-peers: $(STAMP) ## Let five real peers of unequal power crawl 1,000 pages: equal, shed, predicted (four minutes)
	$(BIN)/python -m scripts.five_peers $(ARGS)

## Simulate

sim: $(STAMP) ## Simulate swarms under faults, some minutes' worth (ARGS="--seeds 1000")
	$(BIN)/python -m sim run --seeds 100 $(ARGS)

sim-big: $(STAMP) ## Simulate a thousand peers that crawl a hundred thousand pages (a quarter of an hour, some gigabytes)
	$(BIN)/python -m sim big $(ARGS)

sim-mutants: $(STAMP) ## Plant bugs in the simulated peers, to see whether the judges find them (about five minutes)
	$(BIN)/python -m sim mutants --quick $(ARGS)

papers: $(STAMP) ## Do the experiments of the papers again and write papers/report.html (some minutes; ARGS="--quick --check")
	$(BIN)/python -m sim.papers -o papers $(ARGS)

# The opponents, in an environment of their own. spider-rs brings its binary as a package for Node.
.venv-bench/.installed: Makefile
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check 'scrapy==2.19.0' 'scrapy-redis==0.9.1' lxml uvloop
	if command -v npm >/dev/null; then npm install --silent --no-audit --no-fund --prefix .venv-bench @spider-rs/spider-rs@0.0.157 \
		|| echo "npm could not install spider-rs; the benchmark goes without"; fi
	touch $@

$(VENV)/.installed-profile: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[profile]'
	touch $@

$(VENV)/.installed-fuzz: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary atheris -c constraints.txt -e '.[fuzz]' \
		|| { echo "there may be no wheel of atheris for this Python; try: make fuzz PYTHON=python3.11 VENV=.venv-fuzz"; exit 1; }
	touch $@

## Document

examples: $(STAMP) ## Run every example of the documentation and write the outputs into the pages (ARGS="-k politeness")
	UPDATE_EXAMPLES=1 $(BIN)/python -m pytest -n 2 tests/docs/test_examples.py $(ARGS)

screenshots: $(STAMP) .cache/web/.installed ## Take the screenshots of the documentation anew, in a headless Chromium
	KADCRAWL_REQUIRE_BROWSER=1 UPDATE_SCREENSHOTS=1 $(BIN)/python -m pytest -n 0 tests/web/pages/test_screenshots.py

docs: $(STAMP) ## Write the generated pages anew and build the documentation in site/, with every link checked
	$(BIN)/python -m scripts.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

## Release

dist: $(STAMP) ## Build sdist and wheel, and try the wheel in bare environments (two minutes)
	$(BIN)/python -m scripts.dist $(ARGS)

clean: ## Remove what the other commands made
	rm -f kadcrawl/crawl/content/_native.abi3.so
	rm -rf .venv .venv-newer .venv-fuzz .venv-bench .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage .coverage.* \
		demo-data bench-data papers build dist site *.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +

.PHONY: help setup demo check house test test-coverage test-worlds test-examples test-chaos test-web test-newer fuzz chaos chaos-net bench bench-links profile page-counts bench-overlay bench-members bench-memory bench-web bench-moves bench-in-process bench-simulation bench-overload bench-long soak five-peers sim sim-big sim-mutants papers examples screenshots docs dist clean
