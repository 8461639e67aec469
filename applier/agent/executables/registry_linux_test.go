package executables_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certutil "k8s.io/client-go/util/cert"

	"wmco/applier/agent/executables"
	"wmco/bundle/published"
	"wmco/gateway/places"
	"wmco/gateway/registry"
	"wmco/internal/hostsim"
	"wmco/internal/test/payloadtest"
	"wmco/internal/test/registrytest"
	"wmco/internal/test/registrytest/distribution"
	"wmco/internal/test/simnode/light"
	"wmco/payload"
	"wmco/payload/sources"
	"wmco/payload/store"
)

// layerSize is that of the largest layer: more than the buffers of a connection hold.
const layerSize = 32 << 20

// scene is the program of a real registry with an image, a host, and the list by which it fetches.
type scene struct {
	*executables.Fetcher
	t        *testing.T
	good     *distribution.Registry
	roots    *x509.CertPool
	clock    *hostsim.Clock
	list     sources.List
	warnings []string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	distribution.NeedRegistry(t)
	s := &scene{t: t, roots: x509.NewCertPool(), clock: hostsim.NewClock(time.Now())}
	certificate, key := s.certificate()
	s.roots.AppendCertsFromPEM(certificate)
	s.good = distribution.Start(t, distribution.Options{Certificate: certificate, Key: key})
	kubelet := payload.For(payload.Kubelet, payload.TestedKubernetes).Name
	folder := payloadtest.WriteFolder(t, filepath.Join("..", "..", ".."), map[string][]byte{kubelet: payloadtest.Random("kubelet", layerSize)})
	opened, err := store.Open(folder)
	s.must(err)
	s.list = sources.List{Payload: opened.Set().Digest(), Image: places.Image{Registry: "registry.example.com", Repository: "team/wmco"}, Places: []places.Place{s.place(s.good.Address)}}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.roots}}}
	s.list.Image.Reference = registrytest.PushImage(t, client, "https://"+s.good.Address+"/team/wmco", folder)
	for _, e := range opened.Entries() {
		if e.Name == kubelet || e.Name == payload.CSIProxy {
			s.list.Executables = append(s.list.Executables, sources.Executable{Name: e.Name, Raw: e.Raw, Stored: e.Stored})
		}
	}
	s.newHost()
	return s
}

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// certificate returns one of a new CA, and its key.
func (s *scene) certificate() (certificate, key []byte) {
	s.t.Helper()
	certificate, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	s.must(err)
	return certificate, key
}

func (s *scene) place(registry string) places.Place {
	return places.Place{Registry: registry, Repository: "team/wmco"}
}

// newHost exchanges the host for one that has nothing.
func (s *scene) newHost() {
	s.warnings = nil
	s.Fetcher = &executables.Fetcher{
		Registry: registrytest.NewFetcherWith(registry.Options{Roots: s.roots}), Stage: new(light.Executables).Stage, Clock: s.clock, Log: slog.New(slog.DiscardHandler),
		List: func(context.Context) ([]byte, error) { return s.list.Encode() }, Changed: func() {},
		Warn: func(_ context.Context, message string) { s.warnings = append(s.warnings, message) }, Jitter: func(d time.Duration) time.Duration { return d },
	}
	s.PermitPayload(s.list.Payload)
}

// try lets the next try become due.
func (s *scene) try() published.FetchProgress {
	s.clock.Pass(time.Hour)
	s.FetchDue(s.t.Context())
	return s.Progress()
}

