package main

import (
	"context"
	"fmt"
	"os"

	"wmco/bundle"
	"wmco/bundle/archive"
)

// writeArchive writes what `wmco-node apply` reads: the manifest and every content. Secrets are in it in clear.
func (f *renderFlags) writeArchive(ctx context.Context, a app, r rendered) error {
	m, err := r.bundle.Manifest()
	if err != nil {
		return err
	}
	contents, err := newSources(f.payload)
	if err != nil {
		return err
	}
	source, err := contents.of(r)
	if err != nil {
		return err
	}
	all := map[bundle.Digest][]int{}
	for _, d := range archive.Needs(m) {
		all[d] = nil
	}
	request := archive.Request{Manifest: m, Source: source, Missing: all}
	if f.archive == "-" {
		return archive.Send(ctx, a.stdout, request)
	}
	out, err := os.OpenFile(f.archive, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, modeSecret)
	if err != nil {
		return usageError("writing the archive: %w", err)
	}
	if err := archive.Send(ctx, out, request); err != nil {
		_ = out.Close()
		return fmt.Errorf("writing the archive: %w", err)
	}
	return out.Close()
}
