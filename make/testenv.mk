# A real control plane for the tests: etcd and kube-apiserver, each built from a pinned module (go.mod and go.sum, no Go
# files) and built again only if that module changes. internal/testenv starts them; without them, tests are skipped.

TESTENV := bin/testenv
ETCD := $(TESTENV)/etcd
KUBE_APISERVER := $(TESTENV)/kube-apiserver

# Seen by every go test.
export WMCO_TESTENV := $(CURDIR)/$(TESTENV)

.PHONY: testenv
testenv: setup $(ETCD) $(KUBE_APISERVER) ## bin/testenv: etcd and kube-apiserver for the tests

$(ETCD): tools/etcd/go.mod tools/etcd/go.sum
	@hack/need go
	@$(STEP) "building etcd (half a minute the first time)" go -C tools/etcd build -trimpath -ldflags '-s -w' \
		-o $(CURDIR)/$@ go.etcd.io/etcd/server/v3
	@touch $@

# The API server reports its version to clients, which parse it as numbers.
KUBE_VERSION = $(shell go -C tools/kube-apiserver list -m -f '{{.Version}}' k8s.io/kubernetes)
KUBE_VERSION_PACKAGE := k8s.io/component-base/version
$(KUBE_APISERVER): tools/kube-apiserver/go.mod tools/kube-apiserver/go.sum
	@hack/need go
	@version=$(KUBE_VERSION); IFS=. read -r major minor _ <<<"$${version#v}"; \
	$(STEP) "building kube-apiserver $$version (six minutes the first time)" go -C tools/kube-apiserver build -trimpath \
		-ldflags "-s -w -X $(KUBE_VERSION_PACKAGE).gitVersion=$$version -X $(KUBE_VERSION_PACKAGE).gitMajor=$$major -X $(KUBE_VERSION_PACKAGE).gitMinor=$$minor" \
		-o $(CURDIR)/$@ k8s.io/kubernetes/cmd/kube-apiserver
	@touch $@

.PHONY: testenv-if-possible
testenv-if-possible: setup
	@$(call optional-program,$(ETCD),the tests against an API server,tools/etcd)
	@$(call optional-program,$(KUBE_APISERVER),the tests against an API server,tools/kube-apiserver)
