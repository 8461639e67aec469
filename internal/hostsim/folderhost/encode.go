package folderhost

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/internal/hostsim/simulation"
)

// settingFiles returns the files of the settings by kind. Certificates are files of their own, and the host name is in
// the document of the host.
func settingFiles() map[bundle.EntryKind]string {
	files := map[bundle.EntryKind]string{}
	for _, k := range bundle.Kinds() {
		if k.Setting && k.Kind != bundle.KindTrustedCA && k.Kind != bundle.KindHostName {
			files[k.Kind] = dirMachine + "/" + k.Plural + ".json"
		}
	}
	return files
}

// machine is the document of the host itself.
type machine struct {
	HostName     string    `json:"hostName"`
	NextHostName string    `json:"nextHostName,omitempty"`
	RebootAsked  string    `json:"rebootAsked,omitempty"`
	Boot         int       `json:"boot"`
	BootTime     time.Time `json:"bootTime"`
	LastProcess  int       `json:"lastProcess"`
	// RemovedAtBoot are files that the next boot removes.
	RemovedAtBoot []string `json:"removedAtBoot,omitempty"`
}

// setting is a setting in a file of its kind. Removed is true for one that the next boot removes.
type setting struct {
	Name    string `json:"name"`
	Value   string `json:"value,omitempty"`
	Pending bool   `json:"pending,omitempty"`
	Removed bool   `json:"removed,omitempty"`
}

// encode returns the documents of a state by their path below the root of the host.
func encode(s *simulation.State) (map[string][]byte, error) {
	values := map[string]any{
		fileMachine:   machine{s.HostName, s.NextHostName, s.RebootAsked, s.Boot, s.BootTime.UTC(), s.LastProcess, s.RemovedAtBoot},
		fileFacts:     s.Facts,
		fileProcesses: s.Processes,
		fileBehaviour: s.Script,
	}
	if len(s.Live) > 0 {
		values[fileLive] = s.Live
	}
	for key, svc := range s.Services {
		values[dirServices+"/"+url.PathEscape(key)+".json"] = svc
	}
	for kind, rel := range settingFiles() {
		values[rel] = settingsOf(s, kind)
	}
	documents := make(map[string][]byte, len(values))
	for rel, v := range values {
		data, err := marshal(v)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", rel, err)
		}
		documents[rel] = data
	}
	for _, x := range s.Settings {
		if x.Kind == bundle.KindTrustedCA {
			documents[dirCertificates+"/"+strings.ReplaceAll(x.Name, ":", "-")+".der"] = []byte(x.Value)
		}
	}
	return documents, nil
}

func settingsOf(s *simulation.State, kind bundle.EntryKind) []setting {
	all := []setting{}
	for _, x := range s.Settings {
		if x.Kind == kind {
			all = append(all, setting{Name: x.Name, Value: x.Value, Pending: x.Pending, Removed: !x.Present})
		}
	}
	slices.SortFunc(all, func(a, b setting) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

func marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return out.Bytes(), err
}

// errMachine is the error of a folder that Create did not make.
var errMachine = errors.New("the folder has no " + fileMachine)

// decode reads a state from its documents.
func decode(documents map[string][]byte) (*simulation.State, error) {
	if documents[fileMachine] == nil {
		return nil, fmt.Errorf("reading the state: %w", errMachine)
	}
	var m machine
	s := &simulation.State{Services: map[string]simulation.Service{}, Settings: map[string]plan.Setting{}}
	for rel, v := range map[string]any{
		fileMachine: &m, fileFacts: &s.Facts, fileProcesses: &s.Processes, fileBehaviour: &s.Script, fileLive: &s.Live,
	} {
		if err := unmarshal(documents, rel, v); err != nil {
			return nil, err
		}
	}
	s.HostName, s.NextHostName, s.RebootAsked = m.HostName, m.NextHostName, m.RebootAsked
	s.Boot, s.BootTime, s.LastProcess, s.RemovedAtBoot = m.Boot, m.BootTime, m.LastProcess, m.RemovedAtBoot
	if err := decodeServices(s, documents); err != nil {
		return nil, err
	}
	return s, decodeSettings(s, documents)
}

func decodeServices(s *simulation.State, documents map[string][]byte) error {
	for rel := range documents {
		if path.Dir(rel) != dirServices {
			continue
		}
		var svc simulation.Service
		if err := unmarshal(documents, rel, &svc); err != nil {
			return err
		}
		s.Services[simulation.Key(svc.Name)] = svc
	}
	return nil
}

func decodeSettings(s *simulation.State, documents map[string][]byte) error {
	for kind, rel := range settingFiles() {
		var all []setting
		if err := unmarshal(documents, rel, &all); err != nil {
			return err
		}
		for _, x := range all {
			s.Put(plan.Setting{Kind: kind, Name: x.Name, Value: x.Value, Pending: x.Pending, Present: !x.Removed})
		}
	}
	for rel, data := range documents {
		if path.Dir(rel) == dirCertificates {
			s.Put(plan.Setting{Kind: bundle.KindTrustedCA, Name: string(bundle.Of(data)), Value: string(data), Present: true})
		}
	}
	return nil
}

// unmarshal decodes a document strictly. A missing one leaves v as it is.
func unmarshal(documents map[string][]byte, rel string, v any) error {
	data, ok := documents[rel]
	if !ok {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("reading %s: %w", rel, err)
	}
	return nil
}
