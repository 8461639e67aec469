package resolvers

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/gateway"
	"wmco/gateway/identity"
	"wmco/gateway/places"
	upstream "wmco/gateway/registry"
	"wmco/gateway/signatures"
	"wmco/render/mirrors"
)

// certificates is a folder of files.
type certificates string

func (c certificates) ReadFile(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(string(c), name))
}

func (c certificates) WriteFile(name string, data []byte) error {
	return os.WriteFile(filepath.Join(string(c), name), data, 0o600)
}

type realClock struct{}

func (realClock) Now() time.Time                         { return time.Now() }
func (realClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// node is a node with mirrors.mode Exact: its hosts files, and its gateway.
type node struct {
	files   Files
	folder  string
	address string
	log     strings.Builder

	network  *network
	handler  *gateway.Handler
	listener *cutListener
	// later is how far the clock of the gateway is ahead.
	later atomic.Int64
	// verify answers questions about signatures; nil for a gateway without policies.
	verify func(context.Context, signatures.Question) (signatures.Answer, error)
}

func (x *node) now() time.Time { return time.Now().Add(time.Duration(x.later.Load())) }

// cutListener keeps its connections, to cut them.
type cutListener struct {
	net.Listener
	mu   sync.Mutex
	open []net.Conn
}

// Accept implements net.Listener.
func (l *cutListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open = append(l.open, c)
	}
	return c, err
}

// cut closes all connections, as the end of the process does.
func (l *cutListener) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		_ = c.Close()
	}
	l.open = nil
}

// exactNode renders the files of a node, and starts its gateway by them.
func (n *network) exactNode(t *testing.T, in mirrors.Inputs) *node {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	x := &node{folder: t.TempDir(), address: listener.Addr().String(), network: n}
	files, data, findings, err := RenderExact(in, listener.Addr().(*net.TCPAddr).Port)
	if err != nil || findings.Refused() {
		t.Fatalf("%v %+v", err, findings)
	}
	for _, f := range findings {
		if f.Severity == bundle.SeverityWarning && f.Reason != reason.NodeImageUnreachable {
			t.Errorf("a warning that is none with the gateway: %+v", f)
		}
	}
	x.files = files
	table, err := places.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	x.start(t, table, listener)
	n.addresses[x.address] = x.address
	return x
}

// start starts a gateway, and returns when it has its certificates.
func (x *node) start(t *testing.T, table places.Table, listener net.Listener) {
	t.Helper()
	verified, insecure := upstream.Options{}.Transports()
	verified.DialContext, insecure.DialContext = x.network.dial, x.network.dial
	log := slog.New(slog.NewTextHandler(&x.log, nil))
	handler := gateway.New(gateway.Options{
		Address: x.address, Log: log, Now: x.now, Random: func(b []byte) { _, _ = rand.Read(b) },
		Client: &upstream.Client{Verified: verified, Insecure: insecure, Now: x.now},
		Verify: func(ctx context.Context, q signatures.Question) (signatures.Answer, error) { return x.verify(ctx, q) },
	})
	handler.SetTable(table)
	own := &cutListener{Listener: listener}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- gateway.Server{Handler: handler, Certificates: certificates(x.folder), Clock: realClock{}, Log: log}.Run(ctx, own)
	}()
	killed := x.listener
	x.handler, x.listener = handler, own
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, net.ErrClosed) { // one that was killed
			t.Error(err)
		}
	})
	// The certificates are there when it answers.
	conn, err := net.Dial("tcp", x.address)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	_, _ = conn.Write([]byte("no TLS\n"))
	_, _ = conn.Read(make([]byte, 1))
	_ = conn.Close()
	if killed != nil {
		killed.cut()
	}
}

