# The PowerShell that render makes, against a grammar.

.PHONY: lint-powershell
lint-powershell: ## the PowerShell of user data parses (node, npm)
	@$(STEP) "linting PowerShell" hack/lint-powershell

lint: lint-powershell
