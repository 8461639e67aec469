package resolvers

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"wmco/bundle"
	"wmco/gateway/places"
	"wmco/gateway/signatures"
	"wmco/render/mirrors"
)

// slowStore is a registry with one image, which stops in the middle of its layer.
type slowStore struct {
	image Image
	// half is called once, after half of the layer; nil for never. cuts ends the connection then.
	half func()
	cuts bool
	// lies is true if one byte of the layer is another one.
	lies bool
	// realm is where a token is to be had; empty for none.
	realm string

	mu     sync.Mutex
	token  int
	ranges []string
}

// newSlowStore has a layer of which half fits into no buffers: when that is sent, containerd has read a part of it (tcp(7), tcp_rmem and tcp_wmem).
func newSlowStore(t *testing.T, n *network, name string) *slowStore {
	t.Helper()
	i, err := NewImage("large")
	if err != nil {
		t.Fatal(err)
	}
	layer := bytes.Repeat([]byte("0123456789abcdef"), 4<<20) // 64 MiB
	i.Manifest = bytes.ReplaceAll(i.Manifest, []byte(digest.FromBytes(i.Layer)), []byte(digest.FromBytes(layer)))
	i.Manifest = bytes.Replace(i.Manifest, []byte(`"size":`+strconv.Itoa(len(i.Layer))), []byte(`"size":`+strconv.Itoa(len(layer))), 1)
	i.Layer = layer
	s := &slowStore{image: i}
	n.serve(name, trusted, s)
	return s
}

