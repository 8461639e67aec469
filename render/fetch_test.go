package render

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/payload"
	"wmco/payload/sources"
	"wmco/render/mirrors"
)

const operatorImage = "quay.example.com/org/wmco@sha256:" + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// builtPayload is a payload with every executable of the table.
func builtPayload() payload.Set {
	s := payload.Set{Source: "payload"}
	for _, x := range payload.Table() {
		b := payload.Blob{Digest: bundle.Of([]byte(x.Name)), Size: 10}
		s.Built = append(s.Built, payload.Built{Name: x.Name, Version: x.Version, Digest: b.Digest, Size: b.Size, Stored: b})
	}
	return s
}

// listOf returns the list of executables in the cluster layer of joined nodes; nil if there is none.
func executableListOf(t *testing.T, c Cluster, image string) (*sources.List, bundle.File, bundle.Findings) {
	t.Helper()
	f, findings, err := NewFleet(c, Options{Key: bundle.Key("k"), Payload: builtPayload(), Image: image})
	if err != nil || f == nil {
		t.Fatalf("%v, %v", findings, err)
	}
	if _, ok := fileAt(f.shared[bundle.StageJoin].layer, sources.File); ok {
		t.Error("hosts that join have a list")
	}
	file, ok := fileAt(f.shared[bundle.StageJoined].layer, sources.File)
	if !ok {
		return nil, file, findings
	}
	l, err := sources.Decode(file.Content.Data)
	if err != nil {
		t.Fatal(err)
	}
	return &l, file, findings
}

// TestListOfExecutables has those of the cluster's version and platform, and the places of the operator's image with their credentials.
func TestListOfExecutables(t *testing.T) {
	auth := base64.StdEncoding.EncodeToString([]byte("u:p"))
	c := clusterWithPullSecret("mirror.example.com="+auth+" quay.example.com="+auth, "quay.example.com/org=mirror.example.com/copies")
	c.Settings.Rollout.FetchRate = "1Mi"
	l, file, _ := executableListOf(t, c, operatorImage)
	if l == nil {
		t.Fatal("there is none")
	}
	var got []string
	for _, p := range l.Places {
		got = append(got, p.Name()+" "+p.Auth.Reveal())
	}
	want := []string{"mirror.example.com/copies/wmco " + auth, "quay.example.com/org/wmco " + auth}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if l.Rate != 1<<20 || l.Payload != builtPayload().For(c.Kubernetes()).Digest() || !file.Secret || file.Access != bundle.AccessAdmins || strings.Contains(string(file.Content.Shown()), auth) {
		t.Errorf("rate %d, %s, secret %t, access %s", l.Rate, l.Payload, file.Secret, file.Access)
	}
	c.Settings.PullSecret = PullSecretMirrorsOnly
	if only, _, _ := executableListOf(t, c, operatorImage); only.Places[0].Auth.Reveal() != auth || !only.Places[1].Auth.IsZero() {
		t.Error("with pullSecret: MirrorsOnly, nodes have the entry of the registry")
	}
	c.Settings.PullSecret = PullSecretNode
	has := func(name string) bool {
		return slices.ContainsFunc(l.Executables, func(x sources.Executable) bool { return x.Name == name })
	}
	kubelet := payload.For(payload.Kubelet, c.Kubernetes()).Name
	other := payload.For(payload.Kubelet, payload.Releases()[0].Minor).Name
	if !has(payload.Agent) || !has(kubelet) || other == kubelet || has(other) || has(payload.Verifier) {
		t.Errorf("%v", l.Executables)
	}
	// What a node is to run is in the list.
	f, _, err := NewFleet(c, Options{Key: bundle.Key("k"), Payload: builtPayload(), Image: operatorImage})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range f.shared[bundle.StageJoined].layer.Payload {
		if !slices.ContainsFunc(l.Executables, func(x sources.Executable) bool { return x.Raw.Digest == p.Digest }) {
			t.Errorf("%s is not listed", p.Path)
		}
	}
}

