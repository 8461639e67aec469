# Mutations of safety lines: internal/verify/mutations breaks each in a copy of the tree, and the tests named beside it must fail.

# What chooses the sample of ci: each commit has another one, and a commit always the same.
MUTATION_SEED ?= $(shell git rev-parse HEAD 2>/dev/null || echo none)
# How many mutations the sample has, and how long it may take.
MUTATION_SAMPLE ?= 6
MUTATION_LIMIT ?= 3m

# The program is built first: go run would not pass an interrupt on in time.
MUTATIONS := bin/mutations/mutations

.PHONY: $(MUTATIONS)
$(MUTATIONS): setup
	@go build -trimpath -o $@ ./internal/verify/mutations/cmd/mutations

.PHONY: mutations
mutations: $(MUTATIONS) testenv-if-possible ## break each safety line of internal/verify/mutations/list: a test must fail (NAMES='one another' for some)
	@$(STEP) "testing mutations" $(MUTATIONS) $(NAMES)

.PHONY: mutations-sample
mutations-sample: $(MUTATIONS)
	@$(STEP) "testing $(MUTATION_SAMPLE) mutations" $(MUTATIONS) -sample $(MUTATION_SAMPLE) -seed '$(MUTATION_SEED)' -limit $(MUTATION_LIMIT)
