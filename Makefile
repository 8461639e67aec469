# Builds, tests and checks everything. Each target prepares what it needs.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-builtin-rules --no-print-directory

# Debian packages for the build and the tests. Root installs missing ones; other users get their names.
DEBIAN_PACKAGES := docker-registry jq openssh-server

# Tags come with a fetch from any fork: one that a shell reads as more than a word is no version.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null | grep -xE '[A-Za-z0-9][A-Za-z0-9._+-]*' || echo dev)
# How long each fuzz target runs.
FUZZTIME ?= 30s
# The platforms that everything must build for, as GOOS/GOARCH, and those that only ci-full builds for: no file of ours is for one of them alone.
PLATFORMS := linux/amd64 windows/amd64
MORE_PLATFORMS := linux/arm64

# Pure Go: programs, tools and tests share one build cache and need no C compiler. Only `race` enables cgo.
export CGO_ENABLED := 0
# Without the folder of the clone in what is compiled, all clones share one build cache.
export GOFLAGS := -buildvcs=false -trimpath $(filter-out -buildvcs=% -trimpath,$(GOFLAGS))

STEP := hack/step

# Separate modules whose tests check ours with programs and libraries that we must not link. Their tests run before the
# lint, because they compile the packages of both. Without cgo, containers/image needs the tag.
IMAGE_TAGS := -tags=containers_image_openpgp
TEST_MODULES := internal/build/release tools/shell internal/verify/prometheus internal/verify/consumers internal/verify/registriesconf internal/verify/gitopshealth internal/verify/resolvers internal/verify/docs payload/image-verifier

include make/modules.mk
include make/tools.mk
include make/testenv.mk
include make/wine.mk
include make/payload.mk
include make/release.mk
include make/powershell.mk
include make/promtool.mk
include make/olm.mk
include make/mutations.mk
include make/docs.mk

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(MODULES)
	@status=0; missing=$$($(MODULES) --tests . ./...) || status=$$?; \
	[ $$status -ne 3 ] || echo "make: needs $$missing" >&2; exit $$status
	@hack/packages $(DEBIAN_PACKAGES)

.PHONY: build
build: setup ## bin/wmco and bin/wmco-node for this computer
	@for program in wmco wmco-node; do \
		$(STEP) "building bin/$$program $(VERSION)" hack/downloads go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/$$program ./cmd/$$program; \
	done

# For the tests of one package: only a hang reaches it.
TEST_TIMEOUT ?= 30m
# Packages that are tested at the same time.
TEST_PACKAGES ?= $(shell n=$$(nproc); echo $$(( n + 2 )))

# The tiers. Each test belongs to the first one that can run it:
#
#	test       needs Go, an API server that is built here, and OpenSSH; whoever changes the code runs it
#	test-all   also other programs (containerd, promtool, pipelines of GitHub and GitLab, Wine, OLM, older API servers) and stories of whole clusters
#	ci-full    also storms, long simulations, the race detector and the whole payload
#
# Packages that make test leaves out, and the tests of others that need another program.
STORIES := ./internal/test/jointest
WINE_TESTS := ./internal/test/winetest ./internal/test/winnode
LONG_TESTS := TestTheObserverFindsFaultsOfTheOperator
OTHER_TIERS := $(STORIES) $(WINE_TESTS) ./internal/test/olmtest
PROGRAM_TESTS := TestRealContainerd TestRealContainerdTakesCredentials TestPromtoolAcceptsTheRules \
	TestAPullRequestRunsNothing TestPipelinesCommentOnWhatAPullRequestChanges TestALinkForTheProgramOfGitLab TestACommentOfAnotherAccountIsLeft \
	TestTheCommentIsThatOfTheAuthor TestTheCommentSaysThatOtherInputsAreCompared TestALongCommentIsShortened TestAFileThatIsNoInputIsNotQuoted