// TestFaultsOfRealRegistries: the next place is asked; where there is none, the place is named with what it said, and
// the host is ready when another place has the image.
func TestFaultsOfRealRegistries(t *testing.T) {
	s := newScene(t)
	for name, tt := range map[string]struct {
		address string
		says    string
	}{
		"401":                            {s.locked(), "answered 401"},
		"404":                            {s.empty(), "answered 404"},
		"a certificate of an unknown CA": {s.untrusted(), "certificate signed by unknown authority"},
		"a name that does not resolve":   {"registry.invalid", "lookup registry.invalid"},
		"a registry that is off":         {s.off(), "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			faulty, good := s.place(tt.address), s.place(s.good.Address)
			s.newHost()
			if s.list.Places = []places.Place{faulty, good}; !s.try().Done {
				t.Errorf("with a second place: %+v", s.Progress())
			}
			s.newHost()
			s.list.Places = []places.Place{faulty}
			for range 3 {
				s.try()
			}
			if p := s.Progress(); p.Done || !p.Failed || !strings.Contains(p.Message, faulty.Name()+": ") || !strings.Contains(p.Message, tt.says) || len(s.warnings) != 1 {
				t.Errorf("alone: %+v, %q", p, s.warnings)
			}
			s.list.Places = []places.Place{faulty, good}
			if p := s.try(); !p.Done || p.Failed || p.Message != "" {
				t.Errorf("when another place has the image: %+v", p)
			}
		})
	}
}

// start starts another registry with the image.
func (s *scene) start(o distribution.Options) *distribution.Registry {
	s.t.Helper()
	if o.Certificate == nil {
		o.Certificate, o.Key = s.certificate()
		s.roots.AppendCertsFromPEM(o.Certificate)
	}
	return distribution.Start(s.t, o)
}

// locked is a registry that demands a password.
func (s *scene) locked() string {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "htpasswd")
	s.must(os.WriteFile(file, []byte("reader:$2b$04$Ep5Vnxog7SmYsN6kPFgwAusoPSMl0s3sZI8pW88x77fzm8sPa.apq\n"), 0o600)) // bcrypt of another password
	return s.start(distribution.Options{Folder: s.good.Folder, Auth: "htpasswd: {realm: test, path: " + file + "}"}).Address
}

func (s *scene) empty() string {
	s.t.Helper()
	return s.start(distribution.Options{}).Address
}

func (s *scene) untrusted() string {
	s.t.Helper()
	certificate, key := s.certificate()
	return s.start(distribution.Options{Folder: s.good.Folder, Certificate: certificate, Key: key}).Address
}

func (s *scene) off() string {
	s.t.Helper()
	r := s.start(distribution.Options{})
	r.Stop()
	return r.Address
}

// TestARealRegistryThatEndsInALayer: what has come of the layer is kept, and fetched no second time.
func TestARealRegistryThatEndsInALayer(t *testing.T) {
	s := newScene(t)
	s.Registry = &interrupted{Registry: s.Registry, at: layerSize / 2, stop: s.good.Stop}
	place := s.list.Places[0].Name() + ": "
	if p := s.try(); p.Done || p.Failed || p.Present < layerSize/2 || !strings.Contains(p.Message, place) || !strings.Contains(p.Message, "connection refused") {
		t.Errorf("while it is off: %+v", p)
	}
	before := s.good.Written()
	s.good.Restart()
	if p := s.try(); !p.Done || p.Failed || p.Message != "" || p.Present != p.Wanted {
		t.Errorf("when it is there again: %+v", p)
	}
	if sent := s.good.Written() - before; sent > layerSize*3/4 {
		t.Errorf("%d bytes were sent after the restart, of a layer of which the host had %d", sent, layerSize/2)
	}
}

// interrupted calls stop once, when so many bytes of a layer have come.
type interrupted struct {
	executables.Registry
	at   int64
	stop func()
}

// FetchStored implements executables.Registry.
func (i *interrupted) FetchStored(ctx context.Context, l sources.List, x sources.Executable, report func(int64)) ([]byte, error) {
	return i.Registry.FetchStored(ctx, l, x, func(n int64) { //nolint:wrapcheck // it is that of the registry
		report(n)
		if n >= i.at && i.stop != nil {
			i.stop()
			i.stop = nil
		}
	})
}
