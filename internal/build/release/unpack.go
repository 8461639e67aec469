package release

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// Open reads the index of the image that Image.Write wrote.
func Open(dir string) (v1.ImageIndex, error) {
	read, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, fmt.Errorf("reading image %q: %w", dir, err)
	}
	manifest, err := read.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("reading image %q: %w", dir, err)
	}
	if n := len(manifest.Manifests); n != 1 {
		return nil, fmt.Errorf("reading image %q: it has %d indexes", dir, n)
	}
	return read.ImageIndex(manifest.Manifests[0].Digest)
}

// For returns the image of a platform such as linux/amd64.
func For(index v1.ImageIndex, platform string) (v1.Image, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, d := range manifest.Manifests {
		if d.Platform != nil && d.Platform.OS+"/"+d.Platform.Architecture == platform {
			return index.Image(d.Digest)
		}
	}
	return nil, fmt.Errorf("the image has nothing for %s", platform)
}

// Unpack writes the file system of the image of a platform into a new folder. Every digest is checked on the way.
func Unpack(dir, platform, to string) error {
	index, err := Open(dir)
	if err != nil {
		return err
	}
	image, err := For(index, platform)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, modeFolder.Perm()); err != nil {
		return err
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // every file was closed
	files := mutate.Extract(image)
	defer files.Close() //nolint:errcheck // only read from
	in := tar.NewReader(files)
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpacking image %q: %w", dir, err)
		}
		if err := unpackOne(root, header, in); err != nil {
			return fmt.Errorf("unpacking %s: %w", header.Name, err)
		}
	}
}

func unpackOne(root *os.Root, header *tar.Header, from io.Reader) error {
	name := filepath.FromSlash(strings.TrimSuffix(header.Name, "/"))
	if err := root.MkdirAll(filepath.Dir(name), modeFolder.Perm()); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, modeFolder.Perm())
	case tar.TypeSymlink:
		return root.Symlink(header.Linkname, name)
	}
	out, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fs.FileMode(header.Mode).Perm()) //nolint:gosec // Perm takes the bits that a mode has
	if err != nil {
		return err
	}
	_, err = io.Copy(out, from)
	return errors.Join(err, out.Close())
}