PAYLOAD_TESTS := TestPatchesFitTheirModules TestBuildInformationMatchesTheTable TestExecutablesStartAndPrintTheirVersion
# $(call pattern,TestA TestB): the value of -run or -skip for tests.
space := $(subst ,, )
pattern = ^($(subst $(space),|,$(strip $(1))))$$

# Programs that many packages start are linked once.
export WMCO_TEST_PROGRAMS := $(CURDIR)/bin/test-programs
# Audit logs that stories keep for the check of the operator's permissions.
export WMCO_AUDIT := $(CURDIR)/bin/audit

.PHONY: test-programs
test-programs: setup
	@$(STEP) "building what tests start" hack/downloads go build -trimpath -ldflags '-s -w' -o bin/test-programs/ ./internal/test/sshtest/simhost ./cmd/wmco-node ./cmd/wmco

# In memory without WMCO_FAULTS: a request that waits where client libraries hold a lock stops virtual time (testing/synctest).
.PHONY: test
test: setup $(TESTRUN) testenv-if-possible test-programs ## the tests, in ten minutes with warm caches
	@hack/space 4
	@$(STEP) "testing" hack/go-test test -- -p $(TEST_PACKAGES) -timeout=$(TEST_TIMEOUT) -skip '$(call pattern,$(PROGRAM_TESTS) $(PAYLOAD_TESTS) $(LONG_TESTS))' \
		$$(go list ./... | grep -v $(OTHER_TIERS:.%=-e %$$))
	@$(STEP) "playing stories in memory" env WMCO_FAULTS= hack/go-test memory -- -timeout=$(TEST_TIMEOUT) -run '$(call pattern,TestInMemory TestEachStoryIsPlayed)' ./internal/test/jointest
	@hack/skipped

.PHONY: test-all
test-all: test test-with-programs test-modules test-payload test-stories test-wine test-olm test-old ## also with other programs, and whole clusters (an hour)
	@hack/skipped

# Root installs promtool; containerd runs as root.
.PHONY: test-with-programs
test-with-programs: setup $(TESTRUN) containerd-if-possible promtool-if-possible test-programs ## the tests with containerd, promtool and pipelines
	@$(STEP) "testing with other programs" hack/go-test programs -- -count=1 -timeout=$(TEST_TIMEOUT) -run '$(call pattern,$(PROGRAM_TESTS))' \
		./applier/agent/images/cri ./internal/verify/monitoring ./cmd/wmco

.PHONY: test-payload
test-payload: setup $(TESTRUN) payload-if-possible ## the executables that were built have what the table says
	@$(STEP) "testing executables" hack/go-test payload -- -count=1 -timeout=$(TEST_TIMEOUT) -run '$(call pattern,$(PAYLOAD_TESTS))' ./internal/build/payloadbuild

# -count=1: go test's cache does not see files outside a nested module, such as the goldens.
.PHONY: test-modules
test-modules: setup $(TESTRUN) containerd-if-possible ## the goldens, by the programs and libraries that read such files
	@export GOFLAGS='$(IMAGE_TAGS) $(GOFLAGS)'; for module in $(TEST_MODULES); do \
		hack/optional "the tests of $$module" --tests "$$module" ./... -- $(STEP) "testing $$module" \
			env WMCO_CONTAINERD="$$(ls -d $(CURDIR)/$(CONTAINERD) 2>/dev/null || true)" hack/go-test "$$module" -dir "$$module" -- -count=1 -timeout=$(TEST_TIMEOUT) ./...; \
	done

# One story of each kind, for make ci. Most others are played in memory by make test.
TRACERS := TestMachinesAndInstancesBecomeNodes TestARemovedEntryLeavesNothing TestANewOperatorBringsItsExecutables \
	TestTheKeyOfTheOperatorIsExchanged TestAHostWithAnExpiredCertificateJoinsAgain TestANodeIsAdoptedByAnAnnotation \
	TestSilentHostsHoldUpNobody TestALeaderThatWasFrozenChangesNothing TestTheAPIServerRestartsWhileMachinesJoin TestImpostorsGetNoCertificate \
	TestTheGuideOfYourOwnHostsIsFollowed TestTheCommandsSeeWhatTheOperatorDoes
