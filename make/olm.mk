# The OLM bundle and the file-based catalog, from the manifests in deploy.

# IMAGE is that of the operator, by digest; MAINTAINER who makes the release, by default the author of the last commit, whose name is any text.
OLM_CHECK := $(TOOLS)/olm-check

.PHONY: olm-bundle
olm-bundle: setup ## dist/olm-bundle, olm-catalog and olm-community: make olm-bundle VERSION=x.y.z IMAGE=REGISTRY/NAME@sha256:DIGEST
	@$(STEP) "writing dist/olm-bundle, olm-catalog and olm-community" go run ./deploy/olm/cmd/olm-bundle -version '$(VERSION)' -image '$(IMAGE)' \
		$(if $(BUNDLE_IMAGE),-bundle-image '$(BUNDLE_IMAGE)') -pause-image '$(PAUSE_IMAGE)' -sources '$(SOURCE_TREE)' -repository '$(SOURCE:.git=)' -maintainer "$${MAINTAINER:-$$(git log -1 --format='%an <%ae>')}" -created "$$(git log -1 --format=%cI)"

# The tag keeps a C library out that checks signatures of images, which are not looked at.
$(OLM_CHECK): tools/olm-check/go.mod tools/olm-check/go.sum tools/olm-check/main.go
	@hack/need go
	@$(STEP) "building the validators of operator-framework (three minutes the first time)" go -C tools/olm-check build -trimpath \
		-tags containers_image_openpgp -o $(CURDIR)/$@ .
	@touch $@

# What the bundle of a release brings beside its ClusterServiceVersion: the next one may add to it, and take nothing away.
.PHONY: olm-previous
olm-previous: ## deploy/olm/previous: what the next release is compared with; after a release was made
	@rm -rf deploy/olm/previous && mkdir deploy/olm/previous
	@cp deploy/olm/golden/bundle/manifests/*_{role,rolebinding,clusterrole,clusterrolebinding,service,customresourcedefinition}.yaml deploy/olm/previous

# OLM itself, for the tests of the bundle: its operators, opm and its definitions, from a module without Go files of its own, and kubectl as oc,
# which runs the commands of the documents. The tag is that of the validators: without it opm needs a C library.
OLM := bin/olm
OLM_MODULES := github.com/operator-framework
$(OLM)/olm: tools/olm/go.mod tools/olm/go.sum
	@hack/need go
	@$(STEP) "building OLM (four minutes the first time)" hack/downloads go -C tools/olm build -trimpath -ldflags '-s -w' -tags containers_image_openpgp \
		-o $(CURDIR)/$(OLM)/ $(OLM_MODULES)/operator-lifecycle-manager/cmd/olm $(OLM_MODULES)/operator-lifecycle-manager/cmd/catalog $(OLM_MODULES)/operator-registry/cmd/opm
	@rm -rf $(OLM)/crds && mkdir $(OLM)/crds
	@install -m 0644 "$$(go -C tools/olm list -m -f '{{.Dir}}' $(OLM_MODULES)/api)"/crds/*.yaml $(OLM)/crds
	@touch $@

# Two operators, a catalog and ours share two processors with a control plane: no other tests run beside them.
.PHONY: test-olm
test-olm: setup $(TESTRUN) testenv-if-possible kubectl-if-possible ## OLM itself installs, upgrades and removes the operator (needs root)
	@export GOFLAGS='-tags=containers_image_openpgp $(GOFLAGS)'; $(call optional-program,$(OLM)/olm,the tests with OLM itself,tools/olm)
	@[ ! -x $(OLM)/olm ] || [ ! -x $(KUBECTL) ] || { ln -f $(KUBECTL) $(OLM)/oc && $(STEP) "testing with OLM itself" \
		env WMCO_OLM=$(CURDIR)/$(OLM) hack/go-test olm -- -count=1 -timeout=$(TEST_TIMEOUT) ./internal/test/olmtest; }

.PHONY: olm-check
olm-check: setup ## operator-framework's own validators over the reviewed bundle and catalog
	@$(MAKE) -q $(OLM_CHECK) 2>/dev/null || env GOFLAGS='-tags=containers_image_openpgp $(GOFLAGS)' hack/optional \
		"the validators of operator-framework" tools/olm-check . -- $(MAKE) -s $(OLM_CHECK)
	@[ ! -x $(OLM_CHECK) ] || $(STEP) "validating the OLM bundle and catalog" $(OLM_CHECK) deploy/olm/golden/bundle deploy/olm/golden/catalog