// TestWhoHasNoListOfExecutables, and who is told why.
func TestWhoHasNoListOfExecutables(t *testing.T) {
	for name, c := range map[string]struct {
		image  string
		change func(*Cluster)
		warned bool
		list   bool
	}{
		"the image is not known":      {image: ""},
		"the image was loaded":        {image: "sha256:" + strings.Repeat("ab", 32)},
		"an image by tag":             {image: "quay.example.com/org/wmco:latest"},
		"SSH alone":                   {image: operatorImage, change: func(c *Cluster) { c.Settings.Executables.From = ExecutablesFromSSH }},
		"the setting names another":   {image: "", change: func(c *Cluster) { c.Settings.Executables.Image = operatorImage }, list: true},
		"the registry is blocked":     {image: operatorImage, change: func(c *Cluster) { c.Mirrors.Scopes.Blocked = []string{"quay.example.com"} }, warned: true},
		"the registry is not allowed": {image: operatorImage, change: func(c *Cluster) { c.Mirrors.Scopes.Allowed = []string{"mcr.microsoft.com"} }, warned: true},
		"mirrored, and never the source": {image: operatorImage, change: func(c *Cluster) {
			c.Mirrors.Sets = []mirrors.Set{{Kind: mirrors.DigestSet, Source: "quay.example.com", Mirrors: []string{"m.example.com/q"}, Policy: mirrors.NeverContactSource}}
		}, list: true},
	} {
		cluster := testCluster(bundle.PlatformNone)
		if c.change != nil {
			c.change(&cluster)
		}
		l, _, findings := executableListOf(t, cluster, c.image)
		warned := slices.ContainsFunc(findings, func(f bundle.Finding) bool { return f.Reason == reason.ExecutablesNotPullable })
		if (l != nil) != c.list || warned != c.warned {
			t.Errorf("%s: list %v, findings %v", name, l, findings)
		}
	}
}

// TestSettingsOfExecutables are checked.
func TestSettingsOfExecutables(t *testing.T) {
	for text, field := range map[string]string{
		"executables: {from: Mail}":                                   "executables.from",
		"executables: {image: quay.io/org/wmco:v1}":                   "executables.image",
		"rollout: {fetchNodes: 0}":                                    "rollout.fetchNodes",
		"rollout: {fetchRate: fast}":                                  "rollout.fetchRate",
		"rollout: {fetchRate: 1Ki}":                                   "rollout.fetchRate",
		`rollout: {fetchRate: "-1"}`:                                  "rollout.fetchRate",
		"rollout: {fetchRate: 100m}":                                  "rollout.fetchRate",
		"executables: {from: Registry, image: " + operatorImage + "}": "",
		"rollout: {fetchRate: 2500Ki, fetchNodes: 3}":                 "",
	} {
		_, findings := DecodeSettings(text, bundle.Ref{Kind: "ConfigMap", Name: SettingsConfigMap})
		if field == "" && len(findings) > 0 || field != "" && !strings.Contains(fmt.Sprint(findings), field) {
			t.Errorf("%s: %v", text, findings)
		}
	}
}

// TestAListOfExecutablesNeedsNoOthers: a node that waits for the executables of its list gets the list.
func TestAListOfExecutablesNeedsNoOthers(t *testing.T) {
	layer := func(image string) bundle.Layer {
		f, _, err := NewFleet(testCluster(bundle.PlatformNone), Options{Key: bundle.Key("k"), Payload: builtPayload(), Image: image})
		if err != nil {
			t.Fatal(err)
		}
		return f.shared[bundle.StageJoined].layer
	}
	kept, err := Keep(layer(""), layer(operatorImage))
	if _, ok := fileAt(kept, sources.File); err != nil || !ok {
		t.Errorf("%v", err)
	}
}
