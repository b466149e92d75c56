# A fresh machine needs two targets only: `make demo` and `make test`.
# CARGO_TARGET_DIR is honoured; WEIR is the binary that `make build` makes.

CARGO   ?= cargo
TARGET  := $(or $(CARGO_TARGET_DIR),target)
WEIR    := $(TARGET)/release/weir
PREFIX  ?= /usr/local
# The kernel controls of bpf/ are built in if their build dependencies are installed. A recipe asks when it runs, after `need-build`.
FEATURES = $$(scripts/deps features)
# Clippy compiles the workspace, as it does in `cargo clippy`, but to programs: nothing is read twice. Its warnings are errors.
LINTED  := RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/scripts/linted CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
LIVE    := $(shell unshare -n true 2>/dev/null && echo yes || (unshare -Urn true 2>/dev/null && echo yes))

.PHONY: demo test build deps python python-stubs python-speed install accuracy soak kernel-cost kernel-traces agreement judge circuits reproduce bench scale sliq-speed overlay-speed coordination-cost capacity analyze-speed observe tools serve-speed tests-speed wrap same-values release reference docs docs-test fuzz clean

## demo: builds weir, runs the quickstart on the simulator and (if the machine allows it) live, and writes the report
demo: build
	$(WEIR) run labs/quickstart.toml --on sim --out results/quickstart --rerun
ifneq ($(LIVE),)
	$(WEIR) run labs/quickstart.toml --on sim,live --out results/quickstart
else
	@echo 'This machine allows no network namespaces, so the demo ran on the simulator only; `$(WEIR) doctor` says more.'
endif

build: need-build
	$(CARGO) build --release --locked -p weir $(FEATURES)

## test: runs everything that CI runs
test: need-test
	$(CARGO) fmt --all --check
	mkdir -p $(TARGET)
	$(LINTED) $(CARGO) test --no-run --locked --profile checked --workspace $(FEATURES) --lib --bins --tests --benches --message-format json-render-diagnostics > $(TARGET)/test-programs.json
	scripts/run-tests $(TARGET)/test-programs.json
	$(LINTED) $(CARGO) test --doc --locked --profile checked --workspace $(FEATURES)
	scripts/check-structure

## python: builds the wheel of the Python package and tests it in a fresh virtual environment (python3 with venv; pip fetches the versions
## of python/requirements.txt)
python: build
	scripts/python $(WEIR)

## python-stubs: renews the stubs of the Python package after a change of the keys of labs (with the wheel that `make python` has built)
python-stubs:
	WEIR=$(WEIR) $(TARGET)/python/environment/bin/python python/tests/stubs.py python/weir

## python-speed: measures the Python package and a sweep over Dask, with the wheel of `make python` (idle)
python-speed: python
	$(TARGET)/python/environment/bin/python scripts/python-speed $(WEIR)
	$(TARGET)/python/environment/bin/python scripts/python-sweep

## install: installs the binary and its shell completions
install: build
	install -Dm755 $(WEIR) $(DESTDIR)$(PREFIX)/bin/weir
	$(WEIR) completions bash | install -Dm644 /dev/stdin $(DESTDIR)$(PREFIX)/share/bash-completion/completions/weir
	$(WEIR) completions zsh  | install -Dm644 /dev/stdin $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_weir
	$(WEIR) completions fish | install -Dm644 /dev/stdin $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/weir.fish

## release: packs the binary, its completions, the labs and the manual into one archive in target/release-archive
release: build
	scripts/release $(WEIR)

## reference: writes docs/reference anew from the schema of labs, the registries and the command line
reference: build
	rm -rf docs/reference
	$(WEIR) reference docs/reference

## docs: builds the manual, a site that opens from disk, in target/manual (mdBook; cargo installs it if it is missing)
docs: need-docs
	scripts/docs $(TARGET)/manual

## docs-test: asks the manual thirty questions in Chromium
docs-test: docs need-test
	WEIR_MANUAL=$(abspath $(TARGET))/manual $(CARGO) test --locked --profile checked -p weir $(FEATURES) --test integration manual::

