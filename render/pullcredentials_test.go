package render

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/render/mirrors"
)

// pullSecretOf returns a pull secret of "key=base64" words.
func pullSecretOf(words string) bundle.Secret {
	var entries []string
	for _, w := range strings.Fields(words) {
		key, auth, _ := strings.Cut(w, "=")
		entries = append(entries, `"`+key+`":{"auth":"`+auth+`"}`)
	}
	return bundle.NewSecret(`{"auths":{` + strings.Join(entries, ",") + `}}`)
}

func clusterWithPullSecret(words string, sources ...string) Cluster {
	c := testCluster(bundle.PlatformNone)
	c.Mirrors = mirrored("a:1", sources...)
	c.Mirrors.PullSecret = pullSecretOf(words)
	return c
}

func fileAt(l bundle.Layer, path string) (bundle.File, bool) {
	if i := slices.IndexFunc(l.Files, func(f bundle.File) bool { return f.Path == path }); i >= 0 {
		return l.Files[i], true
	}
	return bundle.File{}, false
}

// TestPullCredentials: nodes have the pull secret as Linux nodes have it, for administrators alone, in both stages; and not where a setting forbids
// it.
func TestPullCredentials(t *testing.T) {
	const ab, cd = "YTpi", "Yzpk" // a:b and c:d
	want := "{\n  \"auths\": {\n    \"quay.io/org\": {\n      \"auth\": \"" + ab + "\"\n    }\n  }\n}\n"
	standIn := clusterWithPullSecret("")
	standIn.Mirrors.PullSecret = bundle.NewStandIn("Secret openshift-config/pull-secret")
	mirrorsOnly := clusterWithPullSecret("quay.io/org=" + ab)
	mirrorsOnly.Settings.PullSecret = PullSecretMirrorsOnly
	withheld := clusterWithPullSecret("r.example.com="+cd, "r.example.com=mirror.example.com")
	for name, c := range map[string]struct {
		cluster Cluster
		want    string
		secret  bool
	}{
		"an entry":                  {clusterWithPullSecret("quay.io/org=" + ab), want, true},
		"and one that is withheld":  {clusterWithPullSecret("quay.io/org="+ab+" r.example.com="+cd, "r.example.com=mirror.example.com"), want, true},
		"only one that is withheld": {withheld, "{\n  \"auths\": {}\n}\n", false},
		"no entry":                  {clusterWithPullSecret(""), "{\n  \"auths\": {}\n}\n", false},
		"for mirrors alone":         {cluster: mirrorsOnly},
		"the inputs lack it":        {standIn, "<stand-in: Secret openshift-config/pull-secret is not in the inputs>\n", false},
	} {
		for _, stage := range []bundle.Stage{bundle.StageJoin, bundle.StageJoined} {
			f, findings, err := NewFleet(c.cluster, Options{Key: bundle.Key("k")})
			if err != nil || f == nil {
				t.Fatalf("%s: %v, %v", name, findings, err)
			}
			file, _ := fileAt(f.shared[stage].layer, filePullCredentials)
			if diff := cmp.Diff(c.want, string(file.Content.Data)); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", name, stage, diff)
			}
			if file.Secret != c.secret || c.want != "" && file.Access != bundle.AccessAdmins || strings.Contains(string(file.Content.Shown()), ab) {
				t.Errorf("%s, %s: secret %t, access %s, shown %s", name, stage, file.Secret, file.Access, file.Content.Shown())
			}
		}
	}
}

// TestUrgentPullCredentials: a node whose other changes wait gets new passwords, and no entry that it did not have: its hosts files may have mirrors for that.
func TestUrgentPullCredentials(t *testing.T) {
	const one, two = "YTox", "YToy" // a:1 and a:2
	fleet := func(c Cluster) *Fleet {
		f, findings, err := NewFleet(c, Options{Key: bundle.Key("k")})
		if err != nil || f == nil {
			t.Fatalf("%v, %v", findings, err)
		}
		return f
	}
	// The node has a mirror of r.example.com, which is not in the cluster any more.
	has := fleet(clusterWithPullSecret("quay.io="+one+" gone.example.com="+one+" r.example.com="+one, "r.example.com=mirror.example.com")).shared[bundle.StageJoined].layer
	for name, c := range map[string]struct{ secret, want string }{
		"nothing new":                {"quay.io=" + one + " gone.example.com=" + one, ""},
		"a password":                 {"quay.io=" + two + " gone.example.com=" + one, "gone.example.com=" + one + " quay.io=" + two},
		"an entry of a mirrored one": {"quay.io=" + one + " gone.example.com=" + one + " r.example.com=" + one, ""},
		"both":                       {"quay.io=" + two + " gone.example.com=" + one + " r.example.com=" + two, "gone.example.com=" + one + " quay.io=" + two},
		"one that was removed":       {"quay.io=" + one, "quay.io=" + one},
	} {
		got, err := fleet(clusterWithPullSecret(c.secret)).Urgent(has)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var words []string
		if file, ok := fileAt(got.Layer, filePullCredentials); ok {
			for _, k := range decodePullCredentials(file.Content.Data) {
				words = append(words, k.Key+"="+k.Auth.Reveal())
			}
			if strings.Contains(string(file.Content.Shown()), one) || !file.Secret {
				t.Errorf("%s: it shows %s", name, file.Content.Shown())
			}
		}
		if diff := cmp.Diff(c.want, strings.Join(words, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if decodePullCredentials([]byte(bundle.StandIn("x"))) != nil {
		t.Error("a stand-in is read as credentials")
	}
	if content, err := pullCredentials([]mirrors.KubeletCredential{{Key: "a<b", Auth: bundle.NewSecret(one)}}); err != nil || !strings.Contains(string(content.Data), "a<b") {
		t.Errorf("%s, %v", content.Data, err)
	}
}
