# promtool parses and tests the rules for Prometheus. It is Debian's, or the one in the PATH.

PROMTOOL := $(TOOLS)/promtool

# Seen by every go test. Without a file there, the one in the PATH is used.
export WMCO_PROMTOOL = $(if $(wildcard $(PROMTOOL)),$(CURDIR)/$(PROMTOOL))

$(PROMTOOL): hack/promtool
	@$(STEP) "downloading promtool" hack/promtool $@

.PHONY: promtool
promtool: $(PROMTOOL) ## bin/tools/promtool: the tests of the rules for Prometheus (Debian)

.PHONY: promtool-if-possible
promtool-if-possible:
	@command -v promtool >/dev/null || $(MAKE) -s promtool || hack/skip "the tests of the rules for Prometheus" "no promtool: the line above says why"
