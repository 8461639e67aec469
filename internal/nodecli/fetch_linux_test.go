package nodecli

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wmco/applier"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/gateway/places"
	"wmco/internal/cli"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/bundletest"
	"wmco/internal/test/registrytest"
	"wmco/payload/sources"
	"wmco/payload/store"
)

// orderFor is an order for the executables of the golden cases, from a registry under a name that its certificate has.
func orderFor(t *testing.T, s *registrytest.Server) sources.Order {
	t.Helper()
	opened, err := store.Open(goldenPayload)
	if err != nil {
		t.Fatal(err)
	}
	_, reference, _ := strings.Cut(s.Image, "@")
	o := sources.Order{
		List: sources.List{
			Payload: opened.Set().Digest(), Image: places.Image{Registry: "quay.example.com", Repository: "team/wmco", Reference: reference},
			Places: []places.Place{{Registry: s.HostPort(), Repository: "team/wmco", Auth: bundle.NewSecret("dTpzZWNyZXQ=")}},
		},
		TrustedCAs: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})),
	}
	for _, e := range opened.Entries() {
		o.List.Executables = append(o.List.Executables, sources.Executable{Name: e.Name, Raw: e.Raw, Stored: e.Stored})
	}
	slices.SortFunc(o.List.Executables, func(a, b sources.Executable) int { return strings.Compare(a.Name, b.Name) })
	return o
}

var goldenPayload = filepath.Join("..", "..", "golden", "payload")

// fetchesOn is a run of the command on a host in memory.
func fetchesOn(t *testing.T, o sources.Order) (f fetching, events *[]protocol.Event) {
	t.Helper()
	clock := hostsim.NewClock(hostsim.Epoch())
	p := Program{Clock: clock}
	events = new([]protocol.Event)
	engine := &applier.Engine{Host: hostsim.NewMemory(hostsim.Facts(), clock), Clock: clock, Permits: bundletest.Permit, Program: "test"}
	return fetching{engine: engine, order: o, registry: p.registryOf(o), now: clock.Now, emit: func(e protocol.Event) { *events = append(*events, e) }}, events
}

// TestFetchedExecutablesAreKept: all of them come once, with the CAs of the order, and progress is told.
func TestFetchedExecutablesAreKept(t *testing.T) {
	s := registrytest.New(t, goldenPayload)
	o := orderFor(t, s)
	f, events := fetchesOn(t, o)
	if err := f.fetchAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := int64(0)
	for _, x := range o.List.Executables {
		all += x.Stored.Size
	}
	last := (*events)[len(*events)-1]
	before := (*events)[len(*events)-2]
	if last.Event != protocol.EventResult || last.Result != protocol.ResultApplied || before.Event != protocol.EventFetching || before.Bytes != before.AllBytes || before.AllBytes > all {
		t.Errorf("%+v", *events)
	}
	n := s.CountLayers()
	if err := f.fetchAll(t.Context()); err != nil || s.CountLayers() != n || n == 0 {
		t.Errorf("a second time: %v, %d layers, %d before", err, s.CountLayers(), n)
	}
}

// proxyTo is a proxy that leads each connection to one address, and asks for a password. It returns its URL.
func proxyTo(t *testing.T, address string) string {
	t.Helper()
	p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte("u:word")) {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		to, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", address)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer to.Close()
		from, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer from.Close()
		_, _ = from.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
		go func() { _, _ = io.Copy(to, from) }()
		_, _ = io.Copy(from, to)
	}))
	t.Cleanup(p.Close)
	return strings.Replace(p.URL, "http://", "http://u:word@", 1)
}

