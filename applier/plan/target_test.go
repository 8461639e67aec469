package plan

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/applier/protocol"
	"wmco/bundle"
)

// shownTarget is a target as sentences.
func shownTarget(t Target) []string {
	var lines []string
	for _, f := range t.Files {
		switch f.Kind {
		case FileAbsent:
			lines = append(lines, fmt.Sprintf("without %s: %s", f.ID, f.Reason))
		case FileDirectory, FileRegular, FileOther:
			access := string(f.Access)
			if f.Inherited != "" {
				access = "as around it, " + string(f.Inherited)
			}
			lines = append(lines, fmt.Sprintf("%s for %s", f.ID, access))
		}
	}
	for _, s := range t.Settings {
		if s.Present {
			lines = append(lines, fmt.Sprintf("%s = %s", s.ID(), s.Value.Text))
		} else {
			lines = append(lines, fmt.Sprintf("without %s", s.ID()))
		}
	}
	for _, s := range t.Services {
		if s.Present {
			lines = append(lines, fmt.Sprintf("service %s: %s, runs %t", s.Config.Name, s.Config.CommandLine, s.Run))
		} else {
			lines = append(lines, "without service "+s.Config.Name)
		}
	}
	return lines
}

// TestTargetOfABundle: folders come before files and outer ones first. A folder that the bundle does not name has the access of the one around it.
func TestTargetOfABundle(t *testing.T) {
	b := testBundle()
	b.Cluster.Directories = append(b.Cluster.Directories, bundle.Directory{Path: `C:\k\tls`, Access: bundle.AccessAdmins})
	b.Node.Files = append(b.Node.Files, bundle.File{Path: `C:\k\tls\deep\deeper\key`, Digest: bundle.Of(nil), Access: bundle.AccessAdmins})
	b.Node.Files = append(b.Node.Files, bundle.File{Path: `C:\var\log\a`, Digest: bundle.Of(nil), Access: bundle.AccessUsers})
	got := NewTarget(b, contents())
	if diff := cmp.Diff([]string{
		`directory C:\k for as around it, users`,
		`directory C:\k\cni for admins`,
		`directory C:\k\tls for admins`,
		`directory C:\k\tls\deep for as around it, admins`,
		`directory C:\k\tls\deep\deeper for as around it, admins`,
		`directory C:\ProgramData\containerd for admins`,
		`directory C:\var for `, // it is above a root: others have made it
		`directory C:\var\log for as around it, users`,
		`file C:\k\cni\cni.conf for users`,
		`file C:\k\kubelet.conf for users`,
		`payload C:\k\kubelet.exe for users`,
		`file C:\k\tls\deep\deeper\key for admins`,
		`file C:\k\token for admins`,
		`payload C:\k\unknown.exe for users`,
		`file C:\var\log\a for users`,
		"route 169.254.169.254/32 = 10.0.0.1",
		"feature Containers = ",
		"endpoint VIPEndpoint = OVNKubernetesHNSNetwork/1",
		`service containerd: C:\k\containerd.exe, runs true`,
		`service kubelet: C:\k\kubelet.exe --v=2, runs true`,
	}, shownTarget(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]Variable{{Name: proxyName, Value: PlainValue(proxyValue)}}, got.Services[1].Variables); diff != "" {
		t.Errorf("variables of kubelet (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"containerd", "kubelet"}, got.ServiceNames()); diff != "" {
		t.Errorf("services (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{bundle.FoldPath(cniFolder): true}, got.Exclusive) + cmp.Diff(map[string]bool{bundle.FoldPath(logFolder): true}, got.Logs); diff != "" {
		t.Errorf("exclusive folders and folders of logs (-want +got):\n%s", diff)
	}
}

// TestDropUnwanted: entries of an earlier bundle that this one does not want are removed, but for those that are not the operator's, or must not go.
func TestDropUnwanted(t *testing.T) {
	key := bundle.AuthorizedKey{Fingerprint: "SHA256:A", Line: "ssh-ed25519 AAAA"}
	earlier := testBundle()
	earlier.Node.AuthorizedKeys = []bundle.AuthorizedKey{key}
	nothing := bundle.Bundle{Cluster: bundle.Layer{Kind: bundle.LayerCluster}, Node: bundle.Layer{Kind: bundle.LayerNode}}
	for _, tt := range []struct {
		name   string
		wanted bundle.Bundle
		owned  []bundle.Bundle
		found  map[bundle.EntryID]bool
		made   []string
		want   []string
	}{
		{name: "nothing was there before", wanted: nothing},
		{name: "nothing is wanted: features and the last authorized keys stay", wanted: nothing, owned: []bundle.Bundle{earlier}, want: []string{
			`without directory C:\k\cni: unwanted`,
			`without directory C:\ProgramData\containerd: unwanted`,
			`without file C:\k\cni\cni.conf: unwanted`,
			`without file C:\k\kubelet.conf: unwanted`,
			`without payload C:\k\kubelet.exe: unwanted`,
			`without file C:\k\token: unwanted`,
			`without payload C:\k\unknown.exe: unwanted`,
			"without route 169.254.169.254/32",
			"without endpoint VIPEndpoint",
			"without service containerd",
			"without service kubelet",
		}},
		{
			name: "another authorized key is wanted", owned: []bundle.Bundle{{Node: bundle.Layer{AuthorizedKeys: []bundle.AuthorizedKey{key}}}},
			wanted: bundle.Bundle{Node: bundle.Layer{AuthorizedKeys: []bundle.AuthorizedKey{{Fingerprint: "SHA256:B", Line: "ssh-ed25519 BBBB"}}}},
			want:   []string{"authorized-key SHA256:B = ssh-ed25519 BBBB", "without authorized-key SHA256:A"},
		},
		{
			name: "a setting that was found on the host stays", wanted: nothing, owned: []bundle.Bundle{{Cluster: bundle.Layer{Routes: earlier.Cluster.Routes}}},
			found: map[bundle.EntryID]bool{"route 169.254.169.254/32": true},
		},
		{
			name: "two earlier bundles want the same", wanted: nothing,
			owned: []bundle.Bundle{{Cluster: bundle.Layer{Routes: earlier.Cluster.Routes}}, {Cluster: bundle.Layer{Routes: earlier.Cluster.Routes}}},
			want:  []string{"without route 169.254.169.254/32"},
		},
		{name: "a folder that was made goes too", wanted: nothing, made: []string{`C:\k`, `C:\K`}, want: []string{`without directory C:\k: unwanted`}},
	} {
		got := NewTarget(tt.wanted, nil)
		got.DropUnwanted(tt.owned, tt.found, tt.made)
		if diff := cmp.Diff(tt.want, shownTarget(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	same := NewTarget(earlier, contents())
	same.DropUnwanted([]bundle.Bundle{earlier}, nil, []string{`C:\k`})
	if diff := cmp.Diff(shownTarget(NewTarget(earlier, contents())), shownTarget(same)); diff != "" {
		t.Errorf("all is wanted (-want +got):\n%s", diff)
	}
}

func TestValues(t *testing.T) {
	secret := Contents{tokenDigest: ContentOf([]byte("token"))}.ValueOf("", tokenDigest)
	for _, tt := range []struct {
		name  string
		value Value
		text  string
		want  bool
	}{
		{"a text", PlainValue("a"), "a", true},
		{"another text", PlainValue("a"), "b", false},
		{"a secret that is known by its content", secret, "token", true},
		{"another secret", secret, "other", false},
		{"a secret that is not known", Contents(nil).ValueOf("", tokenDigest), "token", false},
		{"an empty text for a secret that is not known", Contents(nil).ValueOf("", tokenDigest), "", false},
		{"a public content by its digest", Contents(nil).ValueOf("", bundle.Of([]byte("ca"))), "ca", true},
	} {
		if got := tt.value.EqualsText(tt.text); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
	if diff := cmp.Diff(Variable{Name: "A", Value: PlainValue("b=c")}, SplitVariable("A=b=c")); diff != "" {
		t.Errorf("a variable (-want +got):\n%s", diff)
	}
	if got := (Contents(nil)).ContentOf(bundle.Of([]byte("ca")), 0).Size; got != -1 {
		t.Errorf("the size of a content of which only the digest is known is %d", got)
	}
}

// TestNeededContents: a step needs what it writes, and nothing for the access of a file that has its content.
func TestNeededContents(t *testing.T) {
	secret := Value{Digest: tokenDigest, Content: ContentOf([]byte("token"))}
	need := []Need{{tokenDigest, secret.Content}}
	file := WantedFile{Digest: tokenDigest, Content: secret.Content}
	for _, tt := range []struct {
		name string
		step Step
		want []Need
	}{
		{"a file", Step{Action: protocol.Action{Verb: protocol.VerbWrite, Reason: protocol.ReasonDiffers}, File: file}, need},
		{"the access of a file", Step{Action: protocol.Action{Verb: protocol.VerbWrite, Reason: protocol.ReasonAccess}, File: file}, nil},
		{"a secret setting", Step{Action: protocol.Action{Verb: protocol.VerbSet}, Setting: WantedSetting{Value: secret}}, need},
		{"a plain setting", Step{Action: protocol.Action{Verb: protocol.VerbSet}, Setting: WantedSetting{Value: PlainValue("a")}}, nil},
		{"a service with a secret variable and a plain one", Step{Action: protocol.Action{Verb: protocol.VerbPut}, Service: WantedService{Variables: []Variable{{"A", PlainValue("a")}, {"B", secret}}}}, need},
		{"a start", Step{Action: protocol.Action{Verb: protocol.VerbStart}, Service: WantedService{Variables: []Variable{{"B", secret}}}}, nil},
	} {
		if diff := cmp.Diff(tt.want, tt.step.NeededContents()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
