package consumers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
)

// checkExecutables reads the list of executables as the node agent does (payload/sources), and the names in it as registries do.
func checkExecutables(_ context.Context, contents []byte, _ Options) error {
	type blob struct {
		Digest digest.Digest `json:"digest"`
		Size   int64         `json:"size"`
	}
	var list struct {
		Schema  int           `json:"schema"`
		Payload digest.Digest `json:"payload"`
		Image   struct{ Registry, Repository, Digest string }
		Places  []struct {
			Registry, Repository, Auth string
			Insecure                   bool
		}
		BytesPerSecond int64 `json:"bytesPerSecond"`
		Executables    []struct {
			Name        string
			Raw, Stored blob
		}
	}
	in := json.NewDecoder(bytes.NewReader(contents))
	in.DisallowUnknownFields()
	if err := in.Decode(&list); err != nil {
		return err
	}
	names := []string{list.Image.Registry + "/" + list.Image.Repository + "@" + list.Image.Digest}
	for _, p := range list.Places {
		names = append(names, p.Registry+"/"+p.Repository)
		if p.Auth != "" && p.Auth != masked {
			return errors.New("credentials must be masked")
		}
	}
	for _, name := range names {
		if _, err := reference.ParseNamed(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	digests := []digest.Digest{list.Payload}
	for _, x := range list.Executables {
		digests = append(digests, x.Raw.Digest, x.Stored.Digest)
		if x.Name == "" || x.Raw.Size <= 0 || x.Stored.Size <= 0 {
			return fmt.Errorf("executable %q has no name or size", x.Name)
		}
	}
	for _, d := range digests {
		if err := d.Validate(); err != nil {
			return fmt.Errorf("%s: %w", d, err)
		}
	}
	if len(list.Places) == 0 || len(list.Executables) == 0 {
		return errors.New("nothing can be fetched")
	}
	return nil
}
