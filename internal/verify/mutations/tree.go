package mutations

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tree is a copy of the working tree that mutations are applied to. It stays at its place between runs, so that Go's
// build cache knows the packages in it.
type tree struct {
	// from is the working tree, at the copy.
	from, at string
}

// shared is the folder of built programs, which the copy has as a link.
const shared = "bin"

// syncTree makes the copy equal to the working tree: files that git has or would add. Files that are equal keep their
// times, so that go test knows them.
func (t tree) syncTree(ctx context.Context) error {
	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = t.from
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("listing the files of %s: %w", t.from, err)
	}
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		switch err := t.copyFile(name); {
		case errors.Is(err, fs.ErrNotExist): // removed, and not yet from git
		case err != nil:
			return fmt.Errorf("copying %s: %w", name, err)
		default:
			wanted[filepath.FromSlash(name)] = true
		}
	}
	if err := t.pruneTree(wanted); err != nil {
		return fmt.Errorf("cleaning the copy of the tree: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(t.from, shared), 0o755); err != nil {
		return err
	}
	err = os.Symlink(filepath.Join(t.from, shared), filepath.Join(t.at, shared))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// copyFile copies one file with its time, if the copy has another size or time.
func (t tree) copyFile(name string) error {
	from, to := filepath.Join(t.from, name), filepath.Join(t.at, name)
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", name)
	}
	have, err := os.Stat(to)
	if err == nil && have.Size() == info.Size() && have.ModTime().Equal(info.ModTime()) && have.Mode() == info.Mode() {
		return nil
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return replaceFile(to, content, info)
}

// replaceFile writes a file with the mode and time of another one.
func replaceFile(path string, content []byte, as fs.FileInfo) error {
	if err := os.WriteFile(path, content, as.Mode()); err != nil {
		return err
	}
	return errors.Join(os.Chmod(path, as.Mode()), os.Chtimes(path, as.ModTime(), as.ModTime()))
}

// pruneTree removes files from the copy that the working tree does not have.
func (t tree) pruneTree(wanted map[string]bool) error {
	return filepath.WalkDir(t.at, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(t.at, path)
		if err != nil || wanted[name] || name == shared {
			return err
		}
		return os.Remove(path)
	})
}

// withMutation calls do while a mutation is applied to the copy, and puts the file back.
func (t tree) withMutation(m Mutation, do func() error) (err error) {
	path := filepath.Join(t.at, filepath.FromSlash(m.File))
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("the file does not exist: %w", err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	mutated, err := m.Apply(string(content))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, replaceFile(path, content, info)) }()
	if err := os.WriteFile(path, []byte(mutated), info.Mode()); err != nil {
		return err
	}
	return do()
}

// isGo reports whether the mutated file is compiled, and whether that is for Windows alone.
func (m Mutation) isGo() (is, windows bool) {
	return strings.HasSuffix(m.File, ".go"), strings.HasSuffix(strings.TrimSuffix(m.File, ".go"), "_windows")
}

// compileTests builds the package of the mutated file. Tests that build programs of it would fail for the wrong reason.
func (t tree) compileTests(ctx context.Context, m Mutation) error {
	is, windows := m.isGo()
	if !is {
		return nil
	}
	build := t.goCommand(ctx, "go", "build", "./"+filepath.ToSlash(filepath.Dir(m.File)))
	if windows {
		build.Env = append(build.Environ(), "GOOS=windows", "GOARCH=amd64")
	}
	out, err := build.CombinedOutput()
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("the mutated package does not compile: %w\n%s", err, bytes.TrimSpace(out))
	}
	return ctx.Err()
}
