package golden

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"wmco/render/preview"
)

// Modes of written files: only the user may read secrets.
const (
	modeFile   = 0o644
	modeSecret = 0o600
	modeFolder = 0o755
)

// WriteOut writes the files to a folder, or to a tar where the path ends in .tar, .tar.gz or .tgz. The same files give the
// same bytes.
func WriteOut(ctx context.Context, path string, files []preview.File) error {
	var packed bytes.Buffer
	var err error
	switch {
	case strings.HasSuffix(path, ".tar"):
		err = writeTar(&packed, files)
	case strings.HasSuffix(path, ".tar.gz"), strings.HasSuffix(path, ".tgz"):
		zip := gzip.NewWriter(&packed) // whose header has no name and no time
		err = errors.Join(writeTar(zip, files), zip.Close())
	default:
		return Write(ctx, path, files)
	}
	if err != nil {
		return fmt.Errorf("writing %q: %w", path, err)
	}
	mode := fs.FileMode(modeFile)
	if slices.ContainsFunc(files, func(f preview.File) bool { return f.Secret }) {
		mode = modeSecret
	}
	return replaceFile(path, packed.Bytes(), mode)
}

// writeTar writes a tar without times and owners.
func writeTar(out io.Writer, files []preview.File) error {
	tw := tar.NewWriter(out)
	for _, f := range files {
		header := tar.Header{Name: f.Path, Mode: modeFile, Size: int64(len(f.Data)), Format: tar.FormatPAX}
		if f.Secret {
			header.Mode = modeSecret
		}
		if err := tw.WriteHeader(&header); err != nil {
			return err
		}
		if _, err := tw.Write(f.Data); err != nil {
			return err
		}
	}
	return tw.Close()
}

// Write makes the folder hold exactly the files. A folder that holds anything but an earlier preview is refused, so that a
// mistyped path deletes nothing. When the context ends, files that were not reached stay as they are.
func Write(ctx context.Context, dir string, files []preview.File) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("writing the preview: %q is a file: name a folder, or a file that ends in .tar or .tar.gz", dir)
	}
	old, err := earlierPreview(dir)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("writing the preview: %w", err)
		}
		wanted[f.Path] = true
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(path), modeFolder); err != nil {
			return fmt.Errorf("writing the preview: %w", err)
		}
		mode := fs.FileMode(modeFile)
		if f.Secret {
			mode = modeSecret
		}
		if err := replaceFile(path, f.Data, mode); err != nil {
			return err
		}
	}
	for _, path := range old {
		if wanted[path] {
			continue
		}
		if err := os.Remove(filepath.Join(dir, filepath.FromSlash(path))); err != nil {
			return fmt.Errorf("removing a file of an earlier preview: %w", err)
		}
	}
	return removeEmptyFolders(dir)
}

// earlierPreview lists the files of an earlier preview. There is none in a new or empty folder.
func earlierPreview(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		files = append(files, filepath.ToSlash(rel))
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", dir, err)
	}
	for _, f := range files {
		if !isPreviewFile(f, files) {
			return nil, fmt.Errorf("%q holds %q, which is not part of a preview: remove it, or choose another folder", dir, f)
		}
	}
	return files, nil
}

// isPreviewFile reports whether a path is beside a MANIFEST.json, or in a drive folder beside one.
func isPreviewFile(path string, files []string) bool {
	parts := strings.Split(path, "/")
	for depth := range min(2, len(parts)) {
		root := strings.Join(parts[:depth], "/")
		manifest := strings.TrimPrefix(root+"/"+preview.ManifestFile, "/")
		rest := parts[depth:]
		if slices.Contains(files, manifest) && (len(rest) == 1 && isDocument(rest[0]) || len(rest) > 1 && len(rest[0]) == 1) {
			return true
		}
	}
	return false
}

func isDocument(name string) bool {
	return slices.Contains([]string{
		preview.ManifestFile, preview.ServicesFile, preview.EnvironmentFile, preview.HostFile, preview.PayloadFile, preview.FindingsFile, preview.ProvenanceFile,
	}, name)
}

// replaceFile writes a file beside the target and renames it, unless the target has the same bytes.
func replaceFile(path string, data []byte, mode fs.FileMode) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return os.Chmod(path, mode)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".wmco-*")
	if err != nil {
		return fmt.Errorf("writing %q: %w", path, err)
	}
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Chmod(mode), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %q: %w", path, err), os.Remove(tmp.Name()))
	}
	return nil
}

func removeEmptyFolders(dir string) error {
	var folders []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != dir {
			folders = append(folders, path)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("tidying the preview: %w", err)
	}
	for _, path := range slices.Backward(folders) {
		if entries, err := os.ReadDir(path); err == nil && len(entries) == 0 {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("tidying the preview: %w", err)
			}
		}
	}
	return nil
}
