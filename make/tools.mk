# Programs for the build and the tests, each built from a pinned module (go.mod and go.sum, no Go files) and built again
# only if that module changes.

TOOLS := bin/tools
GOLANGCI_LINT := $(TOOLS)/golangci-lint
DEADCODE := $(TOOLS)/deadcode
CONTAINERD := $(TOOLS)/containerd

$(GOLANGCI_LINT): tools/lint/go.mod tools/lint/go.sum
	@hack/need go
	@$(STEP) "building golangci-lint (two minutes the first time)" go -C tools/lint build -trimpath -ldflags '-s -w' \
		-o $(CURDIR)/$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

$(DEADCODE): tools/lint/go.mod tools/lint/go.sum
	@hack/need go
	@$(STEP) "building deadcode" go -C tools/lint build -trimpath -ldflags '-s -w' -o $(CURDIR)/$@ golang.org/x/tools/cmd/deadcode
	@touch $@

# The containerd of the payload, built for this computer: its `config dump` checks the rendered configuration. Two modules
# that no test needs often cannot be downloaded; internal/build/standins replaces them.
CONTAINERD_MODULE := github.com/containerd/containerd/v2
$(CONTAINERD): tools/containerd/go.mod tools/containerd/go.sum $(wildcard internal/build/standins/*/*)
	@hack/need go
	@$(STEP) "building containerd (two minutes the first time)" go -C tools/containerd build -trimpath \
		-ldflags "-s -w -X $(CONTAINERD_MODULE)/version.Version=$$(go -C tools/containerd list -m -f '{{.Version}}' $(CONTAINERD_MODULE))" \
		-o $(CURDIR)/$@ $(CONTAINERD_MODULE)/cmd/containerd
	@touch $@

.PHONY: containerd-if-possible
containerd-if-possible: setup
	@$(call optional-program,$(CONTAINERD),the test of containerd's configuration,tools/containerd)

# The commands of the documents are run with it. It reports its version, which must not be that of no release.
KUBECTL := $(TOOLS)/kubectl
$(KUBECTL): tools/kubectl/go.mod tools/kubectl/go.sum
	@hack/need go
	@version=$$(go -C tools/kubectl list -m -f '{{.Version}}' k8s.io/kubernetes); IFS=. read -r major minor _ <<<"$${version#v}"; \
	$(STEP) "building kubectl $$version (two minutes the first time)" go -C tools/kubectl build -trimpath \
		-ldflags "-s -w -X $(KUBE_VERSION_PACKAGE).gitVersion=$$version -X $(KUBE_VERSION_PACKAGE).gitMajor=$$major -X $(KUBE_VERSION_PACKAGE).gitMinor=$$minor" \
		-o $(CURDIR)/$@ k8s.io/kubernetes/cmd/kubectl
	@touch $@

.PHONY: kubectl-if-possible
kubectl-if-possible: setup
	@$(call optional-program,$(KUBECTL),the installation by the commands of the documents,tools/kubectl)

# It checks the workflows and the shell in them.
ACTIONLINT := $(TOOLS)/actionlint
$(ACTIONLINT): tools/actionlint/go.mod tools/actionlint/go.sum
	@hack/need go
	@$(STEP) "building actionlint" go -C tools/actionlint build -trimpath -ldflags '-s -w' -o $(CURDIR)/$@ github.com/rhysd/actionlint/cmd/actionlint
	@touch $@

.PHONY: lint-workflows
lint-workflows: setup shellcheck-if-possible ## actionlint over .github/workflows, and shellcheck over the shell in them
	@$(call optional-program,$(ACTIONLINT),actionlint,tools/actionlint)
	@[ ! -x $(ACTIONLINT) ] || $(STEP) "linting the workflows" $(ACTIONLINT) -shellcheck="$$(command -v shellcheck || true)" -pyflakes=

# Without shellcheck, bash reads the scripts and runs nothing.
.PHONY: shellcheck-if-possible
shellcheck-if-possible:
	@hack/packages shellcheck || hack/skip "shellcheck" "no such program: the line above says why"

.PHONY: lint-shell
lint-shell: shellcheck-if-possible ## shellcheck over all scripts
	@$(STEP) "linting the scripts" hack/lint-shell

lint: lint-workflows lint-shell
