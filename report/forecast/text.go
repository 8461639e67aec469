package forecast

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"wmco/bundle"
	"wmco/controller/rollout/plan"
)

// IsEmpty reports whether there is nothing to say: no node changes, and nothing is unknown.
func (f Forecast) IsEmpty() bool { return f.Nodes+f.WindowsBoots+len(f.Left)+len(f.Notes) == 0 }

// Batch are nodes whose turns begin together. Node and Ends are those of the first one.
type Batch struct {
	plan.Change
	Nodes []string
}

// Batches returns the turns, those that begin together as one.
func (f Forecast) Batches() []Batch {
	var list []Batch
	for _, c := range f.Order {
		if n := len(list); n > 0 && list[n-1].Begins == c.Begins && list[n-1].Impact == c.Impact &&
			list[n-1].Canary == c.Canary && list[n-1].Windows == c.Windows {
			list[n-1].Nodes = append(list[n-1].Nodes, c.Node)
			continue
		}
		list = append(list, Batch{Change: c, Nodes: []string{c.Node}})
	}
	return list
}

// maxBatches is how many turns are shown to people.
const maxBatches = 10

// Summary is the forecast in one line.
func (f Forecast) Summary() string {
	line := "no node changes"
	if f.Nodes > 0 {
		line = fmt.Sprintf(
			"%s: restart services on %d, drain %d, reboot %d of them", pluralSuffix(f.Nodes), f.Restarts, f.Drains,
			f.Boots,
		)
	}
	if f.WindowsBoots > 0 {
		line += fmt.Sprintf("; drain and reboot %s, as Windows needs a reboot", bundle.Count(f.WindowsBoots, "node"))
	}
	if f.Nodes+f.WindowsBoots == 0 {
		return line
	}
	return line + "; " + f.durationText()
}

func pluralSuffix(n int) string {
	if n == 1 {
		return "1 node changes"
	}
	return fmt.Sprintf("%d nodes change", n)
}

// durationText returns how long it takes.
func (f Forecast) durationText() string {
	if len(f.Unmeasured) == 0 {
		return "about " + f.Takes.String() + ", from earlier updates in this cluster"
	}
	var impacts []string
	for _, i := range f.Unmeasured {
		impacts = append(impacts, string(i))
	}
	text := "no measured update with impact " + strings.Join(impacts, " or ") + " in this cluster yet"
	if f.Takes == 0 {
		return "duration unknown: " + text
	}
	return "at least " + f.Takes.String() + ": " + text
}

// waitingNodes groups the nodes that do not get the change by what they wait for.
func (f Forecast) waitingNodes() (messages []string, nodes map[string][]string) {
	nodes = map[string][]string{}
	for _, s := range f.Left {
		if nodes[s.Message] == nil {
			messages = append(messages, s.Message)
		}
		nodes[s.Message] = append(nodes[s.Message], s.Node)
	}
	return messages, nodes
}

// Text is the forecast for a terminal.
func (f Forecast) Text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "rollout: %s\n", f.Summary())
	batches := f.Batches()
	for _, b := range batches[:min(len(batches), maxBatches)] {
		fmt.Fprintf(&out, "  %-9s %-7s  %s\n", "+"+b.Begins.String(), b.Impact, firstNames(b.Nodes, plainName)+b.roleText())
	}
	if more := len(batches) - maxBatches; more > 0 {
		fmt.Fprintf(&out, "  and %s\n", bundle.Count(more, "more update"))
	}
	messages, nodes := f.waitingNodes()
	for _, m := range messages {
		fmt.Fprintf(&out, "  not changed: %s: %s\n", firstNames(nodes[m], plainName), m)
	}
	for _, n := range f.Notes {
		fmt.Fprintf(&out, "  note: %s\n", n)
	}
	return out.String()
}

func (b Batch) roleText() string {
	if b.Windows {
		return " (Windows needs a reboot)"
	}
	if b.Canary {
		return map[bool]string{true: " (canary)", false: " (canaries)"}[len(b.Nodes) == 1]
	}
	return ""
}

// Markdown is the forecast as a part of a comment of a pull request.
func (f Forecast) Markdown() string {
	var out strings.Builder
	fmt.Fprintf(&out, "\n### Rollout\n\n%s.\n", capitalized(f.Summary()))
	batches := f.Batches()
	if len(batches) > 0 {
		out.WriteString("\n| begins after | nodes | impact |\n|---|---|---|\n")
	}
	for _, b := range batches[:min(len(batches), maxBatches)] {
		fmt.Fprintf(&out, "| %s | %s%s | %s |\n", b.Begins, firstNames(b.Nodes, codeSpan), b.roleText(), b.Impact)
	}
	if more := len(batches) - maxBatches; more > 0 {
		fmt.Fprintf(&out, "| | and %s | |\n", bundle.Count(more, "more update"))
	}
	messages, nodes := f.waitingNodes()
	if len(messages)+len(f.Notes) > 0 {
		out.WriteString("\n")
	}
	for _, m := range messages {
		fmt.Fprintf(&out, "* not changed: %s: %s\n", firstNames(nodes[m], codeSpan), escapeMarkup(m))
	}
	for _, n := range f.Notes {
		fmt.Fprintf(&out, "* note: %s\n", escapeMarkup(n))
	}
	return out.String()
}

func codeSpan(name string) string { return "`" + name + "`" }

func capitalized(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// escapeMarkup keeps text of objects and nodes from being read as markup.
func escapeMarkup(text string) string {
	return strings.NewReplacer(
		"&", "&amp;", "<", "&lt;", ">", "&gt;", "|", "\\|", "`", "\\`", "*", "\\*", "[", "\\[", "\n", " ",
	).Replace(text)
}

// turnJSON is a turn as programs read it.
type turnJSON struct {
	Node   string        `json:"node"`
	Impact bundle.Impact `json:"impact"`
	Canary bool          `json:"canary,omitempty"`
	// Windows is true where the host boots for what Windows itself waits for.
	Windows bool  `json:"windows,omitempty"`
	Begins  int64 `json:"beginsSeconds"`
	Ends    int64 `json:"endsSeconds"`
}

// MarshalJSON writes times in seconds.
func (f Forecast) MarshalJSON() ([]byte, error) {
	turns := []turnJSON{}
	for _, c := range f.Order {
		turns = append(turns, turnJSON{c.Node, c.Impact, c.Canary, c.Windows, seconds(c.Begins), seconds(c.Ends)})
	}
	data, err := json.Marshal(struct {
		Nodes      int             `json:"nodes"`
		Restarts   int             `json:"restarts"`
		Drains     int             `json:"drains"`
		Boots      int             `json:"boots"`
		Windows    int             `json:"windowsBoots,omitempty"`
		Takes      int64           `json:"takesSeconds"`
		Unmeasured []bundle.Impact `json:"unmeasured,omitempty"`
		Order      []turnJSON      `json:"order"`
		Left       []plan.Status   `json:"left,omitempty"`
		Notes      []string        `json:"notes,omitempty"`
	}{f.Nodes, f.Restarts, f.Drains, f.Boots, f.WindowsBoots, seconds(f.Takes), f.Unmeasured, turns, f.Left, f.Notes})
	if err != nil {
		return nil, fmt.Errorf("encoding forecast: %w", err)
	}
	return data, nil
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }
