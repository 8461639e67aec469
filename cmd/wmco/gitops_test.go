package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// repository is a repository laid out as in docs/gitops, with the programs that the pipelines call on the path: this wmco, and
// stand-ins of the programs that fetch the image of the release.
type repository struct {
	t    *testing.T
	dir  string
	bin  string
	home string
}

func newRepository(t *testing.T) repository {
	t.Helper()
	for _, program := range []string{"git", "sh", "curl", "jq", "tar"} {
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
	// Each of these gives the job the image of the release, with this program in it.
	release := "#!/bin/sh\nd=$(mktemp -d " + r.bin + "/release-XXXXXX) && mkdir -p $d/usr/bin && printf '#!/bin/sh\\nexec " + filepath.Join(r.bin, "wmco") + " \"$@\"\\n' >$d/usr/bin/wmco && chmod +x $d/usr/bin/wmco\n"
	r.write(filepath.Join(r.bin, "docker"), release+"exec tar -C $d/usr/bin -c wmco\n")
	r.write(filepath.Join(r.bin, "crane"), release+"exec tar -C $d -c usr\n")
	r.run(0, `git init --quiet --initial-branch=main . && printf 'comment.md\nwhole.md\nusr/\n' >.gitignore && git config user.name x && git config user.email x@example.com`)
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
	cmd.Env = append(os.Environ(), "PATH="+r.bin+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+r.home, "TMPDIR="+r.bin)
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != status {
		r.t.Fatalf("status %d, want %d: %v\n%s", code, status, err, out)
	}
	return string(out)
}

// comments are those of one pull request, as the API of GitHub or GitLab has them.
type comments struct {
	mu sync.Mutex
	// isGitLab is true for notes, which have no URL of their own and are changed by PUT.
	isGitLab bool
	bodies   []string
	// authors are the accounts of the comments, as far as they are given.
	authors  []string
	login    string
	requests []string
}

// ServeHTTP lists 100 comments a page, adds one by POST, and changes one by PATCH or PUT.
func (c *comments) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests, c.login = append(c.requests, r.Method), r.Header.Get("Authorization")+r.Header.Get("Private-Token")
	var sent struct{ Body string }
	_ = json.NewDecoder(r.Body).Decode(&sent)
	change := map[bool]string{true: http.MethodPut, false: http.MethodPatch}[c.isGitLab]
	switch r.Method {
	case http.MethodGet:
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		list := []map[string]any{}
		for i := (page - 1) * 100; i < min(page*100, len(c.bodies)); i++ {
			one := map[string]any{"id": i, "body": c.bodies[i]}
			if i < len(c.authors) {
				one[map[bool]string{true: "author", false: "user"}[c.isGitLab]] = map[string]string{"username": c.authors[i], "login": c.authors[i]}
			}
			if !c.isGitLab {
				one["url"] = fmt.Sprintf("http://%s/comments/%d", r.Host, i)
			}
			list = append(list, one)
		}
		_ = json.NewEncoder(w).Encode(list)
	case http.MethodPost:
		c.bodies = append(c.bodies, sent.Body)
	case change:
		i, err := strconv.Atoi(path.Base(r.URL.Path))
		if err != nil || i >= len(c.bodies) {
			http.Error(w, "no such comment", http.StatusNotFound)
			return
		}
		c.bodies[i] = sent.Body
	default:
		http.Error(w, "no such method", http.StatusMethodNotAllowed)
	}
}

// last is the comment of the pipeline. It is one, behind those of people.
func (c *comments) last(t *testing.T) string {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.bodies) != 151 {
		t.Fatalf("the pull request has %d comments: the pipeline adds one and changes it", len(c.bodies))
	}
	return c.bodies[150]
}

// pipeline is the scripts of a file, as one, and what its system sets.
type pipeline struct {
	script   string
	isGitLab bool
	login    string
	// temp is the folder for files of the job, if its system has one.
	temp string
}

// attached is the folder with whole.md.
func (p pipeline) attached(checkout string) string {
	if p.temp != "" {
		return p.temp
	}
	return checkout
}