// TestTheProxyOfTheOrderIsUsed: the host has none yet, and does not know the name of the registry.
func TestTheProxyOfTheOrderIsUsed(t *testing.T) {
	s := registrytest.New(t, goldenPayload)
	o := orderFor(t, s)
	o.List.Places[0].Registry = "example.com" // in the certificate of httptest
	o.Proxy.HTTPS = bundle.NewSecret(proxyTo(t, s.HostPort()))
	f, events := fetchesOn(t, o)
	if err := f.fetchAll(t.Context()); err != nil {
		t.Fatalf("%v, %+v", err, *events)
	}
	o.Proxy.NoProxy = "example.com"
	f, _ = fetchesOn(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // names are not resolved in tests
	if err := f.fetchAll(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted run: %v", err)
	}
}

// TestWhatNoPlaceHasIsReported, by place and without secrets.
func TestWhatNoPlaceHasIsReported(t *testing.T) {
	for name, change := range map[string]func(*registrytest.Server, *sources.Order){
		"it is off":      func(s *registrytest.Server, _ *sources.Order) { s.Close() },
		"no trusted CA":  func(_ *registrytest.Server, o *sources.Order) { o.TrustedCAs = "" },
		"no such image":  func(_ *registrytest.Server, o *sources.Order) { o.List.Image.Reference = string(bundle.Of(nil)) },
		"no such bundle": func(_ *registrytest.Server, o *sources.Order) { o.List.Executables[0].Stored.Digest = bundle.Of(nil) },
	} {
		s := registrytest.New(t, goldenPayload)
		o := orderFor(t, s)
		place := s.HostPort()
		change(s, &o)
		f, events := fetchesOn(t, o)
		err := f.fetchAll(t.Context())
		var exit *cli.ExitError
		last := (*events)[len(*events)-1]
		if err == nil || last.Result != protocol.ResultPartial || !strings.Contains(last.Message, place) || strings.Contains(last.Message, "dTpz") || !errors.As(err, &exit) || exit.Status != cli.ExitPartial {
			t.Errorf("%s: %v, %+v", name, err, last)
		}
	}
}

// failingRegistry fails after some of the bytes of each executable.
type failingRegistry struct {
	comes  []int64
	called int
}

func (r *failingRegistry) FetchStored(_ context.Context, _ sources.List, _ sources.Executable, report func(int64)) ([]byte, error) {
	if r.called++; r.called > 20 {
		panic("it is tried for ever")
	}
	if r.called <= len(r.comes) {
		report(r.comes[r.called-1])
	}
	return nil, io.ErrUnexpectedEOF
}

// TestAFetchIsTriedAsLongAsItBringsMore, and no longer.
func TestAFetchIsTriedAsLongAsItBringsMore(t *testing.T) {
	f, _ := fetchesOn(t, orderFor(t, registrytest.New(t, goldenPayload)))
	r := &failingRegistry{comes: []int64{1, 2, 3, 3, 4}}
	f.registry = r
	if err := f.fetchAll(t.Context()); !errors.Is(err, io.ErrUnexpectedEOF) || r.called != 4 {
		t.Errorf("%v after %d tries", err, r.called)
	}
}

// TestOrdersOnStdin: those that cannot be read are refused before anything is asked, and a shell may treat stdin as text.
func TestOrdersOnStdin(t *testing.T) {
	s := registrytest.New(t, goldenPayload)
	data, err := orderFor(t, s).Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		stdin  string
		args   []string
		status int
	}{
		"an order":   {stdin: string(data)},
		"as text":    {stdin: base64.StdEncoding.EncodeToString(data), args: []string{"--text"}},
		"for people": {stdin: string(data), args: []string{"-o", "text"}},
		"no order":   {stdin: "dTpzZWNyZXQ=", status: cli.ExitUsage},
		"too much":   {args: []string{"x"}, status: cli.ExitUsage},
	} {
		var out, complaints bytes.Buffer
		clock := hostsim.NewClock(hostsim.Epoch())
		p := Program{
			Stdin: strings.NewReader(tt.stdin), Stdout: &out, Stderr: &complaints, Clock: clock, Host: memory{host: hostsim.NewMemory(hostsim.Facts(), clock)},
		}
		if status := Execute(t.Context(), p.Root(), append([]string{"fetch"}, tt.args...)); status != tt.status || strings.Contains(out.String()+complaints.String(), "dTpz") {
			t.Errorf("%s: status %d\n%s%s", name, status, out.String(), complaints.String())
		}
	}
}