## accuracy: measures how exact the live engine is on this machine (idle, as root); writes docs/accuracy.md
accuracy: build
	scripts/accuracy

## soak: repeats tests of `make test` many times (as root):
##   - ten thousand random labs on the simulator
##   - kernel controls loaded, unloaded and killed a hundred times
##   - two hundred commands under kernel controls, in storms of twenty, and two hundred that are killed at random points
##   - writers of result folders, set-ups of circuits and live runs, each killed two hundred times at random points
##   - each of two aggregation points under load, killed and started again ten times
##   - a thousand classes of a shaper, added, changed and removed beside circuits with traffic
##   - six hundred kills of nodes of the overlay under a stream, thirty minutes of kills of random daemons under files and a stream of media,
##     and two hundred kills of a node whose host is compared with what it was
##   - thirty minutes of kills and returns of an overlay's nodes and links, and as many over links that damage packets (simulated)
soak: need-build
	WEIR_RANDOM_LABS=10000 $(CARGO) test --locked --profile checked -p weir-sim --test integration random::
	WEIR_REQUIRE_LIVE=1 WEIR_LOADS=100 $(CARGO) test --locked --profile checked -p weir-kernel --features bpf --test integration loading::
	WEIR_REQUIRE_LIVE=1 WEIR_KILLS=100 $(CARGO) test --locked --profile checked -p weir-kernel --features bpf --test integration observing::
	WEIR_REQUIRE_LIVE=1 WEIR_STORMS=10 WEIR_KILLS=200 $(CARGO) test --locked --profile checked -p weir --features weir/kernel --test integration kernel::storms
	WEIR_KILLS=200 $(CARGO) test --locked --profile checked -p weir --test integration kills::
	WEIR_REQUIRE_LIVE=1 WEIR_RESTARTS=10 $(CARGO) test --locked --profile checked -p weir --features weir/kernel --test integration ap::restarts -- --nocapture
	WEIR_REQUIRE_LIVE=1 WEIR_KILLS=200 $(CARGO) test --locked --profile checked -p weir --features weir/kernel --test integration circuit_up::the_next_command_restores
	WEIR_REQUIRE_LIVE=1 WEIR_KILLS=200 $(CARGO) test --locked --profile checked -p weir-live --test kills
	WEIR_REQUIRE_LIVE=1 WEIR_CLASSES=1000 $(CARGO) test --locked --profile checked -p weir-shaper --test integration classes
	WEIR_REQUIRE_LIVE=1 WEIR_KILLS=600 $(CARGO) test --locked --profile checked -p weir --test integration overlay::a_stream_outlives
	WEIR_REQUIRE_LIVE=1 WEIR_SECONDS=1800 WEIR_KILLS=200 $(CARGO) test --locked --profile checked -p weir --test integration overlay::kills:: -- --test-threads 1 --nocapture
	WEIR_OVERLAY_MINUTES=30 $(CARGO) test --locked --profile checked -p weir-overlay --lib -- soak:: kills::

## kernel-cost: measures what the kernel controls cost on this machine (idle, as root); writes docs/kernel-cost.md
kernel-cost: need-build
	scripts/kernel-cost

## kernel-traces: records connections of this machine's kernel for the differential test of the kernel controls (as root)
kernel-traces: build
	scripts/kernel-traces $(WEIR)

## agreement: compares the simulator with live kernel TCP (idle, as root, 80 minutes or more); writes docs/agreement.md
agreement: build
	scripts/agreement $(WEIR)

## judge: draws CELLS labs by SEED over the whole space of both engines and judges the simulator by live kernel TCP (idle, as root, about
## a minute a cell); writes docs/judge.md, and keeps the live runs in docs/judge/. It goes on where it was stopped, on another machine too.
## With JUDGE=--resimulate another build is judged by the live runs that are there
SEED  ?= 1
CELLS ?= 40
judge: build
	$(CARGO) run --quiet --release --locked -p weir-judge -- $(WEIR) --seed $(SEED) --cells $(CELLS) $(JUDGE); test $$? -le 1

