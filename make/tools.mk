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

# The containerd that goes onto the nodes, built for this machine: its `config dump` judges the rendered configuration. Two
# modules that no test needs are replaced by a few lines of ours (internal/standins): they can often not be downloaded.
CONTAINERD_MODULE := github.com/containerd/containerd/v2
$(CONTAINERD): tools/containerd/go.mod tools/containerd/go.sum $(wildcard internal/standins/*/*)
	@hack/need go
	@$(STEP) "building containerd (two minutes the first time)" go -C tools/containerd build -trimpath \
		-ldflags "-s -w -X $(CONTAINERD_MODULE)/version.Version=$$(go -C tools/containerd list -m -f '{{.Version}}' $(CONTAINERD_MODULE))" \
		-o $(CURDIR)/$@ $(CONTAINERD_MODULE)/cmd/containerd
	@touch $@

.PHONY: containerd-if-possible
containerd-if-possible: setup
	@$(call optional-program,$(CONTAINERD),the test of containerd's configuration,tools/containerd)
