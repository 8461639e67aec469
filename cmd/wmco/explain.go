package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/bundle/reason"
	"wmco/internal/cli"
	"wmco/render"
)

// explanation is the answer of `wmco explain -o json`. It is of a reason or of settings.
type explanation struct {
	Reason string `json:"reason,omitempty"`
	// Severity is that of a finding; empty for a reason in a status or of an Event.
	Severity string `json:"severity,omitempty"`
	Meaning  string `json:"meaning,omitempty"`
	Fix      string `json:"fix,omitempty"`
	// Page is the URL of the page about it in the release; empty in a build that is not a release.
	Page string `json:"page,omitempty"`
	// where the reason is: the severity of its findings, status or event.
	where string
	// Settings are the one that was asked for, or all of a group such as rollout.
	Settings []render.SettingDoc `json:"settings,omitempty"`
}

func explainCommand(a app) *cobra.Command {
	var f cli.Format
	cmd := &cobra.Command{
		Use:   "explain [REASON|SETTING]",
		Short: "Explain a reason (of a finding, condition or Event) or a setting",
		Long: "Explain a reason (of a finding, of a host, node or condition in the status, or of an Event) and its fix, or a setting of\n" +
			"windows-machine-config and its default. A group such as rollout prints all of its settings. Without an argument, all\n" +
			"reasons and settings are listed. No cluster is contacted." + cli.ExitHelp("0  done", "2  invalid usage, or neither a reason nor a setting"),
		Example: "  wmco explain NodeImageUnreachable\n  wmco explain HostKeyChanged\n  wmco explain rollout.maxUnavailable\n  wmco explain logs",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listExplainable(a, f)
			}
			return explainWord(a, f, args[0])
		},
	}
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return explainableWords(), cobra.ShellCompDirectiveNoFileComp
	}
	cli.AddFormat(cmd, &f, cli.Text, cli.JSON)
	return cmd
}

// explainableWords are all reasons and settings.
func explainableWords() []string {
	var names []string
	for _, e := range reason.All() {
		names = append(names, e.Reason)
	}
	return append(names, render.SettingNames()...)
}

// listExplainable lists all words, as `kubectl api-resources` lists kinds.
func listExplainable(a app, f cli.Format) error {
	words := slices.Sorted(slices.Values(explainableWords()))
	if words = slices.Compact(words); f == cli.JSON {
		return cli.WriteJSON(a.stdout, words)
	}
	cli.Printf(a.stdout, "%s\n", cli.Ready(strings.Join(words, "\n")))
	return nil
}

func explainWord(a app, f cli.Format, name string) error {
	x, ok, err := lookUpExplanation(name)
	switch {
	case err != nil:
		return err
	case !ok:
		return cli.UsageError("%s is neither a reason nor a setting%s", name, bundle.DidYouMean(name, explainableWords()))
	}
	x.Page = published.Pages(sourceTree).ReasonURL(x.Reason)
	if f == cli.JSON {
		return cli.WriteJSON(a.stdout, x)
	}
	if x.Reason != "" {
		cli.Printf(a.stdout, "%s (%s)\n", palette{a.color}.bold(x.Reason), x.where)
		cli.Printf(a.stdout, "%s\n%s\n", cli.Ready(cli.Wrap("  "+x.Meaning, "  ")), cli.Ready(cli.Wrap("  fix: "+x.Fix, "       ")))
		if x.Page != "" {
			cli.Printf(a.stdout, "  see %s\n", x.Page)
		}
	}
	for i, s := range x.Settings {
		if i > 0 {
			cli.Printf(a.stdout, "\n")
		}
		cli.Printf(a.stdout, "%s (default %s)\n", palette{a.color}.bold(s.Name), s.Default)
		cli.Printf(a.stdout, "%s\n", cli.Ready(cli.Wrap("  "+linksAsCommands(s.Meaning), "  ")))
	}
	return nil
}

// pageLink is a link of a text for the pages of docs.
var pageLink = regexp.MustCompile(`\[([^\]]+)\]\(([\w/-]+)\.md(?:#[^)]*)?\)`)

// linksAsCommands replaces links to pages by the command that prints the page.
func linksAsCommands(text string) string {
	return pageLink.ReplaceAllStringFunc(text, func(link string) string {
		m := pageLink.FindStringSubmatch(link)
		if m[1] == m[2]+".md" {
			return "wmco docs " + m[2]
		}
		return m[1] + " (wmco docs " + m[2] + ")"
	})
}

// lookUpExplanation looks a reason or a setting up, whatever the case of its letters.
func lookUpExplanation(name string) (x explanation, ok bool, err error) {
	if e, where, ok := reason.Find(name); ok {
		return explanation{
			Reason: e.Reason, Severity: e.Severity, Meaning: linksAsCommands(e.Meaning), Fix: linksAsCommands(e.Fix), where: where,
		}, true, nil
	}
	docs, err := render.SettingDocs()
	for _, d := range docs {
		if strings.EqualFold(d.Name, name) || strings.HasPrefix(strings.ToLower(d.Name), strings.ToLower(name)+".") {
			x.Settings = append(x.Settings, d)
		}
	}
	if d, ok := render.KubeletFieldDoc(name); ok && len(x.Settings) == 0 {
		x.Settings = append(x.Settings, d)
	}
	return x, len(x.Settings) > 0, err
}