## circuits: runs `weir circuit send` over the kernel's shapers, with delay and without (idle, as root); writes docs/circuits-live.md
circuits: build
	scripts/circuits $(WEIR)

## reproduce: judges a study's claims (STUDY=dualpi2) on the simulator; writes docs/reproduced/STUDY.md. With ON=sim,live also on real
## Linux, with the runs that the study chooses for it (idle, as root); writes docs/reproduced/STUDY-live.md
STUDY     ?= dualpi2
ON        ?= sim
LIVE_JOBS ?= 1
FORM      := $(if $(findstring live,$(ON)),-live)
reproduce: build
	$(WEIR) reproduce $(STUDY) --on $(ON) --live-jobs $(LIVE_JOBS); test $$? -le 1
	mkdir -p docs/reproduced && rm -rf docs/reproduced/$(STUDY)$(FORM)
	cp -r results/reproduce$(FORM)/documents/$(STUDY)$(FORM)* docs/reproduced/

## bench: measures the simulator's speed on the labs in benches/; writes docs/speed.md
bench: build
	scripts/bench $(WEIR)

## same-values: checks, lab by lab, that this build computes the same values as another one (OLD=path/to/weir)
same-values: build
	$(CARGO) run --quiet --release --locked -p weir --example same_values -- $(OLD) $(WEIR)

## fuzz: fuzzes every parser of outside input for FUZZ_SECONDS each; needs a nightly compiler and cargo-fuzz. `make test` replays the
## inputs that were kept (scripts/fuzz keep)
FUZZ_SECONDS ?= 60
fuzz:
	scripts/fuzz $(FUZZ_SECONDS)

## tests-speed: measures how long the ready tests take, and `rrul` on real Linux beside its simulation (idle, as root); writes
## docs/tests-speed.md
tests-speed: build
	scripts/tests-speed $(WEIR)

## wrap: shows that programs behave behind `weir wrap`, and measures what it adds (idle, as root); writes docs/wrap-measured.md
wrap: build
	scripts/wrap $(WEIR)

## overlay-speed: measures nodes of the overlay in a triangle on this machine, and kills them (idle, as root); writes docs/overlay-measured.md
overlay-speed: build
	scripts/overlay-speed $(WEIR)

## sliq-speed: measures SLIQ over UDP beside quinn (idle, as root)
sliq-speed: build
	scripts/sliq-speed $(WEIR)

## coordination-cost: prints what a packet costs an aggregation point: time, instructions and allocations (needs valgrind)
coordination-cost:
	scripts/coordination-cost

## capacity: measures how long capacities under a deadline take to compute (idle); writes docs/capacity-speed.md
capacity:
	scripts/capacity

## observe: compares `weir observe` with captures on both sides of TBF, HTB and bfifo (root, idle); writes docs/observe-measured.md
observe: build
	scripts/observe $(WEIR)

## tools: runs nuttcp, iperf3, tcpdump, tcptrace and TShark beside `weir analyze`, over paths that lose, reorder and double (idle, as root);
## writes docs/tools-measured.md
tools: build
	scripts/tools $(WEIR)

## analyze-speed: measures time and memory of `weir analyze` on captures of 1 and 10 GB that it generates (idle)
analyze-speed: build
	scripts/analyze-speed $(WEIR)

## serve-speed: measures how quickly `weir serve` lists and searches a thousand results (idle); writes docs/serve-measured.md
serve-speed: build
	scripts/serve-speed $(WEIR)

## scale: measures what a tree of five thousand cells costs in addition to its cells (idle); writes docs/scale.md
scale: build
	scripts/scale $(WEIR)

clean:
	rm -rf $(TARGET) results

# Missing packages are installed on Debian and Ubuntu as root, and named otherwise.
## deps: installs the system packages that weir and its tests need
deps: need-test

.PHONY: need-build need-test need-docs
need-build:
	@scripts/deps build
need-test:
	@scripts/deps test
need-docs:
	@scripts/deps docs
