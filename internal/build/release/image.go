package release

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"wmco/payload/fetch"
	"wmco/payload/store"
)

// Where things are in the image. deploy/ names PayloadDir in the operator's arguments.
const (
	Operator   = "/usr/bin/wmco"
	Gather     = "/usr/bin/gather"
	PayloadDir = "/" + fetch.Folder
	BillsDir   = "/sbom"
	// user is no user of any distribution. OpenShift runs the image with one of the namespace's own, in group 0.
	user = "65532:65532"
)

// Name is the name of the operator, its image and its package.
const Name = "windows-machine-config-operator"

// Image is what an image is made from.
type Image struct {
	Labels Labels
	// Programs are the operators, static programs for Linux.
	Programs []Program
	// Shells are the programs of tools/shell for the platforms of the operators: what oc adm must-gather needs beside
	// the entry point.
	Shells []Program
	// Payload is the folder that make payload wrote, Bills the one with its bills of materials.
	Payload, Bills string
	// License is the file with the license.
	License string
	// AllowMissing accepts a payload that lacks executables, or bills of materials.
	AllowMissing bool
}

// Program is one file for one platform.
type Program struct {
	// Name is that in bills of materials; empty is wmco.
	Name           string
	OS, Arch, Path string
}

// Platform returns the platform as in linux/amd64.
func (p Program) Platform() string { return p.OS + "/" + p.Arch }

// Labels describe the image, in the terms of the OCI image specification (annotations.md).
type Labels struct {
	Version, Revision string
	// Source is the URL of the sources. Empty is left out.
	Source string
	// Created is the time of the commit.
	Created time.Time
}

const (
	title       = "Windows Machine Config Operator"
	description = "Configures Windows machines as worker nodes of OKD and OpenShift clusters"
)

// annotations returns the labels by their names.
func (l Labels) annotations() map[string]string {
	all := map[string]string{
		"org.opencontainers.image.title":       title,
		"org.opencontainers.image.description": description,
		"org.opencontainers.image.version":     l.Version,
		"org.opencontainers.image.revision":    l.Revision,
		"org.opencontainers.image.source":      l.Source,
		"org.opencontainers.image.created":     l.Created.UTC().Format(time.RFC3339),
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}
	for name, value := range all {
		if value == "" {
			delete(all, name)
		}
	}
	return all
}

// configLabels adds those that OpenShift's console and oc show.
func (l Labels) configLabels() map[string]string {
	all := l.annotations()
	all["name"], all["version"] = Name, l.Version
	all["io.k8s.display-name"], all["io.k8s.description"] = title, description
	return all
}

// Write makes the image in a folder, as an OCI layout with one index, and returns the digest of the index. A payload
// that does not belong to this version, or lacks something, is a *RefusedError. The folder is replaced.
func (i Image) Write(dir string) (v1.Hash, error) {
	opened, err := i.payload()
	if err != nil {
		return v1.Hash{}, err
	}
	index, err := i.index(opened)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("making the image: %w", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return v1.Hash{}, err
	}
	written, err := layout.Write(dir, empty.Index)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("writing image %q: %w", dir, err)
	}
	if err := written.AppendIndex(index, layout.WithAnnotations(names(Name, i.Labels.Version))); err != nil {
		return v1.Hash{}, fmt.Errorf("writing image %q: %w", dir, err)
	}
	return index.Digest()
}

// names are the annotations by which an image is found in its layout: skopeo reads oci:DIR:VERSION, and podman load
// stores the image as localhost/NAME:VERSION (without the second one as localhost/VERSION:latest).
func names(name, version string) map[string]string {
	return map[string]string{"org.opencontainers.image.ref.name": version, "io.containerd.image.name": "localhost/" + name + ":" + version}
}

func (i Image) index(opened *store.Store) (v1.ImageIndex, error) {
	executables, err := i.executables(opened)
	if err != nil {
		return nil, err
	}
	programs := slices.Clone(i.Programs)
	slices.SortFunc(programs, func(a, b Program) int { return strings.Compare(a.Platform(), b.Platform()) })
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range append(slices.Clone(i.Shells), programs...) {
		if err := p.check(); err != nil {
			return nil, err
		}
	}
	for _, p := range programs {
		image, err := i.one(p, executables)
		if err != nil {
			return nil, fmt.Errorf("for %s: %w", p.Platform(), err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: plain{image}, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.OS, Architecture: p.Arch}},
		})
	}
	return mutate.Annotations(index, i.Labels.annotations()).(v1.ImageIndex), nil //nolint:forcetypeassert // it returns the type that it is given
}

// plain is an image whose descriptor has no artifactType. skopeo drops that of an image and writes the index again,
// with another digest than the one that the manifests name (github.com/podman-container-tools/skopeo/issues/2778).
type plain struct{ v1.Image }

// ArtifactType is asked for by partial.Descriptor.
func (plain) ArtifactType() (string, error) { return "", nil }

