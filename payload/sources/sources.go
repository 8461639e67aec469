// Package sources is the list of the executables of a host, and where its node agent fetches them.
package sources

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"

	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/gateway/places"
	"wmco/payload"
)

// File is where a host has the list.
const File = `C:\k\executables.json`

// List is the content of File.
type List struct {
	// Payload is the digest of all executables of the operator for the cluster's minor version (payload.Set), as
	// annotations of Nodes have it.
	Payload bundle.Digest
	// Image is the image of the operator, by digest. It has a layer for each executable.
	Image places.Image
	// Places are where the image is pulled from, in the order in which they are asked. Each has its credentials.
	Places []places.Place
	// Rate is how many bytes per second the host fetches at most; 0 is no limit.
	Rate int64
	// Executables are those that the host needs, sorted by name.
	Executables []Executable
}

// Executable is one executable. Raw is as it is on the host, Stored is the file in the layer, compressed with zstd.
type Executable struct {
	Name        string
	Raw, Stored payload.Blob
}

// RawContent is the executable as the records of a host have it.
func (x Executable) RawContent() archive.Content {
	return archive.Content{Digest: x.Raw.Digest, SHA256: digest.Digest(x.Raw.Digest).Encoded(), Size: x.Raw.Size, Stored: x.Stored.Size}
}

// file is the JSON of a list.
type file struct {
	Schema      int              `json:"schema"`
	Payload     bundle.Digest    `json:"payload"`
	Image       imageJSON        `json:"image"`
	Places      []placeJSON      `json:"places"`
	Rate        int64            `json:"bytesPerSecond,omitempty"`
	Executables []executableJSON `json:"executables"`
}

type imageJSON struct {
	Registry   string `json:"registry"`
	Repository string `json:"repository"`
	Digest     string `json:"digest"`
}

type placeJSON struct {
	Registry   string `json:"registry"`
	Repository string `json:"repository"`
	Insecure   bool   `json:"insecure,omitempty"`
	Auth       string `json:"auth,omitempty"`
}

type executableJSON struct {
	Name   string       `json:"name"`
	Raw    payload.Blob `json:"raw"`
	Stored payload.Blob `json:"stored"`
}

const (
	schema = 1
	// maxFile is the size of the largest file in bytes: a hundred executables and places, with the largest tokens that registries give.
	maxFile = 4 << 20
	what    = "sources of executables"
)

// Encode returns the content of the file, with the credentials in clear. What Decode would refuse is an error.
func (l List) Encode() ([]byte, error) {
	if err := l.checkValues(); err != nil {
		return nil, err
	}
	f := file{Schema: schema, Payload: l.Payload, Image: imageJSON{l.Image.Registry, l.Image.Repository, l.Image.Reference}, Rate: l.Rate}
	for _, p := range l.Places {
		f.Places = append(f.Places, placeJSON{p.Registry, p.Repository, p.Insecure, p.Auth.Reveal()})
	}
	for _, x := range l.Executables {
		f.Executables = append(f.Executables, executableJSON(x))
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(f); err != nil {
		return nil, fmt.Errorf("encoding the %s: %w", what, err)
	}
	return out.Bytes(), nil
}

// Masked returns the list with its credentials masked.
func (l List) Masked() List {
	l.Places = slices.Clone(l.Places)
	for i := range l.Places {
		l.Places[i].Auth = l.Places[i].Auth.Masked()
	}
	return l
}

// Decode reads what Encode wrote; a newer schema is a *bundle.SchemaError. Errors have no secrets.
func Decode(data []byte) (List, error) {
	if len(data) > maxFile {
		return List{}, fmt.Errorf("%w: %s", bundle.ErrTooLarge, what)
	}
	if err := bundle.CheckSchema(data, what, schema); err != nil {
		return List{}, err
	}
	var f file
	if json.Unmarshal(data, &f) != nil { // the error can quote a value
		return List{}, errors.New("reading the " + what + ": they are not JSON of the right form")
	}
	l := List{Payload: f.Payload, Image: places.Image{Registry: f.Image.Registry, Repository: f.Image.Repository, Reference: f.Image.Digest}, Rate: f.Rate}
	for _, p := range f.Places {
		l.Places = append(l.Places, places.Place{Registry: p.Registry, Repository: p.Repository, Insecure: p.Insecure, Auth: bundle.NewSecret(p.Auth)})
	}
	for _, x := range f.Executables {
		l.Executables = append(l.Executables, Executable(x))
	}
	return l, l.checkValues()
}

// checkValues refuses a list that a host cannot fetch by.
func (l List) checkValues() error {
	image := digest.Digest(l.Image.Reference)
	switch {
	case l.Payload.Validate() != nil || l.Payload.Keyed():
		return fmt.Errorf("%s: payload is not a digest", what)
	case l.Image.Registry == "" || l.Image.Repository == "" || image.Validate() != nil || image.Algorithm() != digest.SHA256:
		return fmt.Errorf("%s: image is not one by digest", what)
	case l.Rate < 0:
		return fmt.Errorf("%s: bytesPerSecond is negative", what)
	}
	for i, p := range l.Places {
		if p.Registry == "" || p.Repository == "" {
			return fmt.Errorf("%s: places[%d] is no place of an image", what, i)
		}
	}
	for i, x := range l.Executables {
		if x.Name == "" || x.Raw.CheckValues() != nil || x.Stored.CheckValues() != nil {
			return fmt.Errorf("%s: executables[%d] is no executable", what, i)
		}
		if i > 0 && l.Executables[i-1].Name >= x.Name {
			return fmt.Errorf("%s: executables[%d] is listed twice or out of order", what, i)
		}
	}
	return nil
}
