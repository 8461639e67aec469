package registrytest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/opencontainers/go-digest"

	"wmco/payload/fetch"
	"wmco/payload/store"
)

// descriptor names an object of an image (github.com/opencontainers/image-spec, descriptor.md).
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      digest.Digest     `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// The media types of an image (github.com/opencontainers/image-spec, media-types.md).
const (
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// eachObject calls add for each object of the image with the executables of a folder, the manifest last, and returns the
// digest of that. kind is blobs or manifests.
func eachObject(folder string, add func(kind string, data []byte, d descriptor) error) (digest.Digest, error) {
	opened, err := store.Open(folder)
	if err != nil {
		return "", err
	}
	config := []byte("{}")
	manifest := struct {
		Schema    int          `json:"schemaVersion"`
		MediaType string       `json:"mediaType"`
		Config    descriptor   `json:"config"`
		Layers    []descriptor `json:"layers"`
	}{Schema: 2, MediaType: typeManifest, Config: describe(typeConfig, config)}
	if err := add("blobs", config, manifest.Config); err != nil {
		return "", err
	}
	for _, e := range opened.Entries() {
		layer, err := layerOf(filepath.Join(folder, e.File()))
		if err != nil {
			return "", err
		}
		d := describe(typeLayer, layer)
		if err := add("blobs", layer, d); err != nil {
			return "", err
		}
		d.Annotations = map[string]string{fetch.LayerAnnotation: e.File()}
		manifest.Layers = append(manifest.Layers, d)
	}
	data, err := json.Marshal(manifest)
	if err != nil {
		return "", err
	}
	d := describe(typeManifest, data)
	return d.Digest, add("manifests", data, d)
}

func describe(kind string, data []byte) descriptor {
	return descriptor{MediaType: kind, Digest: digest.FromBytes(data), Size: len(data)}
}

// layerOf returns a layer with one executable, as make release compresses it.
func layerOf(file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(compressed)
	if err = w.WriteHeader(&tar.Header{Name: fetch.Folder + "/" + filepath.Base(file), Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(data))}); err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = compressed.Close()
	}
	return out.Bytes(), err
}

// PushImage pushes the image with the executables of a folder to a repository, which is a URL without /v2 such as
// https://127.0.0.1:5000/team/wmco, and returns its digest.
func PushImage(t testing.TB, c *http.Client, repository, folder string) string {
	t.Helper()
	at, err := url.Parse(repository)
	if err != nil {
		t.Fatal(err)
	}
	at.Path = "/v2" + at.Path
	d, err := eachObject(folder, func(kind string, data []byte, d descriptor) error {
		return push(t.Context(), c, at, object{kind, data, d})
	})
	if err != nil {
		t.Fatalf("pushing to %s: %v", repository, err)
	}
	return d.String()
}

// object is a part of an image, kind as for eachObject.
type object struct {
	kind string
	data []byte
	descriptor
}

// push pushes one object (github.com/opencontainers/distribution-spec, Pushing).
func push(ctx context.Context, c *http.Client, at *url.URL, o object) error {
	if o.kind == "manifests" {
		_, err := send(ctx, c, http.MethodPut, at.JoinPath("manifests", o.Digest.String()), o)
		return err
	}
	location, err := send(ctx, c, http.MethodPost, at.JoinPath("blobs", "uploads/"), object{})
	if err != nil {
		return err
	}
	upload, err := at.Parse(location)
	if err != nil {
		return err
	}
	query := upload.Query()
	query.Set("digest", o.Digest.String())
	upload.RawQuery = query.Encode()
	o.MediaType = "application/octet-stream"
	_, err = send(ctx, c, http.MethodPut, upload, o)
	return err
}

// send returns the header Location of the answer.
func send(ctx context.Context, c *http.Client, method string, to *url.URL, o object) (string, error) {
	request, err := http.NewRequestWithContext(ctx, method, to.String(), bytes.NewReader(o.data))
	if err != nil {
		return "", err
	}
	if o.MediaType != "" {
		request.Header.Set("Content-Type", o.MediaType)
	}
	response, err := c.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	if response.StatusCode >= http.StatusMultipleChoices {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return "", fmt.Errorf("%s %s: %s: %s", method, to.Path, response.Status, text)
	}
	return response.Header.Get("Location"), nil
}
