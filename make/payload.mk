# The Windows executables for nodes, each built from a pinned module below payload/ (go.mod and go.sum, no Go files).
# docs/payload.md lists them. They are built again only if their recipe changes.

PAYLOAD_BUILDER := $(TOOLS)/builder
# PAYLOAD= selects components or executables, such as PAYLOAD=kube-log-runner,cni.
PAYLOAD ?=
# The executables that are started under Wine by the tests: a part that builds in two minutes without caches. ci-full starts all, with a kubelet of
# each minor version of Kubernetes.
TESTED_PAYLOAD := kube-log-runner,cni,wmco-node
ci-full: TESTED_PAYLOAD :=

# Seen by every go test.
export WMCO_PAYLOAD := $(CURDIR)/bin/payload

.PHONY: $(PAYLOAD_BUILDER)
$(PAYLOAD_BUILDER):
	@hack/need go
	@go build -trimpath -o $@ ./internal/build/payloadbuild/cmd/builder

.PHONY: payload
payload: setup $(PAYLOAD_BUILDER) ## bin/payload: the Windows executables (PAYLOAD=cni,... for a part; twenty minutes the first time)
	@$(STEP) "building the payload" $(PAYLOAD_BUILDER) build --version '$(VERSION)' --sources '$(SOURCE_TREE)' --only '$(PAYLOAD)'

.PHONY: payload-check
payload-check: payload ## build the payload again from empty caches, compare the bytes, and ask for newer versions
	@$(STEP) "comparing the payload with a second build" $(PAYLOAD_BUILDER) check --version '$(VERSION)' --sources '$(SOURCE_TREE)' --only '$(PAYLOAD)'
	@$(STEP) "looking for newer versions" $(PAYLOAD_BUILDER) newer

# builder exits with 3 if executables are missing only because modules cannot be downloaded.
.PHONY: payload-if-possible
payload-if-possible: setup $(PAYLOAD_BUILDER)
	@status=0; $(STEP) "building the payload of the tests" $(PAYLOAD_BUILDER) build --version '$(VERSION)' --sources '$(SOURCE_TREE)' --only '$(TESTED_PAYLOAD)' || status=$$?; \
	case $$status in 0) ;; 3) hack/skip "the tests of the executables that the table above lacks" "not all modules are served" ;; *) exit $$status ;; esac

.PHONY: minors
minors: setup ## the goldens, by the kubelet and kube-proxy of each minor version (a minute each the first time)
	@hack/minors

ci-full: payload-check
