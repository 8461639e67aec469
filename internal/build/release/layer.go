package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	modeFile       fs.FileMode = 0o644
	modeProgram    fs.FileMode = 0o755
	modeFolder     fs.FileMode = 0o755
	modeEverybody  fs.FileMode = 0o777
	stickyBitOfTar             = 0o1000
)

// file is one entry of a layer. It is read from a file, or has its content or a link's target here.
type file struct {
	// name is the path in the image, without a leading slash.
	name string
	mode fs.FileMode
	from string
	data []byte
	link string
	// temporary is true for a folder in which everybody writes, as /tmp.
	temporary bool
}

// layer returns the files as a layer, with the folders that they are in. Everything belongs to root.
func layer(files []file, at time.Time, level int) (v1.Layer, error) {
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		r, w := io.Pipe()
		go func() { w.CloseWithError(pack(w, files, at)) }()
		return r, nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(level))
}

// The levels of compression: what zstd has compressed does not become smaller.
const (
	compressed   = gzip.BestSpeed
	uncompressed = gzip.DefaultCompression
)

func pack(w io.Writer, files []file, at time.Time) error {
	out := tar.NewWriter(w)
	made := map[string]bool{".": true}
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	for _, f := range files {
		if err := folders(out, made, path.Dir(f.name), at); err != nil {
			return err
		}
		if err := f.write(out, at); err != nil {
			return fmt.Errorf("packing %s: %w", f.name, err)
		}
	}
	return out.Close()
}

// folders writes the folders above a file once, the outer ones first.
func folders(out *tar.Writer, made map[string]bool, dir string, at time.Time) error {
	if made[dir] {
		return nil
	}
	made[dir] = true
	if err := folders(out, made, path.Dir(dir), at); err != nil {
		return err
	}
	return out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: int64(modeFolder), ModTime: at, Format: tar.FormatPAX})
}

func (f file) write(out *tar.Writer, at time.Time) error {
	header := tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: int64(f.mode), ModTime: at, Format: tar.FormatPAX}
	switch {
	case f.temporary:
		header.Typeflag, header.Name, header.Mode = tar.TypeDir, f.name+"/", int64(modeEverybody)|stickyBitOfTar
		return out.WriteHeader(&header)
	case f.link != "":
		header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, f.link, int64(modeEverybody)
		return out.WriteHeader(&header)
	case f.from == "":
		header.Size = int64(len(f.data))
		return copyTo(out, &header, bytes.NewReader(f.data))
	}
	from, err := os.Open(f.from)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // only read from
	info, err := from.Stat()
	if err != nil {
		return err
	}
	header.Size = info.Size()
	return copyTo(out, &header, from)
}

func copyTo(out *tar.Writer, header *tar.Header, from io.Reader) error {
	if err := out.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(out, from)
	return err
}
