// Package fetch fetches the executables of an image of the operator from a registry, into a folder that payload/store reads.
//
// The image has a layer for each executable, whose descriptor names it (LayerAnnotation). Copies that have lost the annotations are read whole. Layers are
// kept until all are there, so that an interrupted fetch goes on where it ended.
package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
	"golang.org/x/time/rate"

	"wmco/bundle"
	"wmco/gateway/places"
	"wmco/gateway/registry"
	"wmco/payload/store"
)

const (
	// Folder is where the image has the executables and their list.
	Folder = "payload"
	// LayerAnnotation of a layer's descriptor says that the layer has files of Folder.
	LayerAnnotation = "windowsmachineconfig.openshift.io/payload"
)

// Source is an image in a registry.
type Source struct {
	Image  places.Image
	Client *registry.Client
	// Auth are the credentials, base64 of user:password; zero for none.
	Auth bundle.Secret
	// Cache is the folder below which there is a folder for each image.
	Cache string
	// Progress is called with the bytes of layers that are there, and those of all. It may be nil.
	Progress func(have, all int64)
}

// FetchExecutables returns a folder with the executables. What an earlier call has fetched is not fetched again. A tag is resolved each time.
func (s Source) FetchExecutables(ctx context.Context) (string, error) {
	from := s.repository()
	m, err := from.readImage(ctx, s.Image.Reference)
	if err != nil {
		return "", fmt.Errorf("reading the image %s: %w", s.Image, err)
	}
	folder := filepath.Join(s.Cache, m.digest.Encoded())
	if _, err := store.Open(folder); err == nil {
		return folder, nil
	}
	if err := s.fetchInto(ctx, from, m, folder); err != nil {
		return "", fmt.Errorf("fetching the executables of %s: %w", s.Image, err)
	}
	return folder, nil
}

// fetchInto makes the folder from the layers, or nothing.
func (s Source) fetchInto(ctx context.Context, from repository, m manifest, folder string) error {
	blobs := filepath.Join(s.Cache, "layers")
	if err := os.MkdirAll(blobs, 0o700); err != nil {
		return err
	}
	made, err := os.MkdirTemp(s.Cache, ".new-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(made) }()
	layers := m.payloadLayers()
	var have, all int64
	for _, l := range layers {
		all += l.Size
	}
	for _, l := range layers {
		file := onDisk(filepath.Join(blobs, l.Digest.Encoded()))
		if err := from.fetchLayer(ctx, l, file, func(n int64) { s.reportProgress(have+n, all) }); err != nil {
			return err
		}
		have += l.Size
		if err := unpackLayer(l, file, func(base string, content io.Reader) error { return writeFile(filepath.Join(made, base), content) }); err != nil {
			return err
		}
	}
	if err := verifyFolder(ctx, made); err != nil {
		return err
	}
	if _, err := store.Open(folder); err != nil { // else another process was faster
		if err := errors.Join(os.RemoveAll(folder), os.Rename(made, folder)); err != nil {
			return err
		}
	}
	for _, l := range layers {
		_ = os.Remove(filepath.Join(blobs, l.Digest.Encoded())) // what stays only takes space
	}
	return nil
}

func (s Source) reportProgress(have, all int64) {
	if s.Progress != nil {
		s.Progress(have, all)
	}
}

// verifyFolder checks that a folder has executables, each byte of them, and that they are those of this version.
func verifyFolder(ctx context.Context, folder string) error {
	if _, err := os.Stat(filepath.Join(folder, store.ListFile)); err != nil {
		return fmt.Errorf("it has no %s/%s: it is not an image of this operator", Folder, store.ListFile)
	}
	opened, err := store.Open(folder)
	if err == nil {
		err = opened.Verify(ctx)
	}
	if refused := (*store.RefusedError)(nil); errors.As(err, &refused) {
		return fmt.Errorf("%s: use the wmco and the image of one release", refused.Problems[0].Message)
	}
	return err
}

// descriptor, index and manifest are what is used of those of OCI and Docker (github.com/opencontainers/image-spec, descriptor.md, image-index.md, manifest.md).
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      digest.Digest     `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations"`
	Platform    struct {
		OS           string `json:"os"`
		Architecture string `json:"architecture"`
	} `json:"platform"`
}

type manifest struct {
	digest    digest.Digest
	Manifests []descriptor `json:"manifests"`
	Layers    []descriptor `json:"layers"`
}

