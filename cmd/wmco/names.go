package main

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// programName is the name of the program where it is called by no other.
const programName = "wmco"

// pluginName is the name of the plugin of kubectl and oc: kubectl windows.
const pluginName = "windows"

// calledAs returns the program's name for usage texts, by the name that it is called by, and what comes
// before the arguments.
//
//	wmco                      wmco ...
//	kubectl-windows           kubectl windows ...          a plugin of kubectl, which oc finds too
//	oc-windows                oc windows ...
//	kubectl_complete-windows  completes kubectl windows    kubectl asks it with the words so far
//	gather                    wmco gather --since=...      the entry point of must-gather images, told by variables how far back to go
func calledAs(program string, variable func(name string) string) (name string, before []string) {
	base := strings.TrimSuffix(filepath.Base(program), ".exe")
	host, plugin, found := strings.Cut(base, "-")
	switch tool, completes := strings.CutSuffix(host, "_complete"); {
	case base == "gather":
		before = []string{"gather"}
		for _, f := range sinceFlags() {
			if value := variable(f.variable); value != "" {
				before = append(before, "--"+f.flag+"="+value)
			}
		}
		return programName, before
	case found && plugin == pluginName && completes:
		return tool + " " + pluginName, []string{"__complete"}
	case found && plugin == pluginName:
		return host + " " + pluginName, nil
	}
	return programName, nil
}

// callIt gives usage texts and examples the name that the program is called by.
func callIt(root *cobra.Command, name string) {
	if name == programName {
		return
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: name}
	rename := strings.NewReplacer(programName+" ", name+" ")
	for _, c := range root.Commands() {
		c.Example = rename.Replace(c.Example)
		for _, below := range c.Commands() {
			below.Example = rename.Replace(below.Example)
		}
	}
}
