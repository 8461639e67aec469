package consumers

import (
	"bufio"
	"encoding/base64"
	"os"
	"strings"
	"testing"

	"k8s.io/kubernetes/pkg/credentialprovider"
)

// TestKubeletsUseEntriesAsTheTableSays: the real kubelet's answers to the table that render/mirrors decides by. Each line is the key of an entry, an image, and
// whether a kubelet has the credentials of the entry for that image.
func TestKubeletsUseEntriesAsTheTableSays(t *testing.T) {
	file, err := os.Open(repository + "/render/mirrors/testdata/kubelet-keys.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	yes, lines := 0, bufio.NewScanner(file)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) != 3 {
			t.Fatalf("not a line of the table: %q", lines.Text())
		}
		config, err := readPullCredentials(t.TempDir(), map[string]any{"auths": map[string]any{words[0]: map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte("u:p"))}}})
		if err != nil {
			t.Fatal(err)
		}
		keyring := &credentialprovider.BasicDockerKeyring{}
		keyring.Add(nil, config)
		got := "no"
		if _, found := keyring.Lookup(words[1]); found {
			got, yes = "yes", yes+1
		}
		if got != words[2] {
			t.Errorf("%s for %s: the kubelet gives %s", words[0], words[1], got)
		}
	}
	if err := lines.Err(); err != nil || yes < 30 {
		t.Errorf("%d lines with yes, %v", yes, err)
	}
}