func pipelines(t *testing.T) map[string]pipeline {
	t.Helper()
	return map[string]pipeline{
		"github-actions.yaml": {script: githubScript(t), login: "Authorization: Bearer x", temp: t.TempDir()},
		"gitlab-ci.yaml":      {script: gitlabScript(t, "wmco-of-the-release", "windows-nodes"), isGitLab: true, login: "x"},
		"tekton.yaml":         {script: tektonScript(t), login: "Bearer x"},
	}
}

// pullRequest is a repository in which a pull request against the branch base is checked, and its comments.
type pullRequest struct {
	repository
	told *comments
	env  []string
}

func newPullRequest(t *testing.T, p pipeline) pullRequest {
	t.Helper()
	r := newRepository(t)
	told := &comments{isGitLab: p.isGitLab}
	for i := range 150 {
		told.bodies = append(told.bodies, fmt.Sprintf("comment %d of a person", i))
	}
	server := httptest.NewServer(told)
	t.Cleanup(server.Close)
	list := server.URL + "/projects/1/merge_requests/7/notes"
	r.run(0, "git remote add origin . && git fetch --quiet origin")
	return pullRequest{r, told, []string{
		"BASE=base", "TOKEN=x", "COMMENTS_URL=" + list, "COMMENTS=" + list, "AUTH=Authorization: Bearer x", "GITHUB_PATH=/dev/null", "WMCO_IMAGE=registry.example.com/wmco:0.1.0",
		"COMMENT_TOKEN=x", "CI_API_V4_URL=" + server.URL, "CI_PROJECT_ID=1", "CI_MERGE_REQUEST_IID=7", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME=base", "RUNNER_TEMP=" + p.temp,
	}}
}

// TestAPullRequestRunsNothing: scripts and programs that a pull request brings are not run, and links that it brings are not followed, whatever
// they are called. In each case the pipeline ends with that status.
func TestAPullRequestRunsNothing(t *testing.T) {
	const elsewhere = "cd $HOME; find windows want mine 2>/dev/null | sort; cat mine 2>/dev/null || true"
	const bad = "#!/bin/sh\nenv >$HOME/stolen\n"
	for attack, tt := range map[string]struct {
		change string
		status int
		want   string
	}{
		"scripts, programs and a comment": {
			"for f in check.sh comment.sh; do printf '" + bad + "' >$f; done; mkdir -p usr/bin; for f in git sh jq curl wmco; do printf '" + bad + "' >usr/bin/$f; chmod +x usr/bin/$f; done" +
				"; printf '<!-- wmco golden check windows -->\nall is well' >comment.md; git add -f usr comment.md", 0, "No change on 2 nodes",
		},
		"files that git-lfs, where it is installed, would fetch from a server of the pull request": {
			"git config filter.lfs.smudge '[ -n \"$GIT_LFS_SKIP_SMUDGE\" ] || env >$HOME/stolen; cat'; echo '* filter=lfs' >.gitattributes; git add -f .gitattributes", 0, "No change on 2 nodes",
		},
		"links for what is read and written": {
			"echo mine >$HOME/mine; for f in comment.md whole.md; do ln -s $HOME/mine $f; done; mkdir $HOME/want; rm -r windows/want; ln -s $HOME/want windows/want; git add -f comment.md whole.md",
			1, "No change on 2 nodes",
		},
		"a link for the folder": {
			"mkdir $HOME/windows; cp -r windows/. $HOME/windows; sed -i \"s#[.][.]/#$PWD/#\" $HOME/windows/golden.yaml; rm -r windows; ln -s $HOME/windows windows", 2, "it is a link",
		},
	} {
		for name, p := range pipelines(t) {
			t.Run(attack+"/"+name, func(t *testing.T) {
				r := newPullRequest(t, p)
				r.run(0, tt.change+"; git add -A && git commit --quiet -m attack")
				before := r.run(0, elsewhere)
				r.run(tt.status, p.script, r.env...)
				if diff := cmp.Diff("", r.run(0, "cat $HOME/stolen 2>/dev/null || true")); diff != "" {
					t.Errorf("something of the pull request has run, with this environment:\n%s", diff)
				}
				if diff := cmp.Diff(before, r.run(0, elsewhere)); diff != "" {
					t.Errorf("what a link leads to is changed:\n%s", diff)
				}
				if got := r.told.last(t); !strings.Contains(got, tt.want) || strings.Contains(got, "all is well") {
					t.Errorf("the comment is:\n%s", got)
				}
			})
		}
	}
}

