package objects

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"wmco/bundle"
)

// stdinPath is the path that stands for standard input.
const stdinPath = "-"

// NewPathsReader reads files and folders in the given order, and standard input for the path "-". A named file may have
// any name. In a folder, *.yaml, *.yml and *.json are read at any depth, except in folders whose name begins with a
// dot. Links are followed to files inside the folder only. If two paths hold the same object, the later one wins. The
// path "-" can be given once, and not if stdin is nil.
func NewPathsReader(paths []string, stdin io.Reader) Reader {
	if stdin == nil {
		stdin = strings.NewReader("")
	}
	return &pathsReader{paths: paths, stdin: stdin}
}

// NewPathsReaderIn is NewPathsReader for paths relative to a folder. Findings show the paths as they are given.
func NewPathsReaderIn(dir string, paths []string) Reader {
	return &pathsReader{dir: dir, paths: paths, stdin: strings.NewReader("")}
}

type pathsReader struct {
	dir   string
	paths []string
	stdin io.Reader
}

// pathToOpen returns the path to open.
func (p *pathsReader) pathToOpen(name string) string {
	if p.dir == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.dir, name)
}

// Read implements Reader. It returns an error only when the context ends.
func (p *pathsReader) Read(ctx context.Context, wants []Want) (Set, error) {
	found := make(map[identity]Object)
	var findings bundle.Findings
	var unused []string
	var replacedObjects []Object
	buffer := &buffer{}
	for _, name := range p.paths {
		visit := &visit{wants: wants, kinds: newKinds(wants), buffer: buffer, stdin: p.stdin, place: p.pathToOpen}
		if err := visit.visitPath(ctx, name); err != nil {
			return Set{}, err
		}
		if len(visit.objects) == 0 && len(visit.findings) == 0 {
			unused = append(unused, filepath.ToSlash(name))
		}
		chosen, duplicates := chooseOne(visit.objects)
		findings = append(append(findings, visit.findings...), duplicates...)
		earlier, replacements := replaceEarlier(found, chosen)
		findings = append(findings, replacements...)
		replacedObjects = append(replacedObjects, earlier...)
	}
	set := newSet(found, findings)
	set.Unused, set.Replaced = unused, replacedObjects
	return set, nil
}

// visit reads everything at one path.
type visit struct {
	batch
	wants  []Want
	kinds  kinds
	buffer *buffer
	stdin  io.Reader
	// place returns the path to open.
	place func(string) string
}

// visitPath reads a file, a folder or standard input.
func (v *visit) visitPath(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if name == stdinPath {
		return v.visitNamedFile(ctx, name, v.stdin, 0)
	}
	source := filepath.ToSlash(name)
	info, err := os.Stat(v.place(name))
	if err != nil {
		v.addFinding(unreadableFinding(source, errorWithoutPath(err)))
		return nil
	}
	if info.IsDir() {
		return v.visitFolder(ctx, name)
	}
	file, err := os.Open(v.place(name))
	if err != nil {
		v.addFinding(unreadableFinding(source, errorWithoutPath(err)))
		return nil
	}
	defer closeQuietly(file)
	return v.visitNamedFile(ctx, source, file, sizeOf(info))
}

// visitNamedFile reads a file that the user named. It must be YAML or JSON.
func (v *visit) visitNamedFile(ctx context.Context, source string, file io.Reader, size int64) error {
	text, ok := v.loadFile(source, file, size)
	if !ok {
		return nil
	}
	if bytes.IndexByte(text, 0) >= 0 { // neither YAML nor JSON allows it
		v.addFinding(notManifest(source))
		return nil
	}
	r := &reading{wants: v.wants, kinds: v.kinds, source: source, byHand: len(text) <= maxByHand}
	err := v.readDocuments(ctx, r, text)
	if err == nil && !r.recognized {
		v.addFinding(notManifest(source))
	}
	return err
}

// visitFolder reads the manifests of a folder.
func (v *visit) visitFolder(ctx context.Context, name string) error {
	source := strings.TrimRight(filepath.ToSlash(name), "/") + "/"
	root, err := os.OpenRoot(v.place(name))
	if err != nil {
		v.addFinding(unreadableFinding(filepath.ToSlash(name), errorWithoutPath(err)))
		return nil
	}
	defer closeQuietly(root)
	return fs.WalkDir(root.FS(), ".", func(rel string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			v.addFinding(unreadableFinding(strings.TrimSuffix(source+rel, "/."), errorWithoutPath(err)))
			return nil
		case entry.IsDir() && rel != "." && strings.HasPrefix(entry.Name(), "."), entry.IsDir() && isOfHosts(root, rel):
			return fs.SkipDir
		case entry.IsDir() || !isManifestName(entry.Name()) || v.isOfOtherKind(root, rel):
			return nil
		}
		return v.visitFolderFile(ctx, root, rel, source+rel)
	})
}

