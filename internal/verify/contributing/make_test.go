package contributing

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// stub prints its arguments, one a line, in place of a program that the Makefile runs.
const stub = "#!/bin/sh\nprintf '%s\\n' \"$@\"\n"

// TestWhatGitSaysRunsNothing: tags come with a fetch from any fork, and authors with the commits that are merged. Neither is read by the shell that
// makes a release. A token in the URL of a clone is in nothing that is released.
func TestWhatGitSaysRunsNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "make"), os.DirFS(filepath.Join(root, "make"))); err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	writePrograms(t, dir, map[string]string{
		"Makefile": string(makefile), "bin/tools/modules": stub, "path/go": stub,
		"hack/step": stub, "hack/packages": stub, "hack/need": stub, "hack/downloads": stub,
	})
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "path")+":"+os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "MAKEFLAGS=", "MAKELEVEL=")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	const author = "x';touch ran;'$(touch ran)`touch ran`\"x"
	run("git", "init", "-q")
	run("git", "remote", "add", "origin", "https://user:hunter7@git.example.com/wmco.git")
	run("git", "-c", "user.name="+author, "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "x")
	run("git", "tag", "v9';touch${IFS}ran;'")

	out := run("make", "build", "payload", "olm-bundle", "IMAGE=x")
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("a name in git was run")
	}
	if strings.Contains(out, "hunter7") || strings.Contains(run("make", "-n", "image"), "hunter7") {
		t.Error("the token of the clone is in what is built")
	}
	for _, want := range []string{author + " <a@example.com>\n", "https://git.example.com/wmco", "-X main.version=dev"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// TestWineComesWithASignature: debootstrap goes on without one where it has no keys, as on Ubuntu, and what it downloads runs as root.
func TestWineComesWithASignature(t *testing.T) {
	dir := t.TempDir()
	script, err := os.ReadFile(filepath.Join(root, "hack", "wine-root"))
	if err != nil {
		t.Fatal(err)
	}
	writePrograms(t, dir, map[string]string{
		"hack/wine-root": string(script), "hack/step": stub, "hack/packages": stub, "path/id": "#!/bin/sh\necho 0\n", "path/unshare": "#!/bin/sh\n",
	})
	cmd := exec.Command(filepath.Join(dir, "hack", "wine-root"), filepath.Join(dir, "wine"))
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "path")+":"+os.Getenv("PATH"), "XDG_CACHE_HOME="+dir)
	out, _ := cmd.CombinedOutput() // nothing was installed
	for _, want := range []string{"debootstrap\ndebian-archive-keyring\n", "debootstrap\n--force-check-gpg\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// writePrograms writes programs below a folder.
func writePrograms(t *testing.T, dir string, texts map[string]string) {
	t.Helper()
	for name, text := range texts {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil { //nolint:gosec // programs
			t.Fatal(err)
		}
	}
}
