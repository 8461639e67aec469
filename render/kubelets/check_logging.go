package kubelets

import (
	"fmt"
	"strings"
)

// checkLogging applies the rules of k8s.io/component-base/logs/api/v1 (Validate).
func (c *check) checkLogging() {
	const alpha, beta = "LoggingAlphaOptions", "LoggingBetaOptions"
	l := c.config.Logging
	if d := l.FlushFrequency.Duration.Duration; d < 0 {
		c.addProblem("logging.flushFrequency", "%s is negative", d)
	}
	if l.Format == "json" {
		c.requireGate("logging.format", beta)
	}
	for field, used := range map[string]bool{
		"json.infoBufferSize": !l.Options.JSON.InfoBufferSize.IsZero(), "json.splitStream": l.Options.JSON.SplitStream,
		"text.infoBufferSize": !l.Options.Text.InfoBufferSize.IsZero(), "text.splitStream": l.Options.Text.SplitStream,
	} {
		if used {
			c.requireGate("logging.options."+field, alpha)
		}
	}
	if len(l.VModule) > 0 && l.Format != "" && l.Format != "text" {
		c.addConflict("logging.vmodule", "logging.format", "logging.vmodule needs logging.format: text")
	}
	for i, module := range l.VModule {
		if module.FilePattern == "" || strings.ContainsAny(module.FilePattern, "=,") {
			c.addProblem(
				fmt.Sprintf("logging.vmodule[%d].filePattern", i), "%q is empty, or has an equals sign or a comma",
				module.FilePattern,
			)
		}
	}
}