// isManifestName reports whether a file of that name in a folder is read.
func isManifestName(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// gatheredPath matches the files in which a must-gather has objects of one resource: the folder of the must-gather, the
// API group, the resource.
var gatheredPath = regexp.MustCompile(`^(.*/)?(?:cluster-scoped-resources|namespaces/[^/]+)/([^/]+)/([^/.]+)(?:/[^/]+)?\.\w+$`)

// isOfOtherKind reports whether a file of a must-gather has objects of a kind that is not wanted: its Pods and Events
// are most of its text. A folder of a person may have such a path too, so the folder must look like a must-gather and
// the name of the group like one.
func (v *visit) isOfOtherKind(root *os.Root, rel string) bool {
	m := gatheredPath.FindStringSubmatch(rel)
	if m == nil {
		return false
	}
	group, resource := m[2], m[3]
	if group == "pods" { // each Pod again, beside its logs
		group, resource = groupCore, "pods"
	}
	if group != groupCore && !strings.Contains(group, ".") {
		return false
	}
	if !isMustGather(root, m[1]) {
		return false
	}
	return !slices.ContainsFunc(v.wants, func(w Want) bool {
		plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: w.Kind})
		return cmp.Or(w.Group, groupCore) == group && plural.Resource == resource
	})
}

// isMustGather reports whether a folder has those in which a must-gather has the objects of the cluster.
func isMustGather(root *os.Root, dir string) bool {
	for _, part := range []string{"cluster-scoped-resources", "namespaces"} {
		if info, err := root.Stat(path.Join(dir, part)); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// hostsFolder is where a must-gather has what hosts say (report/mustgather).
const hostsFolder = "nodes"

// isOfHosts reports whether a folder of a must-gather is that of the hosts. What a host has sent is no object of the
// cluster, however much it looks like one.
func isOfHosts(root *os.Root, rel string) bool {
	dir, name := path.Split(rel)
	return name == hostsFolder && isMustGather(root, dir)
}

// groupCore is the core group in a must-gather.
const groupCore = "core"

// visitFolderFile reads a file of a folder. It skips anything that is not a regular file, and links that are broken or
// lead out of the folder.
func (v *visit) visitFolderFile(ctx context.Context, root *os.Root, rel, source string) error {
	info, err := root.Stat(rel)
	if err != nil || !info.Mode().IsRegular() {
		return nil // a link that is broken or leads out of the folder, or a file that was deleted
	}
	file, err := root.Open(rel)
	if err != nil {
		v.addFinding(unreadableFinding(source, errorWithoutPath(err)))
		return nil
	}
	defer closeQuietly(file)
	text, ok := v.loadFile(source, file, info.Size())
	if !ok {
		return nil
	}
	return v.readDocuments(ctx, &reading{wants: v.wants, kinds: v.kinds, source: source}, text)
}

// loadFile reads a file. If it cannot be read, that is a finding.
func (v *visit) loadFile(source string, file io.Reader, size int64) ([]byte, bool) {
	text, err := v.buffer.loadText(file, size)
	switch {
	case errors.Is(err, errTooLarge):
		v.addFinding(fileTooLarge(source))
	case err != nil:
		v.addFinding(unreadableFinding(source, errorWithoutPath(err)))
	}
	return text, err == nil
}

// maxByHand is the size up to which a file that the user named may be written by hand.
const maxByHand = 1 << 20

// readDocuments reads the documents of a file.
func (v *visit) readDocuments(ctx context.Context, r *reading, text []byte) error {
	var all batch
	for s := range splitDocuments(text) {
		if err := ctx.Err(); err != nil {
			return err
		}
		all.appendBatch(r.readDocument(s))
	}
	all.findings = oneMalformed(all.findings)
	v.appendBatch(all)
	return nil
}

func (v *visit) addFinding(f bundle.Finding) { v.findings = append(v.findings, f) }

// closeQuietly closes a file that was only read, so that an error loses nothing.
func closeQuietly(c io.Closer) { _ = c.Close() }

// errorWithoutPath returns the error without the path, which the finding has.
func errorWithoutPath(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}
