# Programs that the build and the tests use, each built from its own pinned module (go.mod and go.sum, no Go files) and
# kept until that module changes.

TOOLS := bin/tools
GOLANGCI_LINT := $(TOOLS)/golangci-lint
CONTAINERD := $(TOOLS)/containerd

$(GOLANGCI_LINT): tools/lint/go.mod tools/lint/go.sum
	@hack/need go
	@$(STEP) "building golangci-lint (two minutes the first time)" go -C tools/lint build -trimpath -ldflags '-s -w' \
		-o $(CURDIR)/$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

# The containerd that goes onto the nodes, built for this machine: its `config dump` judges the rendered configuration.
CONTAINERD_MODULE := github.com/containerd/containerd/v2
$(CONTAINERD): payload/containerd/go.mod payload/containerd/go.sum
	@hack/need go
	@$(STEP) "building containerd (two minutes the first time)" go -C payload/containerd build -trimpath \
		-ldflags "-s -w -X $(CONTAINERD_MODULE)/version.Version=$$(go -C payload/containerd list -m -f '{{.Version}}' $(CONTAINERD_MODULE))" \
		-o $(CURDIR)/$@ $(CONTAINERD_MODULE)/cmd/containerd
	@touch $@

# A machine that cannot build containerd still runs every other test; continuous integration must have it.
.PHONY: containerd-if-possible
containerd-if-possible:
	@$(MAKE) -s $(CONTAINERD) || { [ "$${CI:-}" != true ] && echo "make: containerd was not built, the test of its configuration is skipped" >&2; }