// TestALinkForTheProgramOfGitLab: the runner writes the program of the job before through a link of the merge request, in a container of its own. In that of the
// script the link may lead to something else.
func TestALinkForTheProgramOfGitLab(t *testing.T) {
	p := pipelines(t)["gitlab-ci.yaml"]
	r := newPullRequest(t, p)
	r.run(0, "mkdir -p usr $HOME/bin; printf '#!/bin/sh\\nenv >$HOME/stolen\\n' >$HOME/bin/wmco; chmod +x $HOME/bin/wmco; ln -s $HOME/bin usr/bin; git add -f usr; git commit --quiet -m attack")
	r.run(1, gitlabScript(t, "windows-nodes"), r.env...)
	if stolen := r.run(0, "cat $HOME/stolen 2>/dev/null || true"); stolen != "" {
		t.Errorf("a program of the merge request has run, with this environment:\n%s", stolen)
	}
}

func TestPipelinesCommentOnWhatAPullRequestChanges(t *testing.T) {
	for name, p := range pipelines(t) {
		t.Run(name, func(t *testing.T) {
			r := newPullRequest(t, p)
			told, env := r.told, r.env
			r.run(0, "sed -i s/50Mi/20Mi/ config/windows-machine-config.yaml && git commit --quiet -a -m change")
			r.run(1, p.script, env...)
			if got := told.last(t); !strings.Contains(got, "service kubelet") || !strings.Contains(got, "out of date") {
				t.Errorf("a forgotten update gives the comment:\n%s", got)
			}
			if told.login == "" || !strings.Contains(told.login, p.login) && !strings.Contains(p.login, told.login) {
				t.Errorf("the login is %q", told.login)
			}
			if whole, err := os.ReadFile(filepath.Join(p.attached(r.dir), "whole.md")); err != nil || !strings.HasPrefix(string(whole), "### Windows nodes") || !strings.Contains(string(whole), "service kubelet") {
				t.Errorf("whole.md is %.100q, %v", whole, err)
			}
			r.run(0, "wmco golden update windows && git add -A && git commit --quiet -m update")
			r.run(0, p.script, env...)
			got := told.last(t)
			if !strings.Contains(got, "service kubelet") || !strings.Contains(got, "windows-machine-config") || strings.Contains(got, "out of date") {
				t.Errorf("an updated pull request gives the comment:\n%s", got)
			}
			never := "printf '%s\n' 'apiVersion: config.openshift.io/v1' 'kind: ImageDigestMirrorSet' 'metadata: {name: never}' 'spec:' '  imageDigestMirrors:' '  - {source: quay.io/team, mirrors: [mirror.example.com/team], mirrorSourcePolicy: NeverContactSource}' >config/never.yaml"
			r.run(0, never+"; wmco golden update windows && git add -A && git commit --quiet -m never")
			r.run(2, p.script, env...)
			if got := told.last(t); !strings.Contains(got, "Refused:") || !strings.Contains(got, "quay.io") {
				t.Errorf("a mirror set that blocks more than it lists gives the comment:\n%s", got)
			}
			r.run(0, p.script, append(env, "FAIL_ON=error")...)
			r.run(0, "sed -i 's/logs:/lugs:/' config/windows-machine-config.yaml && git commit --quiet -a -m bad")
			r.run(2, p.script, env...)
			if got := told.last(t); !strings.Contains(got, "Refused:") || !strings.Contains(got, "lugs") {
				t.Errorf("refused inputs give the comment:\n%s", got)
			}
			if diff := cmp.Diff("", r.run(0, "git status --porcelain --untracked-files=no && git worktree list | sed 1d")); diff != "" {
				t.Errorf("the pipeline leaves something behind:\n%s", diff)
			}
		})
	}
}

