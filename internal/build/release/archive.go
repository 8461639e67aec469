package release

import (
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"wmco/payload/store"
)

// Archive is the command line for one platform, packed for download.
type Archive struct {
	Program
	Version string
	// License is the file with the license.
	License string
	// Created is the time of everything in the archive.
	Created time.Time
}

// aliases are the names by which kubectl and oc find the program as a plugin, and kubectl its completion.
func aliases() []string { return []string{"kubectl-windows", "oc-windows", "kubectl_complete-windows"} }

// windows reports whether it is for Windows: a .zip without links, because its programs make none without a privilege.
func (a Archive) windows() bool { return a.OS == "windows" }

// Executable returns the name of the program in the archive.
func (a Archive) Executable() string {
	if a.windows() {
		return "wmco.exe"
	}
	return "wmco"
}

// File returns the name of the archive.
func (a Archive) File() string {
	name := "wmco-" + a.Version + "-" + a.OS + "-" + a.Arch
	if a.windows() {
		return name + ".zip"
	}
	return name + ".tar.gz"
}

// Write packs the program into a file of the folder. The same program gives the same bytes.
func (a Archive) Write(dir string) (err error) {
	out, err := os.Create(filepath.Join(dir, a.File()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if a.windows() {
		return a.zip(out)
	}
	return a.tarball(out)
}

func (a Archive) files() []file {
	return []file{{name: "LICENSE", mode: modeFile, from: a.License}, {name: a.Executable(), mode: modeProgram, from: a.Path}}
}

func (a Archive) tarball(w io.Writer) error {
	files := a.files()
	for _, name := range aliases() {
		files = append(files, file{name: name, link: a.Executable()})
	}
	out := gzip.NewWriter(w)
	return errors.Join(pack(out, files, a.Created), out.Close())
}

func (a Archive) zip(w io.Writer) error {
	out := zip.NewWriter(w)
	for _, f := range a.files() {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: a.Created.UTC()}
		header.SetMode(f.mode)
		entry, err := out.CreateHeader(header)
		if err != nil {
			return err
		}
		if err := copyFile(entry, f.from); err != nil {
			return fmt.Errorf("packing %s: %w", f.name, err)
		}
	}
	return out.Close()
}

func copyFile(to io.Writer, name string) error {
	from, err := os.Open(name)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // only read from
	_, err = io.Copy(to, from)
	return err
}

// PackLayout packs an OCI layout into one file, as skopeo and podman read it: oci-archive:FILE.
func PackLayout(dir, name string, created time.Time) error {
	files, err := filesOf(dir)
	if err != nil {
		return fmt.Errorf("packing image %q: %w", dir, err)
	}
	return packFile(files, name, created)
}

// packPayload packs the executables into one file, below a folder payload. They are checked when the image is made.
func (i Image) packPayload(name string) error {
	executables, err := store.Open(i.Payload)
	if err != nil {
		return err
	}
	names := []string{store.ListFile}
	for _, e := range executables.Entries() {
		names = append(names, e.File())
	}
	files := []file{{name: "payload", mode: modeFolder}}
	for _, n := range names {
		files = append(files, file{name: "payload/" + n, mode: modeFile, from: filepath.Join(i.Payload, n)})
	}
	return packFile(files, name, i.Labels.Created)
}

// packFile writes files into a tar archive, with one time for all.
func packFile(files []file, name string, created time.Time) (err error) {
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	return pack(out, files, created)
}