// ServeHTTP implements http.Handler.
func (s *slowStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path == "/token" {
		s.token++
		_, _ = w.Write([]byte(`{"token":"` + strconv.Itoa(s.token) + `","expires_in":86400}`))
		return
	}
	if s.realm != "" && r.Header.Get("Authorization") != "Bearer "+strconv.Itoa(s.token) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="`+s.realm+`",service="slow"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	content := map[string][]byte{
		"manifests/1": s.image.Manifest, "manifests/" + s.image.Digest().String(): s.image.Manifest, "blobs/" + digest.FromBytes(s.image.Config).String(): s.image.Config,
		"blobs/" + digest.FromBytes(s.image.Layer).String(): s.image.Layer,
	}
	data, ok := content[strings.TrimPrefix(r.URL.Path, "/v2/app/img/")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if len(data) == len(s.image.Layer) {
		s.ranges = append(s.ranges, r.Header.Get("Range"))
		if s.lies {
			data = bytes.Clone(data)
			data[100]++
		}
		if half := s.half; half != nil {
			s.half = nil
			w.Header().Set("Content-Length", strconv.Itoa(len(data)))
			_, _ = w.Write(data[:len(data)/2])
			_ = http.NewResponseController(w).Flush()
			half()
			if s.cuts {
				panic(http.ErrAbortHandler)
			}
			_, _ = w.Write(data[len(data)/2:])
			return
		}
	}
	w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
	w.Header().Set("Docker-Content-Digest", digest.FromBytes(data).String())
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

// routedSlow is a table by which all of slow.test goes through the gateway.
func routedSlow() mirrors.Inputs {
	return scoped(inputs(), nil, []string{"slow.test/blocked"}, nil)
}

// TestExactPullsGoOn: what happens in the middle of a layer does not end the pull.
func TestExactPullsGoOn(t *testing.T) {
	for name, happen := range map[string]func(t *testing.T, s *slowStore, x *node){
		"the gateway is killed, and another one starts": func(t *testing.T, s *slowStore, x *node) {
			table, first := tableOf(t, routedSlow(), x), x.listener
			s.half = func() {
				_ = first.Close()
				again, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", x.address)
				if err != nil {
					t.Error(err)
					return
				}
				x.start(t, table, again)
			}
		},
		"the table changes": func(t *testing.T, s *slowStore, x *node) {
			in := scoped(inputs(), nil, []string{"slow.test/app"}, nil)
			table := tableOf(t, in, x)
			s.half = func() { x.handler.SetTable(table) }
		},
		"the login of containerd ends": func(_ *testing.T, s *slowStore, x *node) {
			s.half = func() {
				x.later.Store(int64(2 * time.Hour))
				x.listener.cut()
			}
		},
		"the token of the registry ends": func(_ *testing.T, s *slowStore, _ *node) {
			s.realm, s.cuts = "https://slow.test/token", true
			s.half = func() { s.token++ }
		},
		"the registry breaks off": func(_ *testing.T, s *slowStore, _ *node) {
			s.cuts = true
			s.half = func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, e := range Engines() {
				n := newNetwork(t)
				s := newSlowStore(t, n, "slow.test")
				x := n.exactNode(t, routedSlow())
				happen(t, s, x)
				ref := "slow.test/app/img@" + s.image.Digest().String()
				pulled, err := e.Pull(t.Context(), x.client(t, n), ref)
				if err != nil || len(pulled.Blobs) != 2 || pulled.Blobs[1] != string(s.image.Layer) {
					t.Errorf("%s: %v\n%s", e.Version, err, &x.log)
				}
				if s.half != nil {
					t.Errorf("%s: it did not happen", e.Version)
				}
				_, err = e.Pull(t.Context(), x.client(t, n), ref)
				if isBlocked := name == "the table changes"; isBlocked != (err != nil) || isBlocked && !strings.Contains(err.Error(), "slow.test/app is blocked") {
					t.Errorf("%s, the next pull: %v", e.Version, err)
				}
			}
		})
	}
	complaints.take()
}

// tableOf is the table of a node with other inputs.
func tableOf(t *testing.T, in mirrors.Inputs, x *node) places.Table {
	t.Helper()
	_, text, _ := net.SplitHostPort(x.address)
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	_, data, _, err := RenderExact(in, port)
	if err != nil {
		t.Fatal(err)
	}
	table, err := places.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestALyingMirrorEndsOnePull: containerd refuses what it got, and the next pull is from the source.
func TestALyingMirrorEndsOnePull(t *testing.T) {
	for _, e := range Engines() {
		n := newNetwork(t)
		liar, source := newSlowStore(t, n, "liar.test"), newSlowStore(t, n, "slow.test")
		liar.lies = true
		x := n.exactNode(t, inputs(set(idms, "slow.test/app", "", "liar.test/app")))
		ref := "slow.test/app/img@" + source.image.Digest().String()
		if _, err := e.Pull(t.Context(), x.client(t, n), ref); err == nil {
			t.Errorf("%s: a layer with another byte was taken", e.Version)
		}
		pulled, err := e.Pull(t.Context(), x.client(t, n), ref)
		if err != nil || len(pulled.Blobs) != 2 || pulled.Blobs[1] != string(source.image.Layer) {
			t.Errorf("%s: %v\n%s", e.Version, err, &x.log)
		}
	}
	complaints.take()
}

// TestExactSignatures: a policy refuses an image, and what containerd reports has its name.
func TestExactSignatures(t *testing.T) {
	in := inputs()
	in.Policies = []mirrors.SignaturePolicy{{
		Ref: bundle.Ref{Kind: "ClusterImagePolicy", Name: "vendor"}, Scopes: []string{"slow.test/app"},
		Requirement: places.Requirement{Type: places.SigstoreSigned, KeyData: []byte("key"), SignedIdentity: places.Identity{Type: "matchRepository"}},
	}}
	for _, e := range Engines() {
		n := newNetwork(t)
		s := newSlowStore(t, n, "slow.test")
		x := n.exactNode(t, in)
		var asked []string
		accepted := false
		x.verify = func(_ context.Context, q signatures.Question) (signatures.Answer, error) {
			asked = append(asked, q.Image)
			return signatures.Answer{Accepted: accepted, Reason: "A signature was required, but no signature exists"}, nil
		}
		for _, ref := range []string{"slow.test/app/img:1", "slow.test/app/img@" + s.image.Digest().String()} {
			accepted = false
			_, err := e.Pull(t.Context(), x.client(t, n), ref)
			if want := "refused by ClusterImagePolicy/vendor: A signature was required, but no signature exists"; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", e.Version, err)
			}
			accepted = true
			if pulled, err := e.Pull(t.Context(), x.client(t, n), ref); err != nil || pulled.Digest != s.image.Digest() {
				t.Errorf("%s: %v\n%s", e.Version, err, &x.log)
			}
			if len(asked) < 2 || asked[0] != ref || asked[len(asked)-1] != ref {
				t.Errorf("%s: asked about %v, want %s", e.Version, asked, ref)
			}
			asked = nil
		}
	}
	complaints.take()
}
