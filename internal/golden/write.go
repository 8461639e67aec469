package golden

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
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

// WriteTar writes the files as a tar. The same files give the same bytes: it has no times and no owners.
func WriteTar(path string, files []preview.File) error {
	var out bytes.Buffer
	tw := tar.NewWriter(&out)
	mode := fs.FileMode(modeFile)
	for _, f := range files {
		header := tar.Header{Name: f.Path, Mode: modeFile, Size: int64(len(f.Data)), Format: tar.FormatPAX}
		if f.Secret {
			mode, header.Mode = modeSecret, modeSecret
		}
		if err := tw.WriteHeader(&header); err != nil {
			return fmt.Errorf("writing %q: %w", path, err)
		}
		if _, err := tw.Write(f.Data); err != nil {
			return fmt.Errorf("writing %q: %w", path, err)
		}
	}
	if err := tw.Close(); err != nil {
		return fmt.Errorf("writing %q: %w", path, err)
	}
	return replaceFile(path, out.Bytes(), mode)
}

// Write makes the folder hold exactly the files. A folder that holds anything but an earlier preview is refused, so that a
// mistyped path deletes nothing.
func Write(dir string, files []preview.File) error {
	old, err := earlierPreview(dir)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, f := range files {
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
			return nil, fmt.Errorf("%q holds %q, which is not part of a preview: choose an empty folder", dir, f)
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
