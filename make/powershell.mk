# Parses the rendered PowerShell.

.PHONY: lint-powershell
lint-powershell: ## the PowerShell of user data parses (node, npm)
	@$(STEP) "linting PowerShell" hack/lint-powershell

lint: lint-powershell
