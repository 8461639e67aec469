# A Wine for the tests that run Windows programs: a Debian with Wine in a folder, kept outside the clone until hack/wine-root
# changes. internal/winetest uses it; a test that lacks it is skipped.

WINE := bin/wine

# Seen by every go test.
export WMCO_WINE := $(CURDIR)/$(WINE)/root

.PHONY: wine
wine: setup ## bin/wine: Wine 10 for the tests of Windows programs (root)
	@hack/wine-root $(WINE)

# A machine that cannot have it still runs every other test; continuous integration must have it.
.PHONY: wine-if-possible
wine-if-possible:
	@$(MAKE) -s wine || { [ "$${CI:-}" != true ] && hack/skip "the tests of Windows programs" "no Wine: the line above says why"; }

test: wine-if-possible

.PHONY: demo-windows
demo-windows: build wine ## bring a Windows under Wine to its bundle, by the real wmco-node.exe (root)
	@$(STEP) "bringing a Windows under Wine to its bundle" hack/demo-windows.sh