.PHONY: test-tracers
test-tracers: setup $(TESTRUN) testenv-if-possible kubectl-if-possible test-programs ## one story of each kind
	@$(STEP) "testing with one story of each kind" hack/go-test tracers -- -timeout=$(TEST_TIMEOUT) -run '$(call pattern,$(TRACERS))' $(STORIES)

# -count=1: a result from the cache keeps no audit log.
.PHONY: test-stories
test-stories: setup $(TESTRUN) testenv-if-possible kubectl-if-possible test-programs ## nodes join, change and leave in whole clusters, over SSH
	@hack/space 4
	@$(STEP) "testing whole clusters" hack/go-test stories -- -count=1 -timeout=60m $(STORIES)
	@[ ! -x $(word 1,$(KUBERNETES)) ] || $(MAKE) -s permissions

.PHONY: permissions
permissions: setup ## the operator needs what it may, by the audit logs of test-stories
	@$(STEP) "checking the operator's permissions" go run ./internal/verify/permissions/cmd/permissions deploy/rbac bin/audit jointest

.PHONY: test-world
test-world: export WMCO_WORLD_SEEDS ?= 30
test-world: export WMCO_WORLD_ROUNDS ?= 4
test-world: export WMCO_WORLD_HOSTS ?= 1
test-world: setup $(TESTRUN) ## days of a fleet in virtual time, and faults of the operator that its observer must find
	@$(STEP) "testing the world" hack/go-test world -- -count=1 -timeout=3h -run '$(call pattern,TestWorld $(LONG_TESTS))' ./internal/test/world

# Starts and stops of services under Wine have limits of time: no other tests run beside them.
.PHONY: test-wine
test-wine: setup $(TESTRUN) wine-if-possible payload-if-possible testenv-if-possible ## the Windows programs under Wine (root)
	@$(STEP) "testing under Wine" hack/go-test wine -- -p 1 -timeout=$(TEST_TIMEOUT) $(WINE_TESTS)

.PHONY: times
times: ## docs/test-times.md: how long the steps and packages of the last make took
	@hack/times >docs/test-times.md

.PHONY: golden
golden: setup ## rewrite the goldens, then check them and show what changed
	@# Updating rewrites and then fails on purpose, so that no test run passes by rewriting.
	@$(STEP) "rewriting the goldens" bash -c 'go test ./golden ./deploy/olm ./internal/build/firstlook -update || true'
	@$(STEP) "checking the goldens" go test -count=1 ./golden ./deploy/olm ./internal/build/firstlook
	@git status --short -- golden deploy/olm/golden internal/build/firstlook

