# What is optional is left out when the module proxy does not serve what it is built from: programs that judge our files in
# tests, control planes, the payload. Each is said in one line, and all are counted at the end. What fails for any other
# reason fails.

# What was left out, a line each, since the first make started.
export WMCO_SKIPPED := $(CURDIR)/bin/skipped
ifeq ($(MAKELEVEL),0)
$(shell rm -f $(WMCO_SKIPPED))
endif

MODULES := bin/tools/modules

.PHONY: $(MODULES)
$(MODULES):
	@hack/need go git
	@go build -trimpath -o $@ ./internal/modules/cmd/modules

# $(call optional-program,FILE,WHAT,MODULE): builds the program FILE, the tool of a module, if that can be downloaded.
optional-program = $(MAKE) -q $(1) 2>/dev/null || hack/optional "$(2)" $(3) tool -- $(MAKE) -s $(1)

.PHONY: pins
pins: $(MODULES) ## which pinned versions the module proxy serves, and what it lists next to those that it does not
	@$(STEP) "asking the module proxy for every pin (four minutes; all of them: bin/pins.txt)" $(MODULES) pins bin/pins.txt
