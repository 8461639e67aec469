package mutations

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Need is what the tests of a mutation need to run.
type Need string

const (
	// NeedNothing is for tests in memory.
	NeedNothing Need = ""
	// NeedControlPlane is for tests with a real API server: make testenv.
	NeedControlPlane Need = "control plane"
	// NeedWine is for tests that run Windows programs: make wine.
	NeedWine Need = "wine"
)

// Mutation is one change of one safety line, and the tests that must fail with it.
type Mutation struct {
	Name string `json:"name"`
	// Sentence is what holds while the line is as it is.
	Sentence string `json:"sentence"`
	// File is a path in the tree, with slashes.
	File string `json:"file"`
	// Old stands in the file exactly once, New replaces it.
	Old string `json:"old"`
	New string `json:"new,omitempty"`
	// Package is the package of the tests, as go test takes it.
	Package string   `json:"package"`
	Tests   []string `json:"tests"`
	Needs   Need     `json:"needs,omitempty"`
}

// named is the form of a name.
var named = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Read returns the mutations of all YAML files of a folder in the order of their names. The error has everything that
// is wrong.
func Read(folder fs.FS) ([]Mutation, error) {
	files, err := fs.Glob(folder, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("finding the lists of mutations: %w", err)
	}
	var all []Mutation
	var errs []error
	for _, name := range files {
		data, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, fmt.Errorf("reading the list of mutations %s: %w", name, err)
		}
		var list []Mutation
		if err := yaml.UnmarshalStrict(data, &list); err != nil {
			errs = append(errs, fmt.Errorf("reading the list of mutations %s: %w", name, err))
		}
		all = append(all, list...)
	}
	seen := map[string]bool{}
	for _, m := range all {
		if err := m.check(); err != nil {
			errs = append(errs, fmt.Errorf("mutation %q: %w", m.Name, err))
		}
		if seen[m.Name] {
			errs = append(errs, fmt.Errorf("mutation %q: the name is used twice", m.Name))
		}
		seen[m.Name] = true
	}
	if len(all) == 0 && len(errs) == 0 {
		errs = append(errs, errors.New("there is no mutation in the list"))
	}
	slices.SortFunc(all, func(a, b Mutation) int { return strings.Compare(a.Name, b.Name) })
	return all, errors.Join(errs...)
}

// check returns the problem of a mutation, whatever the tree is.
func (m Mutation) check() error {
	switch {
	case !named.MatchString(m.Name):
		return errors.New("the name is not of lower-case words with hyphens between them")
	case strings.TrimSpace(m.Sentence) == "":
		return errors.New("the sentence is missing")
	case m.File == "" || path.Clean(m.File) != m.File || !filepath.IsLocal(m.File):
		return fmt.Errorf("file %q is not a clean path in the tree", m.File)
	case strings.TrimSpace(m.Old) == "" || m.Old == m.New:
		return errors.New("old is empty or equal to new")
	case !strings.HasPrefix(m.Package, "./"):
		return fmt.Errorf("package %q does not begin with ./", m.Package)
	case len(m.Tests) == 0 || slices.ContainsFunc(m.Tests, func(t string) bool {
		return !strings.HasPrefix(t, "Test") && !strings.HasPrefix(t, "Fuzz")
	}):
		return errors.New("tests are not names of tests")
	case m.Needs != NeedNothing && m.Needs != NeedControlPlane && m.Needs != NeedWine:
		return fmt.Errorf("needs %q is none of %q and %q", m.Needs, NeedControlPlane, NeedWine)
	}
	return nil
}

// Apply returns the content of the file with the mutation. Old must stand in it exactly once.
func (m Mutation) Apply(content string) (string, error) {
	if n := strings.Count(content, m.Old); n != 1 {
		return "", fmt.Errorf(
			"the old text stands %d times in %s, and must stand there once; fix: copy the text again from the line that the sentence is about",
			n, m.File,
		)
	}
	return strings.Replace(content, m.Old, m.New, 1), nil
}

// namePattern returns the -run of go test for exactly these tests.
func namePattern(tests []string) string {
	var all []string
	for _, t := range tests {
		parts := strings.Split(t, "/")
		for i, p := range parts {
			parts[i] = "^" + regexp.QuoteMeta(p) + "$"
		}
		all = append(all, strings.Join(parts, "/"))
	}
	return strings.Join(all, "|")
}
