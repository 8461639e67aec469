package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// repository is a repository laid out as docs/gitops says, with what the pipelines call on the path: this wmco, and
// stand-ins of the programs that post, which keep what they were given.
type repository struct {
	t    *testing.T
	dir  string
	bin  string
	home string
}

func newRepository(t *testing.T) repository {
	t.Helper()
	for _, program := range []string{"git", "sh"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	r := repository{t: t, dir: t.TempDir(), bin: t.TempDir(), home: t.TempDir()}
	docs, golden := filepath.Join("..", "..", "docs", "gitops"), filepath.Join("..", "..", "golden", "clusters")
	for _, from := range []string{filepath.Join(docs, "example"), docs} {
		if err := os.CopyFS(r.dir, os.DirFS(from)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	for _, part := range []string{"common", "none"} {
		if err := os.CopyFS(filepath.Join(r.dir, "snapshot", part), os.DirFS(filepath.Join(golden, part))); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The test binary runs main when testscript's TestMain finds it called wmco.
	if err := os.Symlink(self, filepath.Join(r.bin, "wmco")); err != nil {
		t.Fatal(err)
	}
	post := "#!/bin/sh\nprintf '%s\\n' \"$*\" >>" + r.bin + "/posted\n"
	r.write(filepath.Join(r.bin, "gh"), post+"cat comment.md >>"+r.bin+"/posted\n")
	r.write(filepath.Join(r.bin, "curl"), post+"cat >>"+r.bin+"/posted\n")
	r.write(filepath.Join(r.bin, "jq"), "#!/bin/sh\ncat comment.md\n")
	r.run(0, "git init --quiet --initial-branch=main . && echo comment.md >.gitignore && git config user.name x && git config user.email x@example.com")
	r.run(0, "wmco golden update windows && git add -A && git commit --quiet -m base && git branch base")
	return r
}

func (r repository) write(path, text string) {
	r.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

// run runs a shell script in the repository and checks its status.
func (r repository) run(status int, script string, env ...string) string {
	r.t.Helper()
	cmd := exec.Command("sh", "-eu", "-c", script)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "PATH="+r.bin+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+r.home)
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != status {
		r.t.Fatalf("status %d, want %d: %v\n%s", code, status, err, out)
	}
	return string(out)
}

func (r repository) posted() string {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.bin, "posted"))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(data)
}

func TestPipelinesCommentOnWhatAPullRequestChanges(t *testing.T) {
	steps := map[string]string{"github-actions.yaml": githubStep(t), "tekton.yaml": tektonStep(t)}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			env := []string{"BASE=base", "NUMBER=7", "TOKEN=x", "COMMENTS_URL=https://git.example.com/comments"}
			step := strings.ReplaceAll(step, "origin/$BASE", "$BASE")
			r.run(0, "sed -i s/50Mi/20Mi/ config/windows-machine-config.yaml && git commit --quiet -a -m change")
			r.run(1, step, env...)
			if got := r.posted(); !strings.Contains(got, "service kubelet") || !strings.Contains(got, "out of date") {
				t.Errorf("a forgotten update gives the comment:\n%s", got)
			}
			r.run(0, "rm "+r.bin+"/posted; wmco golden update windows && git add -A && git commit --quiet -m update")
			r.run(0, step, env...)
			got := r.posted()
			if !strings.Contains(got, "service kubelet") || !strings.Contains(got, "windows-machine-config") || strings.Contains(got, "out of date") {
				t.Errorf("an updated pull request gives the comment:\n%s", got)
			}
			never := "printf '%s\\n' 'apiVersion: config.openshift.io/v1' 'kind: ImageDigestMirrorSet' 'metadata: {name: never}' 'spec:' '  imageDigestMirrors:' '  - {source: mcr.microsoft.com, mirrors: [mirror.example.com], mirrorSourcePolicy: NeverContactSource}' >config/never.yaml"
			r.run(0, "rm "+r.bin+"/posted; "+never+"; wmco golden update windows && git add -A && git commit --quiet -m never")
			r.run(2, step, env...)
			if got := r.posted(); !strings.Contains(got, "cannot be pulled from anywhere") {
				t.Errorf("a mirror set that leaves no place to pull the pause image from gives the comment:\n%s", got)
			}
			r.run(0, step, append(env, "FAIL_ON=error")...)
			r.run(0, "echo 'nonsense: true' >> config/windows-machine-config.yaml && sed -i 's/logs:/lugs:/' config/windows-machine-config.yaml && git commit --quiet -a -m bad")
			r.run(2, step, env...)
			if diff := cmp.Diff("", r.run(0, "git status --porcelain --untracked-files=no && git worktree list | sed 1d")); diff != "" {
				t.Errorf("the pipeline leaves something behind:\n%s", diff)
			}
		})
	}
}

func githubStep(t *testing.T) string {
	t.Helper()
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct {
				Run string `json:"run"`
			} `json:"steps"`
		} `json:"jobs"`
	}
	readYAML(t, "github-actions.yaml", &workflow)
	steps := workflow.Jobs["check"].Steps
	return steps[len(steps)-1].Run
}

func tektonStep(t *testing.T) string {
	t.Helper()
	var task struct {
		Spec struct {
			Steps []struct {
				Script string `json:"script"`
			} `json:"steps"`
		} `json:"spec"`
	}
	readYAML(t, "tekton.yaml", &task)
	return task.Spec.Steps[0].Script
}

func readYAML(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "gitops", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}
