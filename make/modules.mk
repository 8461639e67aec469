# Optional parts are skipped if the module proxy does not serve their modules: programs that check our files in tests,
# control planes, the payload. Each prints one line, and all are counted at the end. Any other error is a failure.

# The file with a line for each part that was skipped since the first make started, and the one with the seconds of steps and packages.
export WMCO_SKIPPED := $(CURDIR)/bin/skipped
export WMCO_TIMES := $(CURDIR)/bin/times
ifeq ($(MAKELEVEL),0)
$(shell rm -rf $(WMCO_SKIPPED) $(WMCO_TIMES) bin/test-logs)
endif

MODULES := bin/tools/modules
# It runs go test, and counts.
TESTRUN := bin/tools/testrun

.PHONY: $(TESTRUN)
$(TESTRUN):
	@hack/need go git
	@go build -trimpath -o $@ ./internal/build/testrun/cmd/testrun

.PHONY: $(MODULES)
$(MODULES):
	@hack/need go git
	@go build -trimpath -o $@ ./internal/build/modules/cmd/modules

# $(call optional-program,FILE,WHAT,MODULE): builds the program FILE, the tool of a module, if that can be downloaded.
optional-program = $(MAKE) -q $(1) 2>/dev/null || hack/optional "$(2)" $(3) tool -- $(MAKE) -s $(1)
