# The OLM bundle and the file-based catalog, from the manifests in deploy.

# IMAGE is that of the operator, by digest; MAINTAINER who makes the release.
MAINTAINER ?= $(shell git log -1 --format='%an <%ae>')
OLM_CHECK := $(TOOLS)/olm-check

.PHONY: olm-bundle
olm-bundle: setup ## dist/olm-bundle, olm-catalog and olm-community: make olm-bundle VERSION=x.y.z IMAGE=REGISTRY/NAME@sha256:DIGEST
	@$(STEP) "writing dist/olm-bundle, olm-catalog and olm-community" go run ./deploy/olm/cmd/olm-bundle -version '$(VERSION)' -image '$(IMAGE)' \
		$(if $(BUNDLE_IMAGE),-bundle-image '$(BUNDLE_IMAGE)') -sources '$(SOURCE_TREE)' -maintainer '$(MAINTAINER)' -created "$$(git log -1 --format=%cI)"

# The tag keeps a C library out that checks signatures of images, which are not looked at.
$(OLM_CHECK): tools/olm-check/go.mod tools/olm-check/go.sum tools/olm-check/main.go
	@hack/need go
	@$(STEP) "building the validators of operator-framework (three minutes the first time)" go -C tools/olm-check build -trimpath \
		-tags containers_image_openpgp -o $(CURDIR)/$@ .
	@touch $@

.PHONY: olm-check
olm-check: setup ## operator-framework's own validators over the reviewed bundle and catalog
	@$(MAKE) -q $(OLM_CHECK) 2>/dev/null || env GOFLAGS='-tags=containers_image_openpgp $(GOFLAGS)' hack/optional \
		"the validators of operator-framework" tools/olm-check . -- $(MAKE) -s $(OLM_CHECK)
	@[ ! -x $(OLM_CHECK) ] || $(STEP) "validating the OLM bundle and catalog" $(OLM_CHECK) deploy/olm/golden/bundle deploy/olm/golden/catalog
