package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"wmco/bundle"
	"wmco/payload"
	"wmco/payload/store"
)

// writePayload copies a payload of stand-ins, such as golden/payload, with another node agent: one that runs on the
// simulated machines.
func writePayload(from, agent, version, to string) error {
	data, err := os.ReadFile(filepath.Join(from, store.ListFile))
	if err != nil {
		return err
	}
	list, err := store.Decode(data)
	if err != nil {
		return err
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	raw, err := os.ReadFile(agent)
	if err != nil {
		return err
	}
	stored, err := compressProgram(raw)
	if err != nil {
		return err
	}
	for i := range list.Executables {
		if e := &list.Executables[i]; e.Name == payload.Agent {
			e.Raw, e.Stored = blob(raw), blob(stored)
			e.Path, e.Version = payload.AgentPath(e.Raw.Digest), version
		}
	}
	if data, err = list.Encode(); err != nil {
		return fmt.Errorf("listing the payload: %w", err)
	}
	return errors.Join(os.WriteFile(filepath.Join(to, store.FileOf(payload.Agent)), stored, 0o600), os.WriteFile(
		filepath.Join(to, store.ListFile), data, 0o600,
	))
}

func compressProgram(data []byte) ([]byte, error) {
	var out bytes.Buffer
	enc, err := zstd.NewWriter(&out, zstd.WithWindowSize(store.Window))
	if err != nil {
		return nil, err
	}
	_, err = enc.Write(data)
	err = errors.Join(err, enc.Close())
	return out.Bytes(), err
}

func blob(data []byte) store.Blob { return store.Blob{Digest: bundle.Of(data), Size: int64(len(data))} }
