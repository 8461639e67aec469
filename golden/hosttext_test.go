package golden

import (
	"cmp"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/internal/hostsim/simulation"
)

// seenHost is a host as observed.txt shows it.
type seenHost struct {
	HostName     string
	NextHostName string
	// Files by path: kind, access and digest. Of files that only administrators read, the digest is the keyed one.
	Files    map[string]string
	Services map[string]seenService
	Settings map[string]string
	Networks []string
	// Records are the numbers of files that the applier keeps; of contents, which ones it keeps.
	Records map[string]string
}

type seenService struct {
	Status       plan.ServiceStatus
	Start        bundle.StartType
	CommandLine  string
	Description  string
	Dependencies string
	Environment  []string
	Recovery     string
}

func (h *host) seen(t testing.TB) seenHost {
	t.Helper()
	snap := h.Snapshot()
	s := seenHost{
		HostName: snap.HostName, NextHostName: snap.NextHostName, Files: map[string]string{}, Services: map[string]seenService{},
		Settings: map[string]string{}, Records: map[string]string{},
	}
	records, contents := map[string]int{}, map[string]bool{}
	for path, f := range snap.Files {
		if name, ours := strings.CutPrefix(path, plan.StateFolder+`\`); ours {
			folder, inside := recordName(name)
			if sum, _, _ := strings.Cut(inside, "-"); folder == `contents\*` {
				contents[sum] = true
			} else {
				records[folder]++
			}
			continue
		}
		if f.Access == bundle.AccessAdmins {
			text, _ := h.Contents(path)
			f.Digest = key.Of([]byte(text))
		}
		s.Files[path] = fileLine(f)
	}
	for name, n := range records {
		s.Records[name] = fmt.Sprint(n)
	}
	h.addContents(t, s.Records, contents)
	for _, x := range snap.Services {
		s.Services[x.Name] = h.seenService(x.ServiceConfig, x.Status)
	}
	for _, x := range snap.Settings {
		s.Settings[string(x.ID())] = h.settingLine(x)
	}
	for _, n := range snap.Facts.Networks {
		s.Networks = append(s.Networks, n.Name)
	}
	return s
}

// recordName joins the files of a folder, which are named by their digests.
func recordName(name string) (folder, inside string) {
	folder, inside, isInside := strings.Cut(name, `\`)
	if isInside {
		return folder + `\*`, inside
	}
	return folder, ""
}

// addContents adds to the records which contents are kept, by their sums: how many of this bundle, and how many others.
func (h *host) addContents(t testing.TB, records map[string]string, kept map[string]bool) {
	t.Helper()
	manifest, err := h.wanted.Manifest.Encode()
	must(t, err)
	missing, present := 0, 0
	for _, c := range h.wanted.Source.Contents() { // of all executables of a release
		switch {
		case !strings.Contains(string(manifest), string(c.Digest)):
		case kept[c.SHA256]:
			present++
		default:
			missing++
		}
	}
	if others := len(kept) - present; others > 0 {
		records["contents of other bundles"] = fmt.Sprint(others)
	}
	switch {
	case missing == 0:
		records["contents of this bundle"] = "all"
	case missing < present:
		records["contents of this bundle"] = fmt.Sprint("all but ", missing)
	case present > 0:
		records["contents of this bundle"] = fmt.Sprint(present)
	}
}

func fileLine(f simulation.FileSnapshot) string {
	if f.Kind != plan.FileRegular {
		return fmt.Sprintf("%s %s", f.Kind, f.Access)
	}
	return fmt.Sprintf("%s %s %s", f.Kind, f.Access, f.Digest.Short())
}

func (h *host) seenService(c plan.ServiceConfig, status plan.ServiceStatus) seenService {
	s := seenService{
		Status: status, Start: c.Start, CommandLine: c.CommandLine, Description: c.Description,
		Dependencies: strings.Join(c.Dependencies, " "),
	}
	if len(c.Recovery.RestartAfterSeconds) > 0 {
		s.Recovery = fmt.Sprintf("after %v s, reset %d s", c.Recovery.RestartAfterSeconds, c.Recovery.ResetSeconds)
	}
	for _, line := range c.Environment {
		s.Environment = append(s.Environment, h.masked(line))
	}
	return s
}

func (h *host) settingLine(x plan.Setting) string {
	text := h.masked(x.Value)
	if x.Kind == bundle.KindTrustedCA {
		if c, err := x509.ParseCertificate([]byte(x.Value)); err == nil {
			text = c.Subject.String()
		}
	}
	text = cmp.Or(text, "on")
	switch {
	case x.Pending && x.Present:
		text += " (after the next boot)"
	case x.Pending:
		text += " (until the next boot)"
	}
	return text
}

// lines returns the host as one text for each property.
func (s seenHost) lines() map[string]string {
	all := map[string]string{"host name": s.HostName}
	if s.NextHostName != "" {
		all["host name after the next boot"] = s.NextHostName
	}
	for path, text := range s.Files {
		all["file "+path] = text
	}
	for id, text := range s.Settings {
		all["setting "+id] = text
	}
	for name, x := range s.Services {
		x.addLines(all, "service "+name)
	}
	for _, n := range s.Networks {
		all["network "+n] = "exists"
	}
	return all
}

// text returns the host as observed.txt.
func (s seenHost) text() string {
	lines := s.lines()
	for name, n := range s.Records {
		lines["record "+name] = n
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		fmt.Fprintf(&out, "%s: %s\n", name, lines[name])
	}
	return out.String()
}

func (x seenService) addLines(all map[string]string, name string) {
	for field, text := range map[string]string{
		"status": string(x.Status), "start": string(x.Start), "command": x.CommandLine, "description": x.Description,
		"after": x.Dependencies, "environment": strings.Join(x.Environment, " "), "recovery": x.Recovery,
	} {
		if text != "" {
			all[name+" "+field] = text
		}
	}
}

// changed returns the differences between two states of a host.
func changed(before, after seenHost) string {
	a, b := before.lines(), after.lines()
	names := slices.Collect(maps.Keys(b))
	for name := range a {
		if _, ok := b[name]; !ok {
			names = append(names, name)
		}
	}
	var out strings.Builder
	for _, name := range slices.Sorted(slices.Values(names)) {
		old, had := a[name]
		now, has := b[name]
		switch {
		case had && !has:
			fmt.Fprintf(&out, "- %s: %s\n", name, old)
		case !had:
			fmt.Fprintf(&out, "+ %s: %s\n", name, now)
		case old != now:
			fmt.Fprintf(&out, "~ %s: %s -> %s\n", name, old, now)
		}
	}
	return out.String()
}

// planText is an observation for people, with all that its JSON has.
func planText(o protocol.Observation) string {
	var out strings.Builder
	for _, a := range o.Actions {
		line := fmt.Sprintf("%-7s %-75s %-11s %s", a.Verb, a.Entry, a.Reason, a.Impact)
		if a.Size > 0 {
			line += fmt.Sprintf(", %d bytes", a.Size)
		}
		fmt.Fprintln(&out, line)
	}
	fmt.Fprintf(&out, "\nimpact %s\n", o.Impact)
	if o.InSync != (len(o.Actions) == 0) {
		fmt.Fprintf(&out, "in sync: %t\n", o.InSync)
	}
	line := func(name string, values ...string) {
		if len(values) > 0 && values[0] != "" {
			fmt.Fprintf(&out, "%-15s %s\n", name, strings.Join(values, ", "))
		}
	}
	line("applied", o.Applied.Short())
	line("interrupted", o.Interrupted.Short())
	line("restarts", o.Restarts...)
	for _, m := range o.Missing {
		line("missing", strings.TrimSuffix(fmt.Sprint(m.Digest.Short(), " parts ", m.Parts), " parts []"))
	}
	for _, path := range o.Foreign {
		line("foreign", path)
	}
	for _, id := range o.Adopt {
		line("adopted", string(id))
	}
	for _, id := range o.RebootPending {
		line("reboot pending", string(id))
	}
	for _, id := range o.Waiting {
		line("waiting", string(id))
	}
	for _, n := range o.Notes {
		line("note", n)
	}
	for _, u := range o.Unhealthy {
		line("unhealthy", u.Service+": "+u.Reason)
	}
	return out.String()
}

// planFile is the name of what planJSON returns.
const planFile = "plan.json"

// planJSON is an observation as the node agent prints it, without facts, which are in the inputs.
func planJSON(t testing.TB, o protocol.Observation) []byte {
	t.Helper()
	data, err := json.MarshalIndent(struct {
		protocol.Observation
		Facts *bundle.Facts `json:"facts,omitempty"`
	}{Observation: o}, "", "  ")
	must(t, err)
	return append(data, '\n')
}
