// Command demopull shows what mirrors.mode Exact does: a stand-in for a registry, the image gateway of a rendered node, and containerd's requests for two
// images. One comes through a mirror of a repository under another path, the other one is refused.
//
//	demopull OUT    in the root of the repository, with bin/wmco and bin/wmco-node
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/opencontainers/go-digest"

	"wmco/gateway/identity"
)

const mirrors = `apiVersion: config.openshift.io/v1
kind: ImageDigestMirrorSet
metadata: {name: team}
spec:
  imageDigestMirrors:
  - {source: quay.io/team/app, mirrors: [%[1]s/windows/tools], mirrorSourcePolicy: NeverContactSource}
---
apiVersion: config.openshift.io/v1
kind: Image
metadata: {name: cluster}
spec:
  registrySources: {insecureRegistries: [%[1]s], blockedRegistries: [quay.io/someone]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: windows-machine-config, namespace: openshift-windows-machine-config-operator}
data: {config.yaml: "mirrors: {mode: Exact}"}
`

func main() {
	if err := runDemo(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "make:", err)
		os.Exit(1)
	}
}

func runDemo(ctx context.Context, out string) error {
	manifest := []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json"}`)
	d := digest.FromBytes(manifest).String()
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/windows/tools/manifests/"+d {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		_, _ = w.Write(manifest)
	}))
	defer mirror.Close()
	objects := filepath.Join(out, "mirrors.yaml")
	text := fmt.Sprintf(mirrors, strings.TrimPrefix(mirror.URL, "http://"))
	if err := errors.Join(os.RemoveAll(out), os.MkdirAll(out, 0o750), os.WriteFile(objects, []byte(text), 0o600)); err != nil {
		return err
	}
	fmt.Printf("\n$ cat %s\n%s", objects, text)
	render := exec.CommandContext(ctx, "bin/wmco", "render", "--from", "golden/clusters/common", "--from", "golden/clusters/none", "--from", objects, "--facts", "golden/facts/none.json", "--node", "win-a", "--out", filepath.Join(out, "node"))
	if text, err := render.CombinedOutput(); err != nil {
		return fmt.Errorf("rendering: %w: %s", err, text)
	}
	state := filepath.Join(out, "state")
	gateway := exec.CommandContext(ctx, "bin/wmco-node", "registry", "--places", filepath.Join(out, "node", "C", "k", "registry", "places.json"), "--state", state, "--listen", "127.0.0.1:0", "--metrics=")
	fmt.Printf("\n$ %s &\n", strings.Join(gateway.Args, " "))
	log, err := gateway.StderrPipe()
	if err != nil {
		return err
	}
	if err := gateway.Start(); err != nil {
		return err
	}
	defer func() { _, _ = gateway.Process.Signal(os.Interrupt), gateway.Wait() }()
	lines := bufio.NewScanner(log)
	address := awaitLine(lines, `msg=started .*address=(\S+)`)
	awaitLine(lines, `certificates were (made)`)
	client, err := newClient(state)
	if err != nil {
		return err
	}
	pulled, err := askManifest(ctx, client, address, "team/app", d)
	if err != nil {
		return err
	}
	fmt.Printf("\nquay.io/team/app@%.14s...: %s, from %s\n", d, pulled, awaitLine(lines, `msg="passed on".* from=(\S+)`))
	refused, err := askManifest(ctx, client, address, "someone/tool", "v1")
	if err != nil {
		return err
	}
	fmt.Printf("quay.io/someone/tool:v1: %s\n", refused)
	if pulled != "200 OK" || !strings.HasPrefix(refused, "403 ") || !strings.Contains(refused, "quay.io/someone is blocked (Image/cluster)") {
		return errors.New("the gateway answered otherwise")
	}
	return nil
}

// awaitLine returns what a line of the log has.
func awaitLine(lines *bufio.Scanner, pattern string) string {
	for lines.Scan() {
		if m := regexp.MustCompile(pattern).FindStringSubmatch(lines.Text()); m != nil {
			return m[1]
		}
	}
	return ""
}

// newClient returns containerd's client: it has the certificate that the gateway made for it.
func newClient(state string) (*http.Client, error) {
	ca, err := os.ReadFile(filepath.Join(state, identity.CA))
	if err != nil {
		return nil, err
	}
	own, err := tls.LoadX509KeyPair(filepath.Join(state, identity.Client), filepath.Join(state, identity.Client))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS13}}}, nil
}

// askManifest asks for a manifest of quay.io as containerd does, and returns the status line.
func askManifest(ctx context.Context, client *http.Client, address, repository, reference string) (string, error) {
	var login struct{ Token string }
	_, body, err := getBody(ctx, client, "https://"+address+"/token", "")
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(body, &login); err != nil {
		return "", err
	}
	status, _, err := getBody(ctx, client, "https://"+address+"/v2/"+repository+"/manifests/"+reference+"?ns=quay.io", login.Token)
	return status, err
}

// getBody returns the status line and the body of an answer.
func getBody(ctx context.Context, client *http.Client, url, token string) (status string, body []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", nil, err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(r)
	if err != nil {
		return "", nil, err
	}
	body, err = io.ReadAll(answer.Body)
	return answer.Status, body, errors.Join(err, answer.Body.Close())
}
