package golden

import (
	"slices"
	"strings"
	"testing"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/internal/golden"
	"wmco/internal/hostsim/simulation"
)

// edit is one change to a host by somebody else. Exactly one of its fields is set.
type edit struct {
	// Place writes a file in place, as an editor does.
	Place *placed `json:"place,omitempty"`
	// Wanted are files that have the contents of the case's bundle.
	Wanted *wanted `json:"wanted,omitempty"`
	// CRLF gives a file the line endings of Windows, BOM a byte order mark.
	CRLF string `json:"crlf,omitempty"`
	BOM  string `json:"bom,omitempty"`
	// Folder and Link replace what is at a path by a folder or a link.
	Folder string `json:"folder,omitempty"`
	Link   string `json:"link,omitempty"`
	// Discard removes a file, or a folder with its contents.
	Discard string  `json:"discard,omitempty"`
	Access  *access `json:"access,omitempty"`
	// Stop, Disable and Delete are names of services.
	Stop    string `json:"stop,omitempty"`
	Disable string `json:"disable,omitempty"`
	Delete  string `json:"delete,omitempty"`
	// Service creates a service, or changes the given fields of one.
	Service *service `json:"service,omitempty"`
	// Start starts a service.
	Start string `json:"start,omitempty"`
	// Set and Unset change a setting of the host.
	Set   *setting `json:"set,omitempty"`
	Unset *setting `json:"unset,omitempty"`
	// TrustCA is the text of a certificate.
	TrustCA string `json:"trustCA,omitempty"`
	// CAsOf trusts the CAs of a bundle. ImportsOf also lists them where the existing operator does.
	CAsOf     *golden.Case `json:"casOf,omitempty"`
	ImportsOf *golden.Case `json:"importsOf,omitempty"`
	// Network creates an HNS network, as hybrid-overlay-node does.
	Network string `json:"network,omitempty"`
	// Run starts a program that belongs to no service.
	Run string `json:"run,omitempty"`
	// Boot boots the host.
	Boot bool `json:"boot,omitempty"`
}

type placed struct {
	Path   string        `json:"path"`
	Text   string        `json:"text"`
	Access bundle.Access `json:"access,omitempty"`
}

type wanted struct {
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

func (e edit) do(t testing.TB, h *host) {
	t.Helper()
	switch {
	case e.CAsOf != nil:
		h.trust(t, h.ship(t, *e.CAsOf))
	case e.ImportsOf != nil:
		h.imports(t, h.ship(t, *e.ImportsOf))
	case e.Place != nil:
		h.Place(e.Place.Path, orUsers(e.Place.Access), e.Place.Text)
	case e.Wanted != nil:
		h.placeWanted(t, *e.Wanted)
	case e.CRLF != "":
		h.rewrite(t, e.CRLF, func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") })
	case e.BOM != "":
		h.rewrite(t, e.BOM, func(text string) string { return "\ufeff" + text })
	case e.Folder != "":
		h.Discard(e.Folder)
		h.PlaceFolder(e.Folder)
	case e.Link != "":
		h.Discard(e.Link)
		h.PlaceLink(e.Link)
	case e.Discard != "":
		h.Discard(e.Discard)
	case e.Access != nil:
		h.SetAccess(e.Access.Path, e.Access.Access)
	case e.Run != "":
		_, err := h.StartProcess(t.Context(), e.Run)
		must(t, err)
	case e.Boot:
		h.boot(t)
	case e.Start != "":
		must(t, h.StartService(t.Context(), e.Start))
	default:
		must(t, h.Edit(t.Context(), func(s *simulation.State) { e.change(t, s) }))
	}
}

// change is an edit of anything but files.
func (e edit) change(t testing.TB, s *simulation.State) {
	switch {
	case e.Stop != "":
		halt(s, e.Stop, "")
	case e.Disable != "":
		halt(s, e.Disable, plan.StartDisabled)
	case e.Delete != "":
		delete(s.Services, simulation.Key(e.Delete))
	case e.Service != nil:
		e.Service.put(s)
	case e.Set != nil:
		s.Put(plan.Setting{Kind: e.Set.Kind, Name: e.Set.Name, Value: e.Set.Value, Present: true})
	case e.Unset != nil:
		delete(s.Settings, simulation.SettingKey(e.Unset.Kind, e.Unset.Name))
	case e.TrustCA != "":
		trust(s, []byte(e.TrustCA))
	case e.Network != "":
		s.Facts.Networks = append(slices.Clip(s.Facts.Networks), bundle.HNSNetwork{Name: e.Network, AddressPrefix: "10.132.0.0/24"})
	default:
		t.Error("an edit has no field")
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

func (h *host) placeWanted(t testing.TB, o wanted) {
	t.Helper()
	for _, path := range o.Paths {
		data, err := h.wanted.content(path)
		must(t, err)
		h.Place(path, orUsers(o.Access), string(data))
	}
}

// trust trusts the CAs of a bundle, as the existing operator does.
func (h *host) trust(t testing.TB, s shipment) {
	t.Helper()
	must(t, h.Edit(t.Context(), func(state *simulation.State) {
		for _, c := range s.Bundle.Cluster.TrustedCAs {
			trust(state, c.Content.Data)
		}
	}))
}

// imports trusts the CAs of a bundle and copies its file of CAs, as the daemon of the existing operator does.
func (h *host) imports(t testing.TB, s shipment) {
	t.Helper()
	h.trust(t, s)
	data, err := s.content(`C:\k\ca-bundle.crt`)
	must(t, err)
	h.Place(`C:\k\imported-certs.pem`, plan.AccessOther, string(data))
}

// rewrite changes a file in place and leaves its access.
func (h *host) rewrite(t testing.TB, path string, change func(string) string) {
	t.Helper()
	text, ok := h.Contents(path)
	if !ok {
		t.Fatalf("%s does not exist", path)
	}
	infos, err := h.Stat(t.Context(), []string{path})
	must(t, err)
	h.Place(path, infos[0].Access, change(text))
}

// halt stops a service and gives it a start type, if there is one.
func halt(s *simulation.State, name string, start bundle.StartType) {
	x := s.Services[simulation.Key(name)]
	x.Status, x.Processes = plan.ServiceStopped, nil
	if start != "" {
		x.Start = start
	}
	s.Services[simulation.Key(name)] = x
}

func (c service) put(s *simulation.State) {
	x, ok := s.Services[simulation.Key(c.Name)]
	if !ok {
		x.Name, x.Start, x.Status, x.Boot = c.Name, bundle.StartAuto, plan.ServiceStopped, s.Boot
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
	s.Put(plan.Setting{Kind: bundle.KindTrustedCA, Name: string(bundle.Of(der)), Value: string(der), Present: true})
}
