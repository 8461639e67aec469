package agent

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"strings"
	"testing"
	"time"

	"wmco/bundle"
	"wmco/internal/hostsim"
)

const cloudFile = `C:\k\cloud-node-manager-certs\cloud-node-manager-client-current.pem`

// signer issues certificates for a day, to whoever asks, once it approves.
type signer struct {
	node     string
	key      *ecdsa.PrivateKey
	now      func() time.Time
	approves bool
	// away is the error of every request, denied that of every question for a certificate.
	away, denied error
	requests     []*x509.CertificateRequest
	asked        int
	// other makes it issue for another key.
	other bool
}

func newSigner(t *testing.T, now func() time.Time) *signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &signer{node: "win-a", key: key, now: now, approves: true}
}

func (s *signer) NodeName() (string, error) { return s.node, s.away }

func (s *signer) RequestCertificate(_ context.Context, text []byte) (string, error) {
	if s.away != nil {
		return "", s.away
	}
	block, _ := pem.Decode(text)
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	s.requests = append(s.requests, csr)
	return "request", err
}

func (s *signer) IssuedCertificate(context.Context, string) ([]byte, error) {
	s.asked++
	if err := errors.Join(s.away, s.denied); err != nil || !s.approves {
		return nil, err
	}
	csr := s.requests[len(s.requests)-1]
	public := csr.PublicKey
	if s.other {
		public = s.key.Public()
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: csr.Subject, NotBefore: s.now().Add(-time.Minute), NotAfter: s.now().Add(24*time.Hour - time.Minute)}
	der, err := x509.CreateCertificate(rand.Reader, template, &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}}, public, s.key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), err
}

// cloudWorld is a host whose cloud-node-manager needs a certificate.
type cloudWorld struct {
	t      *testing.T
	host   *hostsim.Memory
	clock  *hostsim.Clock
	signer *signer
	cloud  *cloudIdentity
	log    *strings.Builder
}

func newCloudWorld(t *testing.T) *cloudWorld {
	t.Helper()
	w := &cloudWorld{t: t, clock: hostsim.NewClock(hostsim.Epoch()), log: &strings.Builder{}}
	w.host = hostsim.NewMemory(hostsim.Facts(), w.clock)
	if err := w.host.MakeDirectory(t.Context(), `C:\k`, bundle.AccessUsers); err != nil {
		t.Fatal(err)
	}
	w.signer = newSigner(t, w.clock.Now)
	w.cloud = &cloudIdentity{
		host: w.host, cluster: w.signer, clock: w.clock, log: slog.New(slog.NewTextHandler(w.log, nil)), path: cloudFile,
		jitter: func(d time.Duration) time.Duration { return d },
	}
	return w
}

// steps does the steps within a time, and returns the last error.
func (w *cloudWorld) steps(within time.Duration) error {
	var err error
	for until := w.clock.SinceBoot() + within; w.clock.SinceBoot() < until; {
		var pause time.Duration
		pause, err = w.cloud.renewIfDue(w.t.Context())
		w.clock.Pass(max(pause, time.Second))
	}
	return err
}

// certificate returns the certificate on the disk, nil if there is none.
func (w *cloudWorld) certificate() *x509.Certificate {
	w.t.Helper()
	data, err := w.host.ReadFile(cloudFile)
	if err != nil {
		return nil
	}
	pair, err := tls.X509KeyPair(data, data)
	if err != nil {
		w.t.Fatal(err)
	}
	return pair.Leaf
}