// A comment that cannot be changed, because it is that of another account, is no reason to say nothing.
func TestACommentOfAnotherAccountIsLeft(t *testing.T) {
	r := newRepository(t)
	told := &comments{isGitLab: true, bodies: []string{"<!-- wmco golden check windows -->\na copy"}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Method == http.MethodPut {
			http.Error(w, "not yours", http.StatusForbidden)
			return
		}
		told.ServeHTTP(w, q)
	}))
	t.Cleanup(server.Close)
	r.run(0, "printf '<!-- wmco golden check windows -->\\nours\\n' >comment.md; ./comment.sh comment.md "+server.URL, "AUTH=PRIVATE-TOKEN: x")
	if len(told.bodies) != 2 || !strings.Contains(told.bodies[1], "ours") || !strings.Contains(told.bodies[0], "a copy") {
		t.Errorf("%q", told.bodies)
	}
}

// A comment that begins as that of the pipeline is not taken for it where its author is known to be another account.
func TestTheCommentIsThatOfTheAuthor(t *testing.T) {
	r := newRepository(t)
	for _, isGitLab := range []bool{false, true} {
		const mark = "<!-- wmco golden check windows -->\n"
		told := &comments{isGitLab: isGitLab, bodies: []string{mark + "forged", mark + "old"}, authors: []string{"mallory", "wmco[bot]"}}
		server := httptest.NewServer(told)
		t.Cleanup(server.Close)
		r.run(0, "printf '<!-- wmco golden check windows -->\\nours\\n' >comment.md; ./comment.sh comment.md "+server.URL, "AUTH=PRIVATE-TOKEN: x", "AUTHOR=wmco[bot]")
		if want := []string{mark + "forged", mark + "ours\n"}; !slices.Equal(told.bodies, want) {
			t.Errorf("%q, want %q", told.bodies, want)
		}
	}
}

// What is compared is for golden.yaml to say, which the pull request may change.
func TestTheCommentSaysThatOtherInputsAreCompared(t *testing.T) {
	r := newRepository(t)
	const otherGolden = "windows/golden.yaml` is another one than on the target branch"
	for _, change := range []string{"true", "echo '# changed' >>windows/golden.yaml && git commit --quiet -am changed"} {
		r.run(0, change)
		r.run(0, "./check.sh windows base comment.md", "FAIL_ON=error")
		text, err := os.ReadFile(filepath.Join(r.dir, "comment.md"))
		if err != nil || strings.Contains(string(text), otherGolden) != (change != "true") {
			t.Errorf("after %s: %v\n%s", change, err, text)
		}
	}
}

// A comment is shorter than GitHub takes, whatever changes, and names the file with the rest.
func TestALongCommentIsShortened(t *testing.T) {
	r := newRepository(t)
	r.run(0, "for i in $(seq 300); do printf '%s\n' --- 'apiVersion: config.openshift.io/v1' 'kind: ImageDigestMirrorSet' \"metadata: {name: m$i}\" 'spec:' '  imageDigestMirrors:' \"  - {source: r$i.example.com, mirrors: [mirror.example.com/r$i]}\"; done >config/many.yaml; wmco golden update windows && git add -A && git commit --quiet -m many")
	r.run(2, "./check.sh windows gone comment.md")
	r.run(0, "./check.sh windows base comment.md whole.md", "FAIL_ON=error")
	text, err := os.ReadFile(filepath.Join(r.dir, "comment.md"))
	if err != nil || len(text) > 65000 || len(text) < 200 || !strings.Contains(string(text), "see whole.md of this job") || strings.Contains(string(text), "<details>") {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	whole, err := os.ReadFile(filepath.Join(r.dir, "whole.md"))
	if err != nil || !strings.Contains(string(whole), "<details>") || !strings.Contains(string(whole), "r300.example.com") {
		t.Errorf("whole.md has %d bytes, %v", len(whole), err)
	}
}

// script is the scripts of a job, one after the other. A step that always runs does so after a failure, which stays that of the job.
func script(steps []pipelineStep) string {
	all := "job=0\n"
	for _, s := range steps {
		switch {
		case s.Run == "":
		case s.Always:
			all += "( " + s.Run + " ) </dev/null || job=$?\n"
		default:
			all += "[ \"$job\" -ne 0 ] || ( " + s.Run + " ) || job=$?\n"
		}
	}
	return "export PATH=\"$HOME/bin:$PATH\"\n" + all + "exit \"$job\"\n"
}

// pipelineStep is one step of a job.
type pipelineStep struct {
	Run    string
	Always bool
}

func githubScript(t *testing.T) string {
	t.Helper()
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct {
				Run string `json:"run"`
				If  string `json:"if"`
			} `json:"steps"`
		} `json:"jobs"`
	}
	readYAML(t, "github-actions.yaml", &workflow)
	var steps []pipelineStep
	for _, s := range workflow.Jobs["check"].Steps {
		steps = append(steps, pipelineStep{Run: strings.TrimSpace(s.Run), Always: s.If == "always()"})
	}
	return script(steps)
}

