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
	"path"
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

// WriteOut writes the files to a folder, or to a tar where the path ends in .tar, .tar.gz or .tgz. The same files give
// the same bytes.
func WriteOut(ctx context.Context, out string, files []preview.File) error {
	var packed bytes.Buffer
	var err error
	switch {
	case strings.HasSuffix(out, ".tar"):
		err = writeTar(&packed, files)
	case strings.HasSuffix(out, ".tar.gz"), strings.HasSuffix(out, ".tgz"):
		zip := gzip.NewWriter(&packed) // whose header has no name and no time
		err = errors.Join(writeTar(zip, files), zip.Close())
	default:
		return Write(ctx, out, files)
	}
	if err != nil {
		return fmt.Errorf("writing %q: %w", out, err)
	}
	mode := fs.FileMode(modeFile)
	if slices.ContainsFunc(files, func(f preview.File) bool { return f.Secret }) {
		mode = modeSecret
	}
	root, err := os.OpenRoot(filepath.Dir(out))
	if err != nil {
		return fmt.Errorf("writing %q: %w", out, err)
	}
	return errors.Join(replaceFile(root, filepath.Base(out), packed.Bytes(), mode), root.Close())
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

// Write makes the folder hold exactly the files. A folder that holds anything but an earlier preview is refused, so
// that a mistyped path deletes nothing. Links in it are refused, and nothing is written outside of it. When the context
// ends, files that were not reached stay as they are.
func Write(ctx context.Context, dir string, files []preview.File) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("writing the preview: %q is a file: name a folder, or a file that ends in .tar or .tar.gz", dir)
	}
	if err := os.MkdirAll(dir, modeFolder); err != nil {
		return fmt.Errorf("writing the preview: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("writing the preview: %w", err)
	}
	return errors.Join(writeFiles(ctx, root, files), root.Close())
}

// WriteWant makes the wanted output of a golden folder exactly the files, as Write.
func WriteWant(ctx context.Context, dir string, files []preview.File) error {
	if err := checkWant(dir); err != nil {
		return err
	}
	return Write(ctx, WantDir(dir), files)
}

func writeFiles(ctx context.Context, root *os.Root, files []preview.File) error {
	old, err := earlierPreview(root)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("writing the preview: %w", err)
		}
		wanted[f.Path] = true
		if err := root.MkdirAll(path.Dir(f.Path), modeFolder); err != nil {
			return fmt.Errorf("writing the preview: %w", err)
		}
		mode := fs.FileMode(modeFile)
		if f.Secret {
			mode = modeSecret
		}
		if err := replaceFile(root, f.Path, f.Data, mode); err != nil {
			return err
		}
	}
	for _, name := range old {
		if wanted[name] {
			continue
		}
		if err := root.Remove(name); err != nil {
			return fmt.Errorf("removing a file of an earlier preview: %w", err)
		}
	}
	return removeEmptyFolders(root)
}

// earlierPreview lists the files of an earlier preview. There is none in a new or empty folder.
func earlierPreview(root *os.Root) ([]string, error) {
	files, links, err := listEntries(root)
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", root.Name(), err)
	}
	if len(links) > 0 {
		return nil, linkError(root.Name(), links[0])
	}
	for _, f := range files {
		if !isPreviewFile(f, files) {
			return nil, fmt.Errorf("%q holds %q, which is not part of a preview: remove it, or choose another folder", root.Name(), f)
		}
	}
	return files, nil
}

// isPreviewFile reports whether a path is beside the index of a preview or of one layer, or in a drive folder beside
// one.
func isPreviewFile(name string, files []string) bool {
	parts := strings.Split(name, "/")
	for depth := range min(4, len(parts)) { // want/<group>/nodes/<node>
		root := strings.Join(parts[:depth], "/")
		rest := parts[depth:]
		isRoot := slices.ContainsFunc([]string{preview.ManifestFile, preview.LayerFile}, func(index string) bool {
			return slices.Contains(files, path.Join(root, index))
		})
		if isRoot && (len(rest) == 1 && isDocument(rest[0]) || len(rest) > 1 && len(rest[0]) == 1) {
			return true
		}
	}
	return false
}

func isDocument(name string) bool {
	return slices.Contains([]string{
		preview.ManifestFile, preview.LayerFile, preview.ServicesFile, preview.EnvironmentFile, preview.HostFile,
		preview.PayloadFile, preview.FindingsFile, preview.ProvenanceFile,
	}, name)
}

// replaceFile writes a file beside the target and renames it, unless the target has the same bytes.
func replaceFile(root *os.Root, name string, data []byte, mode fs.FileMode) error {
	if old, err := root.ReadFile(name); err == nil && bytes.Equal(old, data) {
		return root.Chmod(name, mode)
	}
	// An earlier process of the same number may have been ended here.
	beside := path.Join(path.Dir(name), fmt.Sprintf(".wmco-%d", os.Getpid()))
	if err := root.Remove(beside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("writing %q: %w", name, err)
	}
	tmp, err := root.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, modeSecret)
	if err != nil {
		return fmt.Errorf("writing %q: %w", name, err)
	}
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Chmod(mode), tmp.Close())
	if err == nil {
		err = root.Rename(beside, name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %q: %w", name, err), root.Remove(beside))
	}
	return nil
}

func removeEmptyFolders(root *os.Root) error {
	var folders []string
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && name != "." {
			folders = append(folders, name)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("tidying the preview: %w", err)
	}
	for _, name := range slices.Backward(folders) {
		if entries, err := fs.ReadDir(root.FS(), name); err == nil && len(entries) == 0 {
			if err := root.Remove(name); err != nil {
				return fmt.Errorf("tidying the preview: %w", err)
			}
		}
	}
	return nil
}
