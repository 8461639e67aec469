package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"wmco/internal/cli"
)

// asked is what an API server that refuses everything was asked, by whom.
type asked struct {
	mu      sync.Mutex
	headers []http.Header
	// status is that of its answers.
	status int
}

// ServeHTTP implements http.Handler.
func (a *asked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.headers = append(a.headers, r.Header.Clone())
	w.WriteHeader(a.status)
}

// twoClusters writes a kubeconfig with two clusters and two users. The context has the first of each; requests to the second cluster are kept.
func twoClusters(t *testing.T) *asked {
	t.Helper()
	a := &asked{status: http.StatusForbidden}
	server := httptest.NewTLSServer(a) // client-go sends no token without TLS
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"one": {Server: "http://127.0.0.1:1"}, "two": {Server: server.URL, InsecureSkipTLSVerify: true}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"jane": {Token: "jane-token"}, "john": {Token: "john-token"}},
		Contexts:  map[string]*clientcmdapi.Context{"c": {Cluster: "one", AuthInfo: "jane"}}, CurrentContext: "c",
	}, kubeconfig); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	return a
}

// runLine runs a command line. It returns its exit status and what it prints.
func runLine(t *testing.T, line string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	status = runCommand(t.Context(), app{stdin: strings.NewReader(""), stdout: &out, stderr: &errOut, now: time.Now}, strings.Fields(line))
	return status, out.String(), errOut.String()
}

// TestCommandsThatReadAClusterAskItAsTheFlagsSay: as another user, of another cluster, and impersonating.
func TestCommandsThatReadAClusterAskItAsTheFlagsSay(t *testing.T) {
	const flags = " --cluster two --user john --as admin --as-group ops --as-group dev --request-timeout 20s"
	for _, line := range []string{
		"validate --from cluster", "render --from cluster --all", "diff --from cluster --against golden", "status", "status --from cluster:c", "machineset --from cluster --name w",
		"gather --out " + t.TempDir(), "pause --all", "version",
	} {
		t.Run(line, func(t *testing.T) {
			a := twoClusters(t)
			status, _, errOut := runLine(t, line+flags)
			if len(a.headers) == 0 {
				t.Fatalf("the cluster is not asked: status %d, %s", status, errOut)
			}
			for _, h := range a.headers {
				if h.Get("Authorization") != "Bearer john-token" || h.Get("Impersonate-User") != "admin" || !slices.Equal(h.Values("Impersonate-Group"), []string{"ops", "dev"}) {
					t.Errorf("asked by %s as %q of %q", h.Get("Authorization"), h.Values("Impersonate-User"), h.Values("Impersonate-Group"))
				}
			}
		})
	}
}

// TestEachCommandWithAKubeconfigHasTheFlags, with completion, and so has each that reads sources.
func TestEachCommandWithAKubeconfigHasTheFlags(t *testing.T) {
	twoClusters(t)
	names := []string{"kubeconfig", "context", "cluster", "user", "as", "as-group", "request-timeout"}
	n := 0
	for _, cmd := range rootCommand(app{}).Commands() {
		if cmd.Flags().Lookup("kubeconfig") == nil && cmd.Flags().Lookup("from") == nil {
			continue
		}
		n++
		for _, name := range names {
			if cmd.Flags().Lookup(name) == nil {
				t.Errorf("%s has no flag --%s", cmd.Name(), name)
			}
		}
	}
	if n < 10 {
		t.Errorf("only %d commands read a cluster", n)
	}
	for flag, want := range map[string]string{"--cluster": "one\ntwo\n", "--user": "jane\njohn\n", "--context": "c\n"} {
		if _, got, _ := runLine(t, "__complete status "+flag+" x"); !strings.HasPrefix(got, want) {
			t.Errorf("%s is completed with %q, want %q", flag, got, want)
		}
	}
}

// TestFlagsOfAClusterThatAreWrong.
func TestFlagsOfAClusterThatAreWrong(t *testing.T) {
	for line, want := range map[string]string{
		"status --as-group ops":            "give --as too",
		"status --request-timeout soon":    "--request-timeout soon: must be a duration such as 10s",
		"status --cluster three":           "three",
		"pause --all --request-timeout -x": "must be a duration",
	} {
		a := twoClusters(t)
		if status, _, errOut := runLine(t, line); status != cli.ExitUsage || !strings.Contains(errOut, want) || len(a.headers) > 0 {
			t.Errorf("%s: status %d, asked %d times: %s", line, status, len(a.headers), errOut)
		}
	}
}

// TestATokenThatHasExpiredIsNamed: kubectl names it too, and client-go does not.
func TestATokenThatHasExpiredIsNamed(t *testing.T) {
	for _, line := range []string{"status", "validate --from cluster", "diff --from cluster --against golden", "pause --all", "machineset --from cluster --name w"} {
		twoClusters(t).status = http.StatusUnauthorized
		status, stdout, errOut := runLine(t, line+" --cluster two")
		if status != cli.ExitUnreachable || stdout != "" || !strings.Contains(errOut, "the cluster does not accept the credentials of the kubeconfig: the token may have expired (fix: log in again, such as with oc login)") {
			t.Errorf("%s: status %d, %q, %s", line, status, stdout, errOut)
		}
	}
	twoClusters(t)
	if status, _, errOut := runLine(t, "status --context d"); status != cli.ExitUsage || !strings.Contains(errOut, `context "d" does not exist, it has c`) || !strings.Contains(errOut, "kubeconfig") {
		t.Errorf("status %d: %s", status, errOut)
	}
}
