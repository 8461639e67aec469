package golden

import (
	"slices"
	"strings"
	"testing"

	"wmco/applier"
	"wmco/applier/hosttest/simulation"
	"wmco/bundle"
	"wmco/internal/golden"
)

// edit is one thing that somebody else did to a machine. Exactly one of its fields is set.
type edit struct {
	// Place writes a file in place, as an editor does.
	Place *placed `json:"place,omitempty"`
	// Ours are files that hold what the case's bundle wants there.
	Ours *ours `json:"ours,omitempty"`
	// CRLF gives a file the line endings of Windows, BOM a byte order mark.
	CRLF string `json:"crlf,omitempty"`
	BOM  string `json:"bom,omitempty"`
	// Folder and Link are paths at which one of these comes to stand, in place of what is there.
	Folder string `json:"folder,omitempty"`
	Link   string `json:"link,omitempty"`
	// Discard removes a file or a folder with all that is in it.
	Discard string  `json:"discard,omitempty"`
	Access  *access `json:"access,omitempty"`
	// Stop, Disable and Delete are names of services.
	Stop    string `json:"stop,omitempty"`
	Disable string `json:"disable,omitempty"`
	Delete  string `json:"delete,omitempty"`
	// Service makes a service, or changes the fields that are given.
	Service *service `json:"service,omitempty"`
	// Start starts a service.
	Start string `json:"start,omitempty"`
	// Set and Unset change a setting of the machine.
	Set   *setting `json:"set,omitempty"`
	Unset *setting `json:"unset,omitempty"`
	// TrustCA is the text of a certificate.
	TrustCA string `json:"trustCA,omitempty"`
	// CAsOf trusts those of a bundle.
	CAsOf *golden.Case `json:"casOf,omitempty"`
	// Network makes an HNS network, as hybrid-overlay-node does.
	Network string `json:"network,omitempty"`
	// Run starts a program that belongs to no service.
	Run string `json:"run,omitempty"`
	// Boot boots the machine.
	Boot bool `json:"boot,omitempty"`
}

type placed struct {
	Path   string        `json:"path"`
	Text   string        `json:"text"`
	Access bundle.Access `json:"access,omitempty"`
}

type ours struct {
	Paths  []string      `json:"paths"`
	Access bundle.Access `json:"access,omitempty"`
}

type access struct {
	Path   string        `json:"path"`
	Access bundle.Access `json:"access"`
}

type service struct {
	Name         string           `json:"name"`
	CommandLine  string           `json:"commandLine,omitempty"`
	Description  string           `json:"description,omitempty"`
	Start        bundle.StartType `json:"start,omitempty"`
	Dependencies []string         `json:"dependencies,omitempty"`
	Environment  []string         `json:"environment,omitempty"`
}

type setting struct {
	Kind  bundle.EntryKind `json:"kind"`
	Name  string           `json:"name"`
	Value string           `json:"value,omitempty"`
}

func (e edit) do(t testing.TB, m *machine) {
	t.Helper()
	switch {
	case e.CAsOf != nil:
		m.trust(t, ship(t, m.dir, *e.CAsOf))
	case e.Place != nil:
		m.Place(e.Place.Path, orUsers(e.Place.Access), e.Place.Text)
	case e.Ours != nil:
		m.placeOurs(t, *e.Ours)
	case e.CRLF != "":
		m.rewrite(t, e.CRLF, func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") })
	case e.BOM != "":
		m.rewrite(t, e.BOM, func(text string) string { return "\ufeff" + text })
	case e.Folder != "":
		m.Discard(e.Folder)
		m.PlaceFolder(e.Folder)
	case e.Link != "":
		m.Discard(e.Link)
		m.PlaceLink(e.Link)
	case e.Discard != "":
		m.Discard(e.Discard)
	case e.Access != nil:
		m.SetAccess(e.Access.Path, e.Access.Access)
	case e.Run != "":
		_, err := m.StartProcess(t.Context(), e.Run)
		must(t, err)
	case e.Boot:
		m.boot(t)
	case e.Start != "":
		must(t, m.StartService(t.Context(), e.Start))
	default:
		must(t, m.Edit(t.Context(), func(s *simulation.State) { e.change(t, s) }))
	}
}

// change is an edit of what is no file.
func (e edit) change(t testing.TB, s *simulation.State) {
	switch {
	case e.Stop != "":
		halt(s, e.Stop, "")
	case e.Disable != "":
		halt(s, e.Disable, applier.StartDisabled)
	case e.Delete != "":
		delete(s.Services, simulation.Key(e.Delete))
	case e.Service != nil:
		e.Service.put(s)
	case e.Set != nil:
		s.Put(applier.Setting{Kind: e.Set.Kind, Name: e.Set.Name, Value: e.Set.Value, Present: true})
	case e.Unset != nil:
		delete(s.Settings, simulation.SettingKey(e.Unset.Kind, e.Unset.Name))
	case e.TrustCA != "":
		trust(s, []byte(e.TrustCA))
	case e.Network != "":
		s.Facts.Networks = append(slices.Clip(s.Facts.Networks), bundle.HNSNetwork{Name: e.Network, AddressPrefix: "10.132.0.0/24"})
	default:
		t.Error("an edit says nothing")
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func orUsers(a bundle.Access) bundle.Access {
	if a == "" {
		return bundle.AccessUsers
	}
	return a
}

func (m *machine) placeOurs(t testing.TB, o ours) {
	t.Helper()
	for _, path := range o.Paths {
		data, err := m.wanted.content(path)
		must(t, err)
		m.Place(path, orUsers(o.Access), string(data))
	}
}

// trust is as the existing operator left it.
func (m *machine) trust(t testing.TB, s shipment) {
	t.Helper()
	must(t, m.Edit(t.Context(), func(state *simulation.State) {
		for _, c := range s.Bundle.Cluster.TrustedCAs {
			trust(state, c.Content.Data)
		}
	}))
}

// rewrite changes a file in place and leaves its access.
func (m *machine) rewrite(t testing.TB, path string, change func(string) string) {
	t.Helper()
	text, ok := m.Contents(path)
	if !ok {
		t.Fatalf("%s is not there", path)
	}
	infos, err := m.Stat(t.Context(), []string{path})
	must(t, err)
	m.Place(path, infos[0].Access, change(text))
}

// halt stops a service and gives it a start type, if there is one.
func halt(s *simulation.State, name string, start bundle.StartType) {
	x := s.Services[simulation.Key(name)]
	x.Status, x.Processes = applier.ServiceStopped, nil
	if start != "" {
		x.Start = start
	}
	s.Services[simulation.Key(name)] = x
}

func (c service) put(s *simulation.State) {
	x, ok := s.Services[simulation.Key(c.Name)]
	if !ok {
		x.Name, x.Start, x.Status, x.Boot = c.Name, bundle.StartAuto, applier.ServiceStopped, s.Boot
	}
	if c.CommandLine != "" {
		x.CommandLine = c.CommandLine
	}
	if c.Description != "" {
		x.Description = c.Description
	}
	if c.Start != "" {
		x.Start = c.Start
	}
	if c.Dependencies != nil {
		x.Dependencies = c.Dependencies
	}
	if c.Environment != nil {
		x.Environment = slices.Sorted(slices.Values(c.Environment))
	}
	s.Services[simulation.Key(c.Name)] = x
}

func trust(s *simulation.State, der []byte) {
	s.Put(applier.Setting{Kind: bundle.KindTrustedCA, Name: string(bundle.Of(der)), Value: string(der), Present: true})
}