// client returns the containerd of the node. Paths of Windows are names of files here, which containerd looks for beside its hosts files.
func (x *node) client(t *testing.T, n *network) Client {
	t.Helper()
	c := n.client(x.files)
	for directory := range x.files {
		for _, name := range []string{identity.CA, identity.Client} {
			data, err := os.ReadFile(filepath.Join(x.folder, name))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(c.Root, directory, places.State+`\`+name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return c
}

// TestExactPulls are pulls that hosts files cannot express, by both versions of containerd through the gateway.
func TestExactPulls(t *testing.T) {
	s := newStores(t)
	n := world(t, s)
	mapped := func(policy mirrors.Policy, source string, list ...string) mirrors.Inputs {
		return inputs(set(idms, source, policy, list...), set(itms, source, policy, list...))
	}
	otherOrders := inputs(
		set(idms, "source.test/app", "", "empty.test/app", "one.test/app"), set(idms, "source.test/library", "", "one.test/library", "empty.test/library"),
		set(itms, "source.test/app", "", "empty.test/app", "one.test/app"), set(itms, "source.test/library", "", "one.test/library", "empty.test/library"),
	)
	for _, test := range []pull{
		{name: "a mirror with another path", in: mapped("", "source.test/team/tool", "one.test/org/app/img"), image: "source.test/team/tool", contacted: "one.test", served: "one.test"},
		{name: "a mirror with another path, policy Never", in: mapped(never, "source.test/team/tool", "down.test/x", "one.test/org/app/img"), image: "source.test/team/tool", contacted: "one.test", served: "one.test"},
		{name: "policy Never for a part, inside", in: mapped(never, "source.test/app", "empty.test/app"), contacted: "empty.test", fails: true},
		{name: "policy Never for a part, outside", in: mapped(never, "source.test/app", "empty.test/app"), image: "source.test/library/img", label: "hub", contacted: "source.test", served: "source.test"},
		{name: "a mirror of a part, outside", in: mapped("", "source.test/library", "one.test/library"), contacted: "source.test", served: "source.test"},
		{name: "a blocked part, inside", in: scoped(inputs(), nil, []string{"source.test/app"}, nil), fails: true},
		{name: "a blocked part, outside", in: scoped(inputs(), nil, []string{"source.test/app"}, nil), image: "source.test/library/img", label: "hub", contacted: "source.test", served: "source.test"},
		{name: "a blocked wildcard", in: scoped(inputs(), nil, []string{"*.test"}, nil), fails: true},
		{name: "a blocked registry with mirrors", in: scoped(mapped("", "source.test/app", "one.test/org/app"), nil, []string{"source.test"}, nil), fails: true},
		{name: "a wildcard source", in: mapped(never, "*.test", "docker.io/library"), image: "two.test:5000/img", contacted: "registry-1.docker.io", fails: true},
		{name: "an allowed part, inside", in: scoped(inputs(), nil, nil, []string{"source.test/app"}), contacted: "source.test", served: "source.test"},
		{name: "an allowed part, outside", in: scoped(inputs(), nil, nil, []string{"source.test/library"}), fails: true},
		{name: "an insecure part of the source", in: scoped(inputs(), []string{"source.test:8080/app"}, nil, nil), image: "source.test:8080/app/img", contacted: "source.test:8080", served: "source.test:8080"},
		{name: "an insecure mirror of a part", in: scoped(mapped(never, "source.test/app", "strange.test/app"), []string{"strange.test/app"}, nil, nil), contacted: "strange.test", served: "strange.test"},
		{name: "a mirror for tags, by digest", in: inputs(set(itms, "source.test", never, "one.test")), by: Digest, fails: true},
		{name: "a mirror for tags, by tag", in: inputs(set(itms, "source.test", never, "one.test")), by: Tag, contacted: "one.test", served: "one.test"},
		{name: "an allowed image", in: scoped(inputs(), nil, nil, []string{"source.test/app/img:1"}), by: Tag, contacted: "source.test", served: "source.test"},
		{name: "an allowed image, another name of it", in: scoped(inputs(), nil, nil, []string{"source.test/app/img:1"}), by: Digest, fails: true},
		{name: "an allowed wildcard", in: scoped(inputs(), nil, nil, []string{"*.test"}), contacted: "source.test", served: "source.test"},
		{name: "an insecure wildcard", in: scoped(inputs(), []string{"*.test"}, nil, nil), image: "source.test:8080/app/img", contacted: "source.test:8080", served: "source.test:8080"},
		{name: "other mirrors first, for one part", in: otherOrders, contacted: "empty.test one.test", served: "one.test"},
		{name: "other mirrors first, for the other part", in: otherOrders, image: "source.test/library/img", label: "hub", contacted: "one.test empty.test source.test", served: "source.test"},
		{name: "Docker Hub with a part elsewhere", in: mapped("", "docker.io/library", "empty.test/any"), image: "docker.io/library/img", label: "hub", contacted: "empty.test registry-1.docker.io", served: "registry-1.docker.io"},
		{name: "a longer scope wins", in: inputs(set(idms, "source.test/app", "", "empty.test/app"), set(idms, "source.test/app/img", never, "one.test/org/app/img")), by: Digest, contacted: "one.test", served: "one.test"},
	} {
		for _, by := range []By{Digest, Tag} {
			if test.by == "" || test.by == by {
				t.Run(test.name+", by "+string(by), func(t *testing.T) { n.checkExact(t, test, by) })
			}
		}
	}
}

func (n *network) checkExact(t *testing.T, test pull, by By) {
	x := n.exactNode(t, test.in)
	i, err := NewImage(or(test.label, "app"))
	if err != nil {
		t.Fatal(err)
	}
	ref := or(test.image, "source.test/app/img") + ":1"
	if by == Digest {
		ref = strings.TrimSuffix(ref, ":1") + "@" + i.Digest().String()
	}
	n.take()
	for _, e := range Engines() {
		pulled, err := e.Pull(t.Context(), x.client(t, n), ref)
		r := n.take()
		if (err != nil) != test.fails {
			t.Errorf("%s: %v\n%s", e.Version, err, &x.log)
		}
		if err == nil {
			want := Pulled{Digest: i.Digest(), Blobs: []string{string(i.Config), string(i.Layer)}}
			if diff := cmp.Diff(want, pulled); diff != "" {
				t.Errorf("%s (-want +got):\n%s", e.Version, diff)
			}
		} else if !strings.Contains(err.Error(), "is at no place") {
			t.Errorf("%s: the reason is not shown: %v", e.Version, err)
		}
		// Connections to a place stay open, so only requests count.
		r = slices.DeleteFunc(r, func(q request) bool { return q.method == "CONNECT" })
		if diff := cmp.Diff([]string{test.contacted, test.served}, []string{r.contacted(), r.served()}); diff != "" {
			t.Errorf("%s: contacted and served (-want +got):\n%s", e.Version, diff)
		}
	}
	if lines := complaints.take(); len(lines) > 0 {
		t.Errorf("containerd complains: %v", lines)
	}
}

// TestExactCredentials shows that mirrors get the credentials of the cluster, and the source those of the kubelet, and nothing else.
func TestExactCredentials(t *testing.T) {
	n := world(t, newStores(t))
	auth := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	for _, test := range []struct {
		name, mirror, secret string
		got                  map[string][]string
	}{
		{"a password", "locked.test/org/app", "locked.test/org", map[string][]string{"locked.test": {"", basic(user, password)}}},
		{"a token", "tokened.test/org/app", "tokened.test", map[string][]string{"tokened.test": {"", "Bearer"}, "tokens.test": {basic(user, password)}}},
		{"none for this part", "locked.test/org/app", "locked.test/other", map[string][]string{"locked.test": {""}, "source.test": {""}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := inputs(set(itms, "source.test/app", "", test.mirror))
			in.PullSecret, in.PullSecretRef = bundle.NewSecret(fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, test.secret, auth)), bundle.Ref{Kind: "Secret", Name: "pull-secret"}
			for _, e := range Engines() {
				x := n.exactNode(t, in)
				c := x.client(t, n)
				c.Credentials = func(string) (string, string, error) { return "kubelet", "kubelets-own", nil }
				n.take()
				if _, err := e.Pull(t.Context(), c, "source.test/app/img:1"); err != nil {
					t.Errorf("%s: %v\n%s", e.Version, err, &x.log)
				}
				r := n.take()
				for _, q := range r {
					if given := strings.Join(q.authorization, " "); q.user != "" || strings.Contains(given, basic("kubelet", "kubelets-own")) && q.name != "source.test" {
						t.Errorf("%s: %s got %s %s", e.Version, q.name, given, q.user)
					}
				}
				for name, want := range test.got {
					if diff := cmp.Diff(want, masked(r.authorizations(name))); diff != "" {
						t.Errorf("%s: %s (-want +got):\n%s", e.Version, name, diff)
					}
				}
				if strings.Contains(x.log.String(), auth) || strings.Contains(x.log.String(), password) {
					t.Errorf("the log has credentials:\n%s", &x.log)
				}
			}
		})
	}
}

// TestAStrangerGetsNothing shows that a client without the certificate of containerd gets no answer, and that containerd takes nothing from a server
// that is on the port in place of the gateway.
func TestAStrangerGetsNothing(t *testing.T) {
	n := world(t, newStores(t))
	x := n.exactNode(t, scoped(inputs(), nil, []string{"source.test/app"}, nil))
	c := x.client(t, n)
	if response, err := (&http.Client{Transport: n.insecure()}).Get("https://" + x.address + "/v2/"); err == nil {
		_ = response.Body.Close()
		t.Errorf("a client without a certificate got %s", response.Status)
	}
	n.serve("stranger.test", trusted, http.NotFoundHandler())
	n.addresses[x.address] = n.addresses["stranger.test:443"]
	n.take()
	for _, e := range Engines() {
		if _, err := e.Pull(t.Context(), c, "source.test/library/img:1"); err == nil {
			t.Errorf("%s pulled from a stranger", e.Version)
		}
		for _, q := range n.take() {
			if q.method != "CONNECT" {
				t.Errorf("%s asked %s for %s", e.Version, q.name, q.path)
			}
		}
	}
	complaints.take()
}

// insecure returns a transport that accepts any certificate and has none.
func (n *network) insecure() http.RoundTripper {
	_, insecure := upstream.Options{}.Transports()
	insecure.DialContext = n.dial
	return insecure
}