func TestCloudNodeManagerGetsACertificate(t *testing.T) {
	w := newCloudWorld(t)
	w.signer.approves = false
	if err := w.steps(time.Minute); err != nil {
		t.Fatal(err)
	}
	if w.certificate() != nil || len(w.signer.requests) != 1 {
		t.Fatalf("%d requests", len(w.signer.requests))
	}
	w.signer.approves = true
	if err := w.steps(2 * time.Minute); err != nil {
		t.Fatal(err)
	}
	have := w.certificate()
	if have == nil || have.Subject.CommonName != "windows-cloud-node-manager:win-a" || strings.Join(have.Subject.Organization, ",") != "windows-cloud-node-managers" {
		t.Fatalf("%+v", have)
	}
	infos, err := w.host.Stat(t.Context(), []string{cloudFile, bundle.Dir(cloudFile)})
	if err != nil || infos[0].Access != bundle.AccessAdmins || infos[1].Access != bundle.AccessAdmins {
		t.Errorf("%+v, %v", infos, err)
	}
	// It is kept while it is good, by another process of the agent, too.
	w.cloud = &cloudIdentity{host: w.host, cluster: w.signer, clock: w.clock, log: w.cloud.log, path: cloudFile, jitter: w.cloud.jitter}
	if err := w.steps(17 * time.Hour); err != nil || len(w.signer.requests) != 1 {
		t.Errorf("%d requests: %v", len(w.signer.requests), err)
	}
	// And renewed, with another key, before it expires: cloud-node-manager needs five minutes to see it.
	if err := w.steps(90 * time.Minute); err != nil || len(w.signer.requests) != 2 {
		t.Fatalf("%d requests: %v", len(w.signer.requests), err)
	}
	if next := w.certificate(); !next.NotAfter.After(have.NotAfter) || have.PublicKey.(*ecdsa.PublicKey).Equal(next.PublicKey) {
		t.Errorf("%s after %s", next.NotAfter, have.NotAfter)
	}
	if strings.Contains(w.log.String(), "PRIVATE") {
		t.Error("the log holds a key")
	}
}

// TestACertificateThatCannotBeUsedIsReplaced: another node's, one that is cut, none.
func TestACertificateThatCannotBeUsedIsReplaced(t *testing.T) {
	for name, spoil := range map[string]func(w *cloudWorld){
		"that of another name": func(w *cloudWorld) { w.signer.node = "win-b" },
		"a cut file": func(w *cloudWorld) {
			data, _ := w.host.ReadFile(cloudFile)
			w.host.Falsify(cloudFile, string(data[:100]))
		},
		"no file": func(w *cloudWorld) { _ = w.host.RemoveFile(cloudFile) },
		"one of the future, by a clock that was set back": func(w *cloudWorld) {
			data, _ := w.host.ReadFile(cloudFile)
			pair, _ := tls.X509KeyPair(data, data)
			w.signer.now = func() time.Time { return w.clock.Now().Add(2 * time.Hour) }
			w.signer.requests = append(w.signer.requests, &x509.CertificateRequest{PublicKey: pair.Leaf.PublicKey, Subject: pair.Leaf.Subject})
			text, _ := w.signer.IssuedCertificate(w.t.Context(), "")
			w.host.Falsify(cloudFile, string(text)+string(data[strings.Index(string(data), "-----BEGIN PRIVATE"):]))
			w.signer.requests, w.signer.now = w.signer.requests[:1], w.clock.Now
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCloudWorld(t)
			if err := w.steps(time.Minute); err != nil || len(w.signer.requests) != 1 {
				t.Fatal(err)
			}
			spoil(w)
			if err := w.steps(10 * time.Minute); err != nil || len(w.signer.requests) != 2 {
				t.Fatalf("%d requests: %v", len(w.signer.requests), err)
			}
			if have := w.certificate(); have.Subject.CommonName != "windows-cloud-node-manager:"+w.signer.node || have.NotBefore.After(w.clock.Now()) {
				t.Errorf("%+v", have.Subject)
			}
		})
	}
}

func TestACertificateThatIsNotIssued(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(s *signer)
		// requests within a day, at most that many questions.
		requests, asked int
	}{
		"nobody approves":                 {func(s *signer) { s.approves = false }, 2, 1500},
		"it is denied":                    {func(s *signer) { s.denied = ErrNotIssued }, 145, 145},
		"the API server is away":          {func(s *signer) { s.away = errors.New("connection refused") }, 0, 0},
		"it is for another key":           {func(s *signer) { s.other = true }, 145, 145},
		"the API server fails on answers": {func(s *signer) { s.denied = errors.New("internal error") }, 1, 1500},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCloudWorld(t)
			tt.spoil(w.signer)
			_ = w.steps(23 * time.Hour) // what matters is what it costs
			if n := len(w.signer.requests); n > tt.requests || n == 0 && tt.requests > 0 || w.signer.asked > tt.asked {
				t.Errorf("%d requests, %d questions", n, w.signer.asked)
			}
			if w.certificate() != nil {
				t.Error("there is a certificate")
			}
		})
	}
}
