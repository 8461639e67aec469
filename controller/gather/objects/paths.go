package objects

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// stdinPath is the path that stands for standard input.
const stdinPath = "-"

// NewPathsReader reads files and folders in the given order, and standard input for the path "-". A named file may have any name.
// In a folder, *.yaml, *.yml and *.json are read at any depth, except in folders whose name begins with a dot. Links are
// followed to files inside the folder only. If two paths hold the same object, the later one wins. The path "-" can be
// given once, and not if stdin is nil.
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
	if isBinary(text) {
		v.addFinding(notManifest(source))
		return nil
	}
	r := &reading{wants: v.wants, kinds: v.kinds, source: source, byHand: len(text) <= maxByHand}
	err := v.readDocuments(ctx, r, text)
	if err == nil && !r.recognized && !r.provesFormat(text) {
		v.addFinding(notManifest(source))
	}
	return err
}

// isBinary reports whether the text has a byte that neither YAML nor JSON allows.
func isBinary(text []byte) bool { return bytes.IndexByte(text, 0) >= 0 }

// provesFormat reports whether a document of the file is YAML or JSON with content.
func (r *reading) provesFormat(text []byte) bool {
	for s := range splitDocuments(text) {
		if _, bad := r.parseWhole(s, typeMeta{}, 0); bad != nil || r.recognized {
			break
		}
	}
	return r.recognized
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
		case entry.IsDir() && rel != "." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case entry.IsDir() || !isManifestName(entry.Name()):
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

// visitFolderFile reads a file of a folder. It skips anything that is not a regular file, and links that are broken or lead out of
// the folder.
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
		found := r.readDocument(s)
		if r.byHand && found.foundNothing() {
			found = r.unparsableFinding(s)
		}
		all.appendBatch(found)
	}
	all.findings = oneMalformed(all.findings)
	v.appendBatch(all)
	return nil
}

// unparsableFinding returns a finding for a document that no parser can read. In a folder it may be none of the cluster's, so that is a warning, and there
// is none for a template or binary data.
func (r *reading) unparsableFinding(s segment) batch {
	if s.text[s.start] == '%' { // a directive, which belongs to the next document
		return batch{}
	}
	if !r.byHand && (bytes.Contains(s.text, []byte("{{")) || bytes.IndexByte(s.text, 0) >= 0 || !utf8.Valid(s.text)) {
		return batch{}
	}
	if s.text[s.start] == '{' && isJSONStream(s.text[s.start:]) || len(s.text)-s.start > maxObject {
		return batch{}
	}
	if _, bad := decodeSegment(s); bad != nil {
		f := r.malformedFinding(s, head{}, *bad)
		if !r.byHand {
			f.Severity, f.Reason, f.Fix = bundle.SeverityWarning, reason.DocumentSkipped, "correct the document, or remove it from the folder"
		}
		return batch{findings: bundle.Findings{f}}
	}
	return batch{}
}

// isJSONStream reports whether a text is JSON values one after the other.
func isJSONStream(text []byte) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	for {
		var value json.RawMessage
		switch err := d.Decode(&value); {
		case errors.Is(err, io.EOF):
			return true
		case err != nil:
			return false
		}
	}
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
