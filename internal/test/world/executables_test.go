package world

import (
	"context"
	"io"
	"path/filepath"

	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/internal/hostsim"
	"wmco/payload"
	"wmco/payload/store"
)

// payloadFolder has the executables that operators are given.
var payloadFolder = filepath.Join(root, "golden", "payload")

// executables are those of payloadFolder. Every new host has them.
var executables payloads

type payloads struct {
	set      payload.Set
	contents *archive.Contents
	// files are what nodes of the example cluster have, by their paths.
	files map[string][]byte
}

// readPayload reads all of the folder.
func readPayload() (payloads, error) {
	s, err := store.Open(payloadFolder)
	if err != nil {
		return payloads{}, err
	}
	p := payloads{set: s.Set(), contents: archive.NewContents(s.Source()), files: map[string][]byte{}}
	for _, b := range p.set.For(payload.TestedKubernetes).Built {
		if !payload.Find(b.Name).Serves(bundle.PlatformNone) {
			continue
		}
		path := payload.Find(b.Name).Path
		if b.Name == payload.Agent {
			path = payload.AgentPath(b.Digest)
		}
		if p.files[path], err = readRaw(s, b.Name); err != nil {
			return payloads{}, err
		}
	}
	return p, nil
}

func readRaw(s *store.Store, name string) ([]byte, error) {
	r, err := s.OpenRaw(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// put writes them to a host, as if they had been copied there.
func (p payloads) put(ctx context.Context, h *hostsim.Memory) error {
	for path, data := range p.files {
		if err := h.WriteFile(ctx, path, bundle.AccessUsers, data); err != nil {
			return err
		}
	}
	return nil
}
