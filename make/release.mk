# The image of the operator and the files of a release. internal/build/release makes them from programs that are built here.

RELEASER := $(TOOLS)/release
# Where the programs are put together, and the image as an OCI layout.
RELEASE_OUT := bin/release
IMAGE_LAYOUT := bin/image
# How the names of files for clusters begin.
OPERATOR_FILES = windows-machine-config-operator-$(VERSION)

# The payload of the image: a folder that make payload wrote. Another one is taken as it is.
PAYLOAD_DIR ?= bin/payload
# The folder with its bills of materials.
BILLS_DIR ?= $(dir $(PAYLOAD_DIR:/=))sbom
# ALLOW_MISSING=1 accepts a payload that lacks executables. The operator says which platforms it cannot serve.
ALLOW_MISSING ?=
# The list of executables of the release before (payload.json), for the notes.
BEFORE ?=
# The URL of the sources, without a token that the clone was made with, and the one below which the files of the release will be.
SOURCE ?= $(filter https://%,$(shell git remote get-url origin 2>/dev/null | sed -E 's,^https://[^/]*@,https://,' | grep -xE '[A-Za-z0-9._~:/%-]+'))
DOWNLOADS ?= $(if $(SOURCE),$(SOURCE:.git=)/releases/download/$(VERSION),https://localhost)
# The URL below which the sources of the release can be read: alerts, events, conditions and wmco explain name pages there.
SOURCE_TREE ?= $(if $(SOURCE),$(SOURCE:.git=)/blob/$(VERSION))
# Where the image will be pushed: manifests name it by digest.
IMAGE_REPOSITORY ?= localhost/windows-machine-config-operator
# Where the image of the OLM bundle will be pushed: the catalog names it by digest, as mirrors of disconnected clusters need it.
BUNDLE_REPOSITORY ?= $(IMAGE_REPOSITORY)-bundle

# The pause image of the nodes, by digest: the default of the setting pauseImage, and one of the relatedImages of the OLM bundle.
PAUSE_IMAGE ?=

IMAGE_PLATFORMS := linux-amd64 linux-arm64
CLI_PLATFORMS := $(IMAGE_PLATFORMS) darwin-amd64 darwin-arm64 windows-amd64 windows-arm64

# $(call program-of,linux-amd64) is the program of a platform.
program-of = $(RELEASE_OUT)/$(1)/wmco$(if $(filter windows-%,$(1)),.exe)
# $(call platform-flags,FLAG,PLATFORMS): a flag for the program of each platform.
platform-flags = $(foreach p,$(2),--$(1) $(subst -,/,$(p))=$(call program-of,$(p)))
RELEASE_FLAGS = --version '$(VERSION)' --revision "$$(git rev-parse HEAD)" --created "$$(git log -1 --format=%cI)" --source '$(SOURCE)' \
	--payload '$(PAYLOAD_DIR)' --bills '$(BILLS_DIR)' $(call platform-flags,operator,$(IMAGE_PLATFORMS)) \
	$(foreach p,$(IMAGE_PLATFORMS),--shell $(subst -,/,$(p))=$(RELEASE_OUT)/$(p)/shell) $(if $(ALLOW_MISSING),--allow-missing)

.PHONY: $(RELEASER)
$(RELEASER):
	@hack/need go git
	@go -C internal/build/release build -trimpath -o $(CURDIR)/$@ ./cmd/release

# The same sources and the same release of Go give the same bytes.
.PHONY: $(CLI_PLATFORMS:%=program/%)
$(CLI_PLATFORMS:%=program/%): program/%: setup
	@$(STEP) "building wmco $(VERSION) for $(subst -,/,$*)" env GOOS=$(word 1,$(subst -, ,$*)) GOARCH=$(word 2,$(subst -, ,$*)) \
		go build -trimpath -ldflags '-s -w -buildid= -X main.version=$(VERSION) -X main.sourceTree=$(SOURCE_TREE)$(if $(PAUSE_IMAGE), -X wmco/render.releasedPauseImage=$(PAUSE_IMAGE))' -o $(call program-of,$*) ./cmd/wmco

# What oc adm must-gather needs of the image beside its entry point.
.PHONY: $(IMAGE_PLATFORMS:%=shell/%)
$(IMAGE_PLATFORMS:%=shell/%): shell/%: setup
	@env GOOS=$(word 1,$(subst -, ,$*)) GOARCH=$(word 2,$(subst -, ,$*)) \
		go -C tools/shell build -trimpath -ldflags '-s -w -buildid=' -o $(CURDIR)/$(RELEASE_OUT)/$*/shell .

# What make payload could not build is refused by the image, by name, unless ALLOW_MISSING is set.
.PHONY: image-payload
image-payload:
	@[ '$(PAYLOAD_DIR)' != bin/payload ] || $(MAKE) payload PAYLOAD= || [ -n '$(ALLOW_MISSING)' ]

.PHONY: image
image: setup image-payload $(RELEASER) $(IMAGE_PLATFORMS:%=program/%) $(IMAGE_PLATFORMS:%=shell/%) ## bin/image: the operator's image (VERSION= PAYLOAD_DIR= ALLOW_MISSING=1)
	@$(STEP) "making the image" $(RELEASER) image $(RELEASE_FLAGS) --out $(IMAGE_LAYOUT)

# $(call olm-image,bundle) makes the image of dist/olm-bundle, or of the catalog, and prints its digest.
olm-image = $(RELEASER) $(1) $(RELEASE_FLAGS) --content dist/olm-$(1) --image bin/$(1)-image --out dist/$(OPERATOR_FILES)-$(1)-image.tar

.PHONY: release
release: image $(CLI_PLATFORMS:%=program/%) ## dist: everything that an administrator installs, with checksums (VERSION=x.y.z)
	@rm -rf dist
	@[ -n '$(PAUSE_IMAGE)' ] || echo 'make: no PAUSE_IMAGE=mcr.microsoft.com/oss/kubernetes/pause@sha256:DIGEST: the OLM bundle does not say that it is for disconnected clusters' >&2
	@$(STEP) "packing the programs and the image" $(RELEASER) files $(RELEASE_FLAGS) --image $(IMAGE_LAYOUT) \
		$(call platform-flags,program,$(CLI_PLATFORMS)) --before '$(BEFORE)' --downloads '$(DOWNLOADS)' --out dist
	@image="$(IMAGE_REPOSITORY)@$$(cat dist/$(OPERATOR_FILES)-image.digest.txt)"; \
		$(MAKE) olm-bundle VERSION='$(VERSION)' IMAGE="$$image"; \
		bundle=$$($(call olm-image,bundle)); \
		echo "$$bundle"; \
		$(MAKE) olm-bundle VERSION='$(VERSION)' IMAGE="$$image" BUNDLE_IMAGE="$(BUNDLE_REPOSITORY)@$$bundle"; \
		$(call olm-image,catalog); \
		go run ./deploy/kustomize/cmd/manifests deploy "$$image" '$(SOURCE_TREE)' >dist/$(OPERATOR_FILES)-install.yaml
	@$(RELEASER) sums dist

# Two builds have one digest, skopeo copies the image, and the commands of docs/install.md install it: its operator starts, and hosts join with
# its payload.
.PHONY: image-check
image-check: build kubectl-if-possible $(RELEASER) $(IMAGE_PLATFORMS:%=program/%) $(IMAGE_PLATFORMS:%=shell/%)
	@$(STEP) "checking the image" hack/image-check.sh
