# A real control plane for the tests: etcd and the programs of Kubernetes, built from pinned modules (go.mod and go.sum, no Go
# files) and built again only if those change. internal/test/testenv starts them; without them, tests are skipped.

TESTENV := bin/testenv
ETCD := $(TESTENV)/etcd
# What a cluster needs whose Pods are not scheduled, and the scheduler.
KUBERNETES := $(addprefix $(TESTENV)/,kube-apiserver kube-controller-manager)
SCHEDULER := $(TESTENV)/kube-scheduler

# Seen by every go test.
export WMCO_TESTENV := $(CURDIR)/$(TESTENV)

.PHONY: testenv
testenv: setup $(ETCD) $(KUBERNETES) $(SCHEDULER) ## bin/testenv: etcd, API server, controller manager and scheduler for the tests

$(ETCD): tools/etcd/go.mod tools/etcd/go.sum
	@hack/need go
	@$(STEP) "building etcd (half a minute the first time)" hack/downloads go -C tools/etcd build -trimpath -ldflags '-s -w' \
		-o $(CURDIR)/$@ go.etcd.io/etcd/server/v3
	@touch $@

# The API server reports its version to clients, which parse it as numbers. Programs of one command share the compiler's work.
KUBE_VERSION = $(shell go -C tools/kubernetes list -m -f '{{.Version}}' k8s.io/kubernetes)
KUBE_VERSION_PACKAGE := k8s.io/component-base/version
# $(call kubernetes,WHAT,PROGRAMS) builds programs of Kubernetes.
kubernetes = version=$(KUBE_VERSION); IFS=. read -r major minor _ <<<"$${version\#v}"; \
	$(STEP) "building $(1) $$version ($(2) the first time)" hack/downloads go -C tools/kubernetes build -trimpath \
		-ldflags "-s -w -X $(KUBE_VERSION_PACKAGE).gitVersion=$$version -X $(KUBE_VERSION_PACKAGE).gitMajor=$$major -X $(KUBE_VERSION_PACKAGE).gitMinor=$$minor" \
		-o $(CURDIR)/$(TESTENV)/ $(patsubst $(TESTENV)/%,k8s.io/kubernetes/cmd/%,$(3))
$(KUBERNETES) &: tools/kubernetes/go.mod tools/kubernetes/go.sum
	@hack/need go
	@$(call kubernetes,the API server and the controllers of Kubernetes,six minutes,$(KUBERNETES))
	@touch $(KUBERNETES)

$(SCHEDULER): tools/kubernetes/go.mod tools/kubernetes/go.sum | $(KUBERNETES)
	@hack/need go
	@$(call kubernetes,the scheduler of Kubernetes,a minute,$(SCHEDULER))
	@touch $@

# The same programs of older minor versions, for what is tested on each: bin/testenv-<minor>, with the same etcd. ci tests the first one.
ALL_OLD_KUBERNETES := $(sort $(patsubst tools/kubernetes-%,%,$(wildcard tools/kubernetes-1.*)))
OLD_KUBERNETES := $(firstword $(ALL_OLD_KUBERNETES))
OLD_PROGRAMS := $(foreach minor,$(ALL_OLD_KUBERNETES),$(TESTENV)-$(minor)/kube-apiserver)

$(OLD_PROGRAMS): $(TESTENV)-%/kube-apiserver: tools/kubernetes-%/go.mod tools/kubernetes-%/go.sum
	@hack/need go
	@version=$$(go -C tools/kubernetes-$* list -m -f '{{.Version}}' k8s.io/kubernetes); IFS=. read -r major minor _ <<<"$${version#v}"; \
	$(STEP) "building Kubernetes $$version (six minutes the first time)" go -C tools/kubernetes-$* build -trimpath \
		-ldflags "-s -w -X $(KUBE_VERSION_PACKAGE).gitVersion=$$version -X $(KUBE_VERSION_PACKAGE).gitMajor=$$major -X $(KUBE_VERSION_PACKAGE).gitMinor=$$minor" \
		-o $(CURDIR)/$(@D)/ $(patsubst $(TESTENV)/%,k8s.io/kubernetes/cmd/%,$(KUBERNETES) $(SCHEDULER))
	@touch $@

# Of two versions, the older API server is also exchanged for the newer one, under nodes and a running operator.
.PHONY: test-old
test-old: setup $(TESTRUN) testenv-if-possible test-programs ## nodes join, change and leave in control planes of older minor versions
	@before=; for minor in $(OLD_KUBERNETES); do \
		$(call optional-program,$(TESTENV)-$$minor/kube-apiserver,the tests against Kubernetes $$minor,tools/kubernetes-$$minor); \
		[ -x $(TESTENV)-$$minor/kube-apiserver ] && [ -x $(ETCD) ] || continue; \
		ln -f $(ETCD) $(TESTENV)-$$minor/etcd; \
		$(STEP) "testing with Kubernetes $$minor" env WMCO_TESTENV=$(CURDIR)/$(TESTENV)-$$minor \
			hack/go-test old-$$minor -- -count=1 -timeout=$(TEST_TIMEOUT) -run '^TestNodesOfThisControlPlane$$' ./internal/test/jointest; \
		[ -z "$$before" ] || $(STEP) "exchanging the API server of Kubernetes $$before for $$minor" \
			env WMCO_TESTENV=$(CURDIR)/$(TESTENV)-$$before WMCO_TESTENV_NEXT=$(CURDIR)/$(TESTENV)-$$minor \
			hack/go-test exchange-$$minor -- -count=1 -timeout=60m -run '^TestTheAPIServerIsExchangedForNewerMinorVersions$$' ./internal/test/jointest; \
		before=$$minor; \
	done

.PHONY: testenv-if-possible
testenv-if-possible: cluster-if-possible
	@$(call optional-program,$(SCHEDULER),the tests against a control plane,tools/kubernetes)

# What the demonstration needs.
.PHONY: cluster-if-possible
cluster-if-possible: setup
	@$(call optional-program,$(ETCD),the tests against a control plane,tools/etcd)
	@$(call optional-program,$(KUBERNETES),the tests against a control plane,tools/kubernetes)

.PHONY: cluster-up
cluster-up: testenv ## a control plane on loopback with the OpenShift kinds; prints its kubeconfig
	@go build -trimpath -o $(TESTENV)/cluster ./internal/test/simnode/cmd/cluster
	@hack/cluster up

.PHONY: cluster-down
cluster-down: ## stop it, and remove its data
	@hack/cluster down
