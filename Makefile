# Two targets are all that a fresh machine needs: `make demo` and `make test`.
# CARGO_TARGET_DIR is honoured; WEIR is the binary that `make build` makes.

CARGO   ?= cargo
TARGET  := $(or $(CARGO_TARGET_DIR),target)
WEIR    := $(TARGET)/release/weir
PREFIX  ?= /usr/local
# The controls of bpf/ are built in where what they are built with is there: asked when a recipe runs, after it was installed.
FEATURES = $$(scripts/deps features)
LIVE    := $(shell unshare -n true 2>/dev/null && echo yes || (unshare -Urn true 2>/dev/null && echo yes))

.PHONY: demo test build deps install accuracy soak kernel-cost kernel-traces agreement circuits reproduce bench scale sliq-speed same-values fuzz clean

## demo: build, run the quickstart on the simulator and (where the machine allows it) live, write the report
demo: build
	$(WEIR) run labs/quickstart.toml --on sim --out results/quickstart --rerun
ifneq ($(LIVE),)
	$(WEIR) run labs/quickstart.toml --on sim,live --out results/quickstart
else
	@echo 'This machine gives us no network namespaces, so the demo ran on the simulator alone; `$(WEIR) doctor` says more.'
endif

build: need-build
	$(CARGO) build --release --locked -p weir $(FEATURES)

## test: everything that CI needs
test: need-test
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --profile checked --workspace $(FEATURES) --all-targets -- -D warnings
	$(CARGO) test --locked --profile checked --workspace $(FEATURES)
	scripts/check-house

## install: the binary and shell completions
install: build
	install -Dm755 $(WEIR) $(DESTDIR)$(PREFIX)/bin/weir
	$(WEIR) completions bash | install -Dm644 /dev/stdin $(DESTDIR)$(PREFIX)/share/bash-completion/completions/weir
	$(WEIR) completions zsh  | install -Dm644 /dev/stdin $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_weir
	$(WEIR) completions fish | install -Dm644 /dev/stdin $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/weir.fish

## accuracy: how exact the live engine is on this machine (idle, as root); writes docs/accuracy.md
accuracy: build
	scripts/accuracy

## soak: what `make test` does a few times, as root: the kernel controls loaded, unloaded and killed a hundred times; two hundred commands under
## them in storms of twenty, and two hundred that are killed at random points; result folders, live runs and circuits that are set up, killed two hundred times each;
## a thousand classes of a shaper that come, change and go beside circuits with traffic; and ten thousand labs at random on the simulator
soak: need-build
	WEIR_RANDOM_LABS=10000 $(CARGO) test --locked --profile checked -p weir-sim --test random
	WEIR_REQUIRE_LIVE=1 WEIR_LOADS=100 $(CARGO) test --locked --profile checked -p weir-kernel --features bpf --test loading
	WEIR_REQUIRE_LIVE=1 WEIR_STORMS=10 WEIR_KILLS=200 $(CARGO) test --locked --profile checked -p weir --features weir/kernel --test kernel storms
	WEIR_KILLS=200 $(CARGO) test --locked --profile checked -p weir --test kills
	WEIR_REQUIRE_LIVE=1 WEIR_KILLS=200 $(CARGO) test --locked --profile checked -p weir --features weir/kernel --test circuit_up killed
	WEIR_REQUIRE_LIVE=1 WEIR_KILLS=200 $(CARGO) test --locked --profile checked -p weir-live --test kills
	WEIR_REQUIRE_LIVE=1 WEIR_CLASSES=1000 $(CARGO) test --locked --profile checked -p weir-shaper --test classes

## kernel-cost: what the kernel controls cost on this machine (idle, as root); writes docs/kernel-cost.md
kernel-cost: need-build
	scripts/kernel-cost

## kernel-traces: connections of this machine's kernel, recorded for the differential test of the kernel controls (as root)
kernel-traces: build
	scripts/kernel-traces $(WEIR)

## agreement: simulator against live kernel TCP; writes docs/agreement.md
agreement: build
	scripts/agreement $(WEIR)

## circuits: `weir circuit send` over real shapers, with delay and without (idle, as root); writes docs/circuits-live.md
circuits: build
	scripts/circuits $(WEIR)

## reproduce: a study's claims against the simulator; writes docs/reproduced/STUDY.md. With ON=sim,live against real Linux too,
## as far as there is time for it (idle, as root); writes docs/reproduced/STUDY-live.md
STUDY     ?= dualpi2
ON        ?= sim
LIVE_JOBS ?= 1
FORM      := $(if $(findstring live,$(ON)),-live)
reproduce: build
	$(WEIR) reproduce $(STUDY) --on $(ON) --live-jobs $(LIVE_JOBS); test $$? -le 1
	mkdir -p docs/reproduced && rm -rf docs/reproduced/$(STUDY)$(FORM)
	cp -r results/reproduce$(FORM)/documents/$(STUDY)$(FORM)* docs/reproduced/

## bench: the simulator's speed on the labs in benches/; writes docs/speed.md
bench: build
	scripts/bench $(WEIR)

## same-values: whether this build computes what another one does (OLD=path/to/weir), lab by lab
same-values: build
	$(CARGO) run --quiet --release --locked -p weir --example same_values -- $(OLD) $(WEIR)

## fuzz: everything that is read from outside, a minute each; needs a nightly compiler and cargo-fuzz. `make test` replays
## what it has found worth keeping (scripts/fuzz keep)
FUZZ_SECONDS ?= 60
fuzz:
	scripts/fuzz $(FUZZ_SECONDS)

## sliq-speed: SLIQ over UDP beside quinn, on an idle machine, as root
sliq-speed: build
	scripts/sliq-speed $(WEIR)

## scale: what a tree of five thousand cells costs beside its cells, on an idle machine; writes docs/scale.md
scale: build
	scripts/scale $(WEIR)

clean:
	rm -rf $(TARGET) results

# What is missing is installed on Debian and Ubuntu as root, and named elsewhere.
## deps: install the system packages that weir and its tests need (Debian, Ubuntu)
deps: need-test

.PHONY: need-build need-test
need-build:
	@scripts/deps build
need-test:
	@scripts/deps test
