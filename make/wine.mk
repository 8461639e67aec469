# Wine for the tests that run Windows programs: Debian with Wine in a folder outside the clone, installed again only if
# hack/wine-root changes. internal/test/winetest uses it; without it, tests are skipped.

WINE := bin/wine

# Seen by every go test.
export WMCO_WINE := $(CURDIR)/$(WINE)/root

.PHONY: wine
wine: setup ## bin/wine: Wine 10 for the tests of Windows programs (root)
	@hack/wine-root $(WINE)

# Without Wine, all other tests run. Continuous integration must have it.
.PHONY: wine-if-possible
wine-if-possible:
	@$(MAKE) -s wine || { [ "$${CI:-}" != true ] && hack/skip "the tests of Windows programs" "no Wine: the line above says why"; }

.PHONY: demo-windows
demo-windows: build wine ## apply a bundle to Windows under Wine with the real wmco-node.exe (root)
	@$(STEP) "applying a bundle to Windows under Wine" hack/demo-windows.sh

# The steps of .github/workflows/windows.yml that run with every change, a minute with warm caches; ci-full runs all, six minutes.
WINDOWS_STEPS := build preflight selftest selftest-killed payload-build payload-apply payload-container payload-cleanup
ci-full: WINDOWS_STEPS :=

.PHONY: windows-steps
windows-steps: setup wine-if-possible ## the steps for a real Windows, on a simulated host and under Wine (root; WINDOWS_STEPS= for all)
	@$(STEP) "running the steps of the Windows workflow" hack/windows-steps $(WINDOWS_STEPS)
