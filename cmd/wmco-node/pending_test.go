package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/util/keyutil"

	"wmco/internal/cli"
)

func TestThePendingKeyOfTheKubeletIsPrintedWithoutItsPrivateHalf(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	body := strings.Split(string(private), "\n")[1]
	for name, tt := range map[string]struct {
		file   string
		status int
		want   []byte
	}{
		"a key":          {string(private), cli.ExitDone, public},
		"none":           {"", cli.ExitDone, nil},
		"a damaged key":  {strings.Replace(string(private), body, body[1:], 1), cli.ExitPartial, nil},
		"something else": {"secret " + body, cli.ExitPartial, nil},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if out, err := execute(t, "--root", root, "machine", "create"); err != cli.ExitDone {
				t.Fatal(out)
			}
			if tt.file != "" {
				path := filepath.Join(root, "C", "var", "lib", "kubelet", "pki", "kubelet-client.key.tmp")
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(tt.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out, status := execute(t, "--root", root, "pending-key")
			if status != tt.status || strings.Contains(out, body[:20]) {
				t.Fatalf("status %d, %s", status, out)
			}
			var answer struct{ PublicKey []byte }
			if err := json.Unmarshal([]byte(out), &answer); tt.status == cli.ExitDone && (err != nil || !bytes.Equal(answer.PublicKey, tt.want)) {
				t.Errorf("%s: %v", out, err)
			}
		})
	}
}

// execute runs a command line, and returns what it printed and its exit status.
func execute(t *testing.T, args ...string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &out, clock: clock{}, version: "test"}
	status := run(t.Context(), a, args)
	return out.String(), status
}
