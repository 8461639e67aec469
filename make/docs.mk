# The documents: a site of them, and checks that run what they say.

.PHONY: docs
docs: setup ## dist/docs: the documents as a searchable site (node, npm; SOURCES=URL for links to files)
	@$(STEP) "making the site of docs" hack/site dist/docs

.PHONY: docs-check
docs-check: setup testenv-if-possible kubectl-if-possible ## run what the documents say: command lines, manifests, links, examples
	@$(STEP) "running the command lines of the documents" go test -count=1 -run 'Doc|Runbook|Schema' ./cmd/wmco ./cmd/wmco-node
	@$(STEP) "rendering the examples of the documents" go test -count=1 -run 'Page|Readme' ./golden
	@$(STEP) "giving the manifests to an API server" go test -count=1 ./internal/test/docexamples
	@$(STEP) "following the guides" go test -count=1 -run '^TestTheGuide|^TestThePageOf' ./internal/test/jointest
	@hack/optional "the links of the documents" --tests internal/verify/docs ./... -- $(STEP) "following the links of the documents" \
		go -C internal/verify/docs test -count=1 ./...