func gitlabScript(t *testing.T, names ...string) string {
	t.Helper()
	jobs := map[string]any{}
	readYAML(t, "gitlab-ci.yaml", &jobs)
	all := ""
	for _, name := range names {
		for _, line := range jobs[name].(map[string]any)["script"].([]any) {
			all += line.(string) + "\n"
		}
	}
	return all
}

func tektonScript(t *testing.T) string {
	t.Helper()
	var task struct {
		Spec struct {
			Steps []struct {
				Args   []string `json:"args"`
				Script string   `json:"script"`
			} `json:"steps"`
		} `json:"spec"`
	}
	readYAML(t, "tekton.yaml", &task)
	steps := task.Spec.Steps
	// The first step is run by the shell and tar of the image: tools/shell has tests of both.
	if want := "tar -C /usr/bin -c wmco >/release/wmco.tar"; len(steps) != 3 || steps[0].Args[0] != want {
		t.Fatalf("the first step is %q", steps[0].Args)
	}
	all := "mkdir -p $HOME/release && docker >$HOME/release/wmco.tar\n"
	for _, s := range steps[1:] { // each is a container of its own
		all += "( " + strings.ReplaceAll(s.Script, "/release", "$HOME/release") + ")\n"
	}
	return all
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

// TestAFileThatIsNoInputIsNotQuoted: golden.yaml can lead to any file, of which nothing is shown.
func TestAFileThatIsNoInputIsNotQuoted(t *testing.T) {
	clusters, err := filepath.Abs(filepath.Join("..", "..", "golden", "clusters"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"root:hunter2:0:0\nTOKEN=hunter2\n{\"a\": hunter2", "hunter2", "a: &x [hunter2, *hunter3]\n", "{\"hunter2\": \"hunter2\"}", "apiVersion: v1\nkind: Secret\nmetadata: {name: pull-secret, namespace: openshift-config}\ndata: {.dockerconfigjson: hunter2}\n",
		"apiVersion: v1\nkind: hunter2\nmetadata: {name: a}\n", "apiVersion: v1\nkind: ConfigMap\nmetadata: [hunter2]\n",
	} {
		for name, golden := range map[string]string{
			"from":    "from: [%[2]s/common, %[2]s/none, %[1]s]",
			"facts":   "from: [%[2]s/common, %[2]s/none]\nfacts: %[1]s",
			"payload": "from: [%[2]s/common, %[2]s/none]\npayload: %[1]s",
		} {
			base := t.TempDir()
			dir := filepath.Join(base, "windows")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for file, text := range map[string]string{filepath.Join(base, "secret"): text, filepath.Join(dir, "golden.yaml"): fmt.Sprintf(golden, "../secret", clusters)} {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, args := range [][]string{{"validate", "--golden", dir, "--strict"}, {"golden", "check", dir, "-o", "markdown"}} {
				var out bytes.Buffer
				status := runCommand(t.Context(), app{stdin: strings.NewReader(""), stdout: &out, stderr: &out, now: time.Now}, args)
				if strings.Contains(out.String(), "hunter") {
					t.Errorf("%s of %q by %s, status %d:\n%s", args[0], text, name, status, out.String())
				}
			}
		}
	}
}
