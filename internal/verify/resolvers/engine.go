package resolvers

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"reflect"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Engine is one version of containerd's resolver.
type Engine struct {
	// Version is the version of containerd.
	Version string
	// Hosts returns the endpoints of a registry host in the order in which they are tried.
	Hosts func(Client, string) ([]Host, error)
	// Pull resolves a reference and fetches the image.
	Pull func(context.Context, Client, string) (Pulled, error)
}

// Engines are the version that is shipped, then the one that adopted nodes may still run.
func Engines() []Engine {
	return []Engine{
		{Version: "2.4.2", Hosts: hosts24, Pull: pull24},
		{Version: "1.7.27", Hosts: hosts17, Pull: pull17},
	}
}

// Client is the configuration of a containerd besides the hosts files.
type Client struct {
	// Root is the folder of the hosts files (config_path).
	Root string
	// Credentials returns those that the kubelet passes for the image. containerd calls it with the name of the
	// endpoint.
	Credentials func(host string) (user, password string, err error)
	// Update changes the HTTP clients before their use, so that a test can resolve names.
	Update func(*http.Client) error
}

func (c Client) update(client *http.Client) error {
	if c.Update == nil {
		return nil
	}
	return c.Update(client)
}

// Host is one endpoint.
type Host struct {
	// Scheme is http, https, or any: https without checking the certificate, then http.
	Scheme string
	Host   string
	Path   string
	// Pull and Resolve are the capabilities that a pull needs: both for a tag.
	Pull, Resolve bool
	Header        http.Header
}

// Any is the scheme of an endpoint that is tried with TLS, then without.
const Any = "any"

// scheme returns the scheme of an endpoint.
func scheme(scheme string, transport http.RoundTripper) string {
	if !strings.HasSuffix(fmt.Sprintf("%T", transport), ".httpFallback") {
		return scheme
	}
	inner := reflect.ValueOf(transport).Elem().FieldByName("super").Elem().Elem()
	if !inner.FieldByName("TLSClientConfig").Elem().FieldByName("InsecureSkipVerify").Bool() {
		return "any, verified"
	}
	return Any
}

// URL returns the URL of a repository, the path of an image without its host (resolver.go, request).
func (h Host) URL(repository string) string {
	return h.Scheme + "://" + h.Host + path.Join("/", h.Path, repository)
}

// URLs returns what a pull of a repository by digest or by tag tries, in order, until one has the image.
func URLs(hosts []Host, repository string, by By) []string {
	urls := []string{}
	for _, h := range hosts {
		if h.Pull && (h.Resolve || by == Digest) {
			urls = append(urls, h.URL(repository))
		}
	}
	return urls
}

// By is how an image is named.
type By string

const (
	// Digest names an image by the hash of its manifest.
	Digest By = "digest"
	// Tag names it by a tag, which the registry resolves to a digest.
	Tag By = "tag"
)

// Pulled is the result of a pull.
type Pulled struct {
	// Digest is the digest of the manifest.
	Digest digest.Digest
	// Blobs are the contents of the configuration and the layers, each checked against its digest.
	Blobs []string
}

// puller is the common part of all pulls.
type puller struct {
	resolve func(context.Context, string) (string, ocispec.Descriptor, error)
	fetch   func(context.Context, string, ocispec.Descriptor) (io.ReadCloser, error)
}

func (p puller) pull(ctx context.Context, ref string) (Pulled, error) {
	name, top, err := p.resolve(ctx, ref)
	if err != nil {
		return Pulled{}, fmt.Errorf("resolving: %w", err)
	}
	text, err := p.read(ctx, name, top)
	if err != nil {
		return Pulled{}, err
	}
	var manifest ocispec.Manifest
	if err := json.Unmarshal(text, &manifest); err != nil {
		return Pulled{}, fmt.Errorf("reading the manifest: %w", err)
	}
	pulled := Pulled{Digest: top.Digest}
	for _, d := range append([]ocispec.Descriptor{manifest.Config}, manifest.Layers...) {
		blob, err := p.read(ctx, name, d)
		if err != nil {
			return Pulled{}, err
		}
		pulled.Blobs = append(pulled.Blobs, string(blob))
	}
	return pulled, nil
}

func (p puller) read(ctx context.Context, name string, d ocispec.Descriptor) ([]byte, error) {
	r, err := p.fetch(ctx, name, d)
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", d.MediaType, err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", d.MediaType, err)
	}
	if got := d.Digest.Algorithm().FromBytes(data); got != d.Digest {
		return nil, fmt.Errorf("fetching %s: got %s, want %s", d.MediaType, got, d.Digest)
	}
	return data, r.Close()
}

// Image is a small image in memory.
type Image struct {
	Manifest, Config, Layer []byte
}

// NewImage returns an image whose configuration contains its name.
func NewImage(name string) (Image, error) {
	i := Image{Layer: []byte("not a real layer: " + name)}
	var err error
	i.Config, err = json.Marshal(ocispec.Image{Author: name, Platform: ocispec.Platform{OS: "windows", Architecture: "amd64"}})
	if err != nil {
		return Image{}, err
	}
	i.Manifest, err = json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: describe(ocispec.MediaTypeImageConfig, i.Config),
		Layers: []ocispec.Descriptor{describe(ocispec.MediaTypeImageLayer, i.Layer)},
	})
	return i, err
}

// Digest returns the digest of the manifest.
func (i Image) Digest() digest.Digest { return digest.FromBytes(i.Manifest) }

func describe(mediaType string, data []byte) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}
}