// one makes the image of one platform. What changes least comes first.
func (i Image) one(p Program, executables []madeLayer) (v1.Image, error) {
	base, err := layer(i.base(), i.Labels.Created, uncompressed)
	if err != nil {
		return nil, err
	}
	programs, err := layer(i.programs(p), i.Labels.Created, uncompressed)
	if err != nil {
		return nil, err
	}
	created := v1.Time{Time: i.Labels.Created.UTC()}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, a := range slices.Concat([]madeLayer{{base, "accounts, /tmp, license", nil}}, executables, []madeLayer{{programs, "operator, must-gather", nil}}) {
		if image, err = mutate.Append(image, mutate.Addendum{
			Layer: a.layer, MediaType: types.OCILayer, History: v1.History{Created: created, CreatedBy: a.by}, Annotations: a.annotations,
		}); err != nil {
			return nil, err
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.OS, p.Arch, created
	config.Config = v1.Config{
		User: user, WorkingDir: "/", Labels: i.Labels.configLabels(), Env: []string{"PATH=/usr/bin:/bin", "HOME=/tmp"},
		Entrypoint: []string{Operator}, Cmd: []string{"operator", "--payload", PayloadDir},
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, err
	}
	return mutate.Annotations(image, i.Labels.annotations()).(v1.Image), nil //nolint:forcetypeassert // it returns the type that it is given
}

// base is what programs expect of a Linux file system. CA certificates and time zones are in the operator itself.
func (i Image) base() []file {
	return []file{
		{name: "etc/passwd", mode: modeFile, data: []byte("root:x:0:0:root:/:/sbin/nologin\nwmco:x:65532:65532:wmco:/tmp:/sbin/nologin\n")},
		{name: "etc/group", mode: modeFile, data: []byte("root:x:0:\nwmco:x:65532:\n")},
		{name: "tmp", temporary: true},
		// Where oc adm must-gather mounts a volume, and where its entry point writes without one.
		{name: "must-gather", temporary: true},
		{name: "licenses/LICENSE", mode: modeFile, from: i.License},
	}
}

// madeLayer is a layer, and what it is for in the history of the image.
type madeLayer struct {
	layer       v1.Layer
	by          string
	annotations map[string]string
}

// executables returns a layer for each executable with its bill of materials, and one for the list: nodes fetch what they need, and the next release has the
// same layers for what it does not change.
func (i Image) executables(opened *store.Store) ([]madeLayer, error) {
	var all []madeLayer
	add := func(file string, files []file) error {
		made, err := layer(files, time.Unix(0, 0).UTC(), compressed)
		all = append(all, madeLayer{made, file + " for Windows nodes", map[string]string{fetch.LayerAnnotation: file}})
		return err
	}
	inFolder := func(name string) file {
		return file{name: inImage(PayloadDir, name), mode: modeFile, from: filepath.Join(i.Payload, name)}
	}
	for _, e := range opened.Entries() {
		files := []file{inFolder(e.File())}
		if bill := filepath.Join(i.Bills, billOf(e.Name)); exists(bill) {
			files = append(files, file{name: inImage(BillsDir, billOf(e.Name)), mode: modeFile, from: bill})
		}
		if err := add(e.File(), files); err != nil {
			return nil, err
		}
	}
	return all, add(store.ListFile, []file{inFolder(store.ListFile)})
}

// shellNames are the names of tools/shell.
func shellNames() []string { return []string{"sh", "sleep", "sync", "tar"} }

func (i Image) programs(p Program) []file {
	files := []file{
		{name: inImage(Operator), mode: modeProgram, from: p.Path},
		{name: inImage(Gather), link: path.Base(Operator)},
	}
	for _, shell := range i.Shells {
		if shell.Platform() != p.Platform() {
			continue
		}
		files = append(files, file{name: inImage("/usr/bin/bash"), mode: modeProgram, from: shell.Path}, file{name: "bin", link: "usr/bin"})
		for _, name := range shellNames() {
			files = append(files, file{name: inImage("/usr/bin", name), link: "bash"})
		}
	}
	return files
}

func inImage(elements ...string) string {
	return strings.TrimPrefix(path.Join(elements...), "/")
}

func billOf(name string) string { return name + ".cdx.json" }

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// ParseProgram reads linux/amd64=FILE.
func ParseProgram(text string) (Program, error) {
	platform, file, _ := strings.Cut(text, "=")
	system, arch, _ := strings.Cut(platform, "/")
	if system == "" || arch == "" || file == "" || strings.Contains(arch, "/") {
		return Program{}, fmt.Errorf("reading %q: write OS/ARCH=FILE", text)
	}
	return Program{OS: system, Arch: arch, Path: file}, nil
}

// check refuses a program that was built for something else: an image of the wrong platform does not say so before it
// starts. In an image without a C library, only static programs start.
func (p Program) check() error {
	info, err := buildinfo.ReadFile(p.Path)
	if err != nil {
		return fmt.Errorf("reading the build information of %q: %w", p.Path, err)
	}
	want := map[string]string{"GOOS": p.OS, "GOARCH": p.Arch, "CGO_ENABLED": "0"}
	for _, s := range info.Settings {
		if value, ok := want[s.Key]; ok && value != s.Value {
			return fmt.Errorf("%q is no program for %s: it was built with %s=%s", p.Path, p.Platform(), s.Key, s.Value)
		}
		delete(want, s.Key)
	}
	if len(want) > 0 {
		return fmt.Errorf("%q does not say for what it was built", p.Path)
	}
	return nil
}