.PHONY: lint
lint: setup ## golangci-lint over this module and the test modules
	@$(call optional-program,$(GOLANGCI_LINT),golangci-lint,tools/lint)
	@[ ! -x $(GOLANGCI_LINT) ] || $(STEP) "linting" $(GOLANGCI_LINT) run ./...
	@[ ! -x $(GOLANGCI_LINT) ] || $(STEP) "linting what is for Windows" hack/lint-windows $(CURDIR)/$(GOLANGCI_LINT)
	@$(call optional-program,$(DEADCODE),deadcode,tools/lint)
	@[ ! -x $(DEADCODE) ] || $(STEP) "looking for functions that neither program calls" hack/deadcode $(CURDIR)/$(DEADCODE)
	@export GOFLAGS='$(IMAGE_TAGS) $(GOFLAGS)'; [ ! -x $(GOLANGCI_LINT) ] || for module in $(TEST_MODULES); do \
		hack/optional "linting $$module" --tests "$$module" ./... -- $(STEP) "linting $$module" \
			env -C "$$module" $(CURDIR)/$(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml ./...; \
	done

.PHONY: fmt-check
fmt-check: setup ## every Go file is formatted with gofmt -s
	@$(STEP) "checking the format" hack/fmt-check

.PHONY: generate
generate: setup ## rewrite the generated files
	@$(STEP) "generating" hack/generate .

.PHONY: generate-check
generate-check: setup ## the generated files are up to date
	@$(STEP) "checking the generated files" hack/generate-check

.PHONY: cross
cross: setup $(PLATFORMS:%=cross/%) ## the programs build for every platform, and everything compiles for Windows
	@$(STEP) "vetting for windows" env GOOS=windows GOARCH=amd64 go vet ./...
	@$(STEP) "testing what is built for windows" env WMCO_CROSS=1 go test -count=1 \
		-run '^(TestSizeForWindows|TestBuildMatchesTheTable|TestBadModulesAreRefused)$$' ./cmd/wmco-node ./internal/build/payloadbuild

.PHONY: $(PLATFORMS:%=cross/%) $(MORE_PLATFORMS:%=cross/%)
$(PLATFORMS:%=cross/%) $(MORE_PLATFORMS:%=cross/%): cross/%: setup
	@$(STEP) "building for $*" env GOOS=$(word 1,$(subst /, ,$*)) GOARCH=$(word 2,$(subst /, ,$*)) go build ./cmd/...

.PHONY: race
race: setup testenv-if-possible ## the tests under the race detector
	@hack/need gcc
	@$(STEP) "testing under the race detector" env CGO_ENABLED=1 WMCO_SCALE_NODES= WMCO_SCALE_FETCH= WMCO_SCALE_COPY= go test -race -timeout $(TEST_TIMEOUT) ./...

.PHONY: fuzz
fuzz: setup ## every fuzz target for FUZZTIME each (default 30s)
	@$(STEP) "fuzzing, $(FUZZTIME) each" hack/fuzz $(FUZZTIME)
	@export GOFLAGS='$(IMAGE_TAGS) $(GOFLAGS)'; for module in $(TEST_MODULES); do \
		hack/optional "fuzzing $$module" --tests "$$module" ./... -- $(STEP) "fuzzing $$module, $(FUZZTIME) each" \
			env -C "$$module" $(CURDIR)/hack/fuzz $(FUZZTIME); \
	done

.PHONY: bench
# Other programs do the same work beside ours.
bench: DEBIAN_PACKAGES += rsync
bench: setup ## every benchmark
	@$(STEP) "running the benchmarks" go test -run '^$$' -bench . -benchmem -timeout 30m ./...

# The first seed and how many are played, the nodes at the beginning, the hosts that join, and the storms of each.
SEED ?= 1
SEEDS ?= 10
NODES ?= 20
HOSTS ?= 0
ROUNDS ?= 4
.PHONY: world
world: setup ## SEEDS fleets of NODES light nodes and HOSTS whole hosts live through ROUNDS storms each, in virtual time: acts, counts and violations are printed
	@$(STEP) "letting $(SEEDS) fleets live" env WMCO_WORLD_TELL=1 WMCO_WORLD_SEED=$(SEED) WMCO_WORLD_SEEDS=$(SEEDS) WMCO_WORLD_NODES=$(NODES) WMCO_WORLD_HOSTS=$(HOSTS) WMCO_WORLD_ROUNDS=$(ROUNDS) \
		go test -count=1 -v -timeout 24h -run '^TestWorld$$' ./internal/test/world

.PHONY: figures
figures: ## lines, names and words by area, beside those of .ci/figures; no check
	@go run ./internal/verify/figures

.PHONY: figures-update
figures-update: ## write the figures of now to .ci/figures: at the end of an issue
	@go run ./internal/verify/figures -update

.PHONY: demo
# It prepares nothing before its first part, which is compiled faster than what prepares the others.
demo: ## render an example cluster, apply it to simulated hosts, and run the operator in a cluster
	@hack/demo-all $(MAKE)
	@hack/skipped

.PHONY: ci
ci: fmt-check lint generate-check cross test test-with-programs test-modules test-tracers ## the checks that every change must pass
	@hack/changed $(MAKE)
	@hack/skipped
	@echo "make: figures that are other ones than in .ci/figures:"; go run ./internal/verify/figures -changes
	@echo "make: ci passed; what changed is tested besides by:" $$(hack/by-path long) >&2

.PHONY: by-path
by-path: ## the targets of test-all that the changes since WMCO_BASE need, also those that take longer than make ci
	@hack/changed $(MAKE)
	@targets=$$(hack/by-path long); [ -z "$$targets" ] || $(MAKE) -s $$targets
	@hack/skipped

.PHONY: ci-full
ci-full: FUZZTIME = 2m
# How often a process is killed, and a host loses power, during an apply; and every call of the host goes wrong once, every step of the self-test is
# the last one, and connections over SSH are cut more often, to a hundred hosts.
ci-full: export WMCO_PROCESS_KILLS = 500
ci-full: export WMCO_ALL_CALLS = 1
ci-full: export WMCO_KILLS = 60
# How many events random fleets go through in the tests of the rollout.
ci-full: export WMCO_ROLLOUT_STEPS = 1000000
# And how many whole nodes go through, in removals, joins, upgrades and rollouts at once: about 200 a second on each processor.
ci-full: export WMCO_LIFE_STEPS = 1000000
# Operators that are killed while machines join, and instances that join and are removed again and again.
ci-full: export WMCO_STORM_MACHINES = 20
ci-full: export WMCO_OPERATOR_KILLS = 100
# Nodes of the existing operator that are adopted at once, and operators that are killed meanwhile.
ci-full: export WMCO_ADOPTIONS = 30
ci-full: export WMCO_ADOPTION_KILLS = 30
ci-full: export WMCO_JOINS_AND_REMOVALS = 500
# Random clusters in which images are pulled with the kubelet's credentials.
ci-full: export WMCO_PULL_CLUSTERS = 1000
# What kubelets know is read again from the kubelets of all minor versions.
ci-full: export WMCO_ALL_KUBELETS = 1
# Nodes that follow a changed mirror set; the race detector gets a hundred.
ci-full: export WMCO_SCALE_NODES = 1000
# Nodes that fetch the executables of a new operator, 123 MB each, and hosts that get them in both ways.
ci-full: export WMCO_SCALE_FETCH = 200
ci-full: export WMCO_SCALE_COPY = 4
# Every bad day of an API server, during joins and removals.
ci-full: export WMCO_FAULTS = all
# Control planes of all old minor versions, and API servers that are exchanged under twenty nodes, from three minor versions ago.
ci-full: OLD_KUBERNETES = $(ALL_OLD_KUBERNETES)
ci-full: export WMCO_EXCHANGES = 3
ci-full: export WMCO_EXCHANGE_NODES = 20
ci-full: export WMCO_EXCHANGE_KILLS = 5
# The image that is installed has the real executables, which are built for the tests under Wine.
ci-full: export WMCO_IMAGE_PAYLOAD = bin/payload
# Node agents of older commits are built, and move to this one.
ci-full: export WMCO_OLDER = yes
# The tests of the packages of the node agent run under Wine too.
ci-full: export WMCO_WINE_PACKAGES = 1
ci-full: TEST_TIMEOUT = 90m
ci-full: fmt-check lint generate-check cross $(MORE_PLATFORMS:%=cross/%) test-all test-world windows-steps minors mutations image-check race fuzz ## test-all with storms, long fuzzing, the race detector and the whole payload (many hours)
	@hack/skipped
	@echo "make: ci-full passed" >&2

.PHONY: clean
clean: ## remove everything that was built
	@rm -rf bin dist
