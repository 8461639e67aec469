# Everything that is built, tested and checked here. Each target prepares what it needs.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-builtin-rules --no-print-directory

# Debian packages that the build or the tests need; installed when missing and root, named otherwise.
DEBIAN_PACKAGES := docker-registry openssh-server

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# How long each fuzz target runs.
FUZZTIME ?= 30s
# The platforms that everything must build for, as GOOS/GOARCH.
PLATFORMS := linux/amd64 linux/arm64 windows/amd64

# Pure Go throughout: one build cache for programs, tools and tests, no C compiler needed. Only `race` turns it on.
export CGO_ENABLED := 0
export GOFLAGS := -buildvcs=false $(filter-out -buildvcs=%,$(GOFLAGS))

STEP := hack/step

# Modules of their own whose tests hold ours to the programs and libraries that we must not link. Before the lint, their
# tests compile what both need.
TEST_MODULES := internal/consumers internal/registriesconf internal/resolvers

include make/modules.mk
include make/tools.mk
include make/testenv.mk
include make/wine.mk
include make/payload.mk
include make/powershell.mk

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(MODULES)
	@status=0; missing=$$($(MODULES) have --tests . ./...) || status=$$?; \
	[ $$status -ne 3 ] || echo "make: needs $$missing (make pins: what the module proxy serves)" >&2; exit $$status
	@hack/packages $(DEBIAN_PACKAGES)

.PHONY: build
build: setup ## bin/wmco and bin/wmco-node for this machine
	@for program in wmco wmco-node; do \
		$(STEP) "building bin/$$program $(VERSION)" go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/$$program ./cmd/$$program; \
	done

.PHONY: test
test: setup containerd-if-possible testenv-if-possible ## all tests, goldens and their consumers included
	@# Tests of services have limits of time, which a compiler beside them can use up.
	@$(STEP) "compiling" go build ./...
	@$(STEP) "compiling for Windows" env GOOS=windows GOARCH=amd64 go build ./...
	@$(STEP) "testing" go test $$(go list ./... | grep -v -e /winetest$$ -e /winnode$$)
	@# Starts and stops of services under Wine have limits of time too: no other tests run beside them.
	@$(STEP) "testing under Wine" go test -p 1 ./internal/winetest ./internal/winnode
	@# -count=1: go test's cache does not see files outside a nested module, such as the goldens.
	@for module in $(TEST_MODULES); do \
		hack/optional "the tests of $$module" --tests "$$module" ./... -- $(STEP) "testing $$module" \
			env WMCO_CONTAINERD="$$(ls -d $(CURDIR)/$(CONTAINERD) 2>/dev/null || true)" go -C "$$module" test -count=1 ./...; \
	done
	@hack/skipped

.PHONY: golden
golden: setup ## rewrite the goldens, then check them and show what changed
	@# Updating rewrites and then fails on purpose, so that no test run passes by rewriting.
	@$(STEP) "rewriting the goldens" bash -c 'go test ./golden -update || true'
	@$(STEP) "checking the goldens" go test -count=1 ./golden
	@git status --short -- golden

.PHONY: lint
lint: setup ## golangci-lint over this module and the test modules
	@$(call optional-program,$(GOLANGCI_LINT),golangci-lint,tools/lint)
	@[ ! -x $(GOLANGCI_LINT) ] || $(STEP) "linting" $(GOLANGCI_LINT) run ./...
	@[ ! -x $(GOLANGCI_LINT) ] || for module in $(TEST_MODULES); do \
		hack/optional "linting $$module" --tests "$$module" ./... -- $(STEP) "linting $$module" \
			env -C "$$module" $(CURDIR)/$(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml ./...; \
	done

.PHONY: fmt-check
fmt-check: setup ## every Go file is as gofmt -s writes it
	@$(STEP) "checking the format" hack/fmt-check

.PHONY: generate
generate: setup ## rewrite the generated files
	@$(STEP) "generating" hack/generate .

.PHONY: generate-check
generate-check: setup ## the generated files are up to date
	@$(STEP) "checking the generated files" hack/generate-check

.PHONY: cross
cross: setup $(PLATFORMS:%=cross/%) ## everything builds for every platform; go vet for Windows
	@$(STEP) "vetting for windows" env GOOS=windows GOARCH=amd64 go vet ./...

.PHONY: $(PLATFORMS:%=cross/%)
$(PLATFORMS:%=cross/%): cross/%: setup
	@$(STEP) "building for $*" env GOOS=$(word 1,$(subst /, ,$*)) GOARCH=$(word 2,$(subst /, ,$*)) go build ./...

.PHONY: race
race: setup testenv-if-possible ## the tests under the race detector
	@hack/need gcc
	@$(STEP) "testing under the race detector" env CGO_ENABLED=1 go test -race ./...

.PHONY: fuzz
fuzz: setup ## every fuzz target for FUZZTIME each (default 30s)
	@$(STEP) "fuzzing, $(FUZZTIME) each" hack/fuzz $(FUZZTIME)
	@for module in $(TEST_MODULES); do \
		hack/optional "fuzzing $$module" --tests "$$module" ./... -- $(STEP) "fuzzing $$module, $(FUZZTIME) each" \
			env -C "$$module" $(CURDIR)/hack/fuzz $(FUZZTIME); \
	done

.PHONY: bench
bench: setup ## every benchmark
	@$(STEP) "running the benchmarks" go test -run '^$$' -bench . -benchmem -timeout 30m ./...

.PHONY: demo
# Nothing but its last part needs packages, and that asks for its own.
demo: DEBIAN_PACKAGES :=
demo: build ## render an example cluster into bin/demo, and bring simulated machines to it
	@$(STEP) "rendering the example cluster" hack/demo.sh
	@$(STEP) "bringing a simulated machine to its bundle" hack/demo-machine.sh
	@$(STEP) "bringing three machines to theirs, over SSH" hack/demo-ssh.sh

.PHONY: ci
ci: FUZZTIME = 5s
ci: fmt-check lint generate-check cross test fuzz ## what every change must pass
	@hack/skipped
	@echo "make: ci passed" >&2

.PHONY: ci-full
ci-full: FUZZTIME = 2m
# How often processes are killed and machines lose their power while they apply.
ci-full: export WMCO_PROCESS_KILLS = 500
ci-full: export WMCO_KILLS = 60
ci-full: fmt-check lint generate-check cross test race fuzz ## ci with long fuzzing and the race detector
	@hack/skipped
	@echo "make: ci-full passed" >&2

.PHONY: clean
clean: ## remove everything that was built
	@rm -rf bin