// payloadLayers are the layers with executables, or all where the descriptors do not tell.
func (m manifest) payloadLayers() []descriptor {
	var named []descriptor
	for _, l := range m.Layers {
		if l.Annotations[LayerAnnotation] != "" {
			named = append(named, l)
		}
	}
	if named == nil {
		return m.Layers
	}
	return named
}

// The largest sizes in bytes of a manifest (github.com/opencontainers/distribution-spec, Pushing Manifests) and of a layer, and the most layers.
const (
	maxManifest = 4 << 20
	maxLayer    = 1 << 30
	maxLayers   = 127
)

// manifestTypes are the media types that are understood.
func manifestTypes() []string {
	return []string{
		"application/vnd.oci.image.index.v1+json", "application/vnd.oci.image.manifest.v1+json",
		"application/vnd.docker.distribution.manifest.list.v2+json", "application/vnd.docker.distribution.manifest.v2+json",
	}
}

// repository is where an image is asked for.
type repository struct {
	client *registry.Client
	place  places.Place
	// limit is how fast layers are read; nil is as fast as they come.
	limit *rate.Limiter
}

func (s Source) repository() repository {
	return repository{client: s.Client,
		place: places.Place{Registry: s.Image.Registry, Repository: s.Image.Repository, Source: true, Auth: s.Auth}}
}

// readImage returns the manifest of the image for Linux on amd64: the executables are the same for all.
func (r repository) readImage(ctx context.Context, reference string) (manifest, error) {
	m, err := r.readManifest(ctx, reference)
	if err != nil || m.Manifests == nil {
		return m.checkLayers(err)
	}
	for _, d := range m.Manifests {
		if d.Platform.OS == "linux" && d.Platform.Architecture == "amd64" {
			m, err := r.readManifest(ctx, d.Digest.String())
			return m.checkLayers(err)
		}
	}
	return manifest{}, errors.New("it has no image for linux/amd64")
}

// checkLayers returns the manifest if its layers are valid, and err is nil.
func (m manifest) checkLayers(err error) (manifest, error) {
	if err != nil {
		return manifest{}, err
	}
	if len(m.Layers) == 0 || len(m.Layers) > maxLayers {
		return manifest{}, fmt.Errorf("it has %d layers", len(m.Layers))
	}
	for _, l := range m.Layers {
		if err := l.Digest.Validate(); err != nil || l.Digest.Algorithm() != digest.SHA256 || l.Size <= 0 || l.Size > maxLayer {
			return manifest{}, fmt.Errorf("its layer %q of %d bytes is not valid", l.Digest, l.Size)
		}
	}
	return m, nil
}

func (r repository) readManifest(ctx context.Context, reference string) (manifest, error) {
	response, err := r.getContent(ctx, "manifests/"+reference, http.Header{"Accept": manifestTypes()})
	if err != nil {
		return manifest{}, err
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxManifest+1))
	if err != nil {
		return manifest{}, err
	}
	m := manifest{digest: digest.FromBytes(data)}
	if strings.Contains(reference, ":") && m.digest.String() != reference {
		return manifest{}, fmt.Errorf("the registry sent another manifest than %s", reference)
	}
	if len(data) > maxManifest || json.Unmarshal(data, &m) != nil {
		return manifest{}, errors.New("the registry did not send a manifest")
	}
	return m, nil
}

// getContent asks for a manifest or a layer, and returns a *StatusError for any answer but 200 and 206.
func (r repository) getContent(ctx context.Context, path string, header http.Header) (*http.Response, error) {
	response, err := r.client.Do(ctx, registry.Request{Method: http.MethodGet, Place: r.place, Path: path, Auth: r.place.Auth, Header: header})
	if denied := (*registry.TokenError)(nil); errors.As(err, &denied) {
		return nil, &StatusError{Registry: r.place.Registry, Server: denied.Server, Status: denied.Status}
	}
	if err != nil {
		return nil, err
	}
	switch response.StatusCode {
	case http.StatusOK, http.StatusPartialContent:
		return response, nil
	}
	_ = response.Body.Close()
	return nil, &StatusError{Registry: r.place.Registry, Server: r.place.Registry, Status: response.StatusCode}
}

// StatusError is an answer of a registry, or of its token server, without what was asked for.
type StatusError struct {
	Registry, Server string
	Status           int
}

func (e *StatusError) Error() string {
	text := e.Server + " answered " + strings.TrimSpace(strconv.Itoa(e.Status)+" "+http.StatusText(e.Status))
	if e.Status == http.StatusNotFound {
		text += ": it has no such image"
	}
	return text
}

// IsDenied reports whether other credentials may help.
func (e *StatusError) IsDenied() bool {
	return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden
}
