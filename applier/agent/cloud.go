package agent

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"wmco/applier"
	"wmco/bundle"
	"wmco/bundle/published"
)

// Certificates asks for certificates as the node.
type Certificates interface {
	// NodeName returns the name of the Node as which the requests are made.
	NodeName() (string, error)
	// RequestCertificate asks for a client certificate (PEM), and returns the name of the request.
	RequestCertificate(ctx context.Context, csr []byte) (name string, err error)
	// IssuedCertificate returns the certificate of a request, nil while there is none. Where there will be none, the
	// error is ErrNotIssued.
	IssuedCertificate(ctx context.Context, name string) ([]byte, error)
}

// ErrNotIssued means that a request was denied, has failed, or is gone.
var ErrNotIssued = errors.New("the certificate is not issued")

// Times of cloud-node-manager's certificate.
const (
	// cloudLook is the time between two looks at a certificate that is valid.
	cloudLook = 5 * time.Minute
	// cloudPoll and cloudSlow are the first and the longest time between two questions for a certificate that was
	// requested.
	cloudPoll, cloudSlow = 2 * time.Second, time.Minute
	// cloudPatience is when a request without approval is given up for another one: the cluster removes it after a
	// day.
	cloudPatience = 12 * time.Hour
	// cloudRetry is the pause after a request that was denied.
	cloudRetry = 10 * time.Minute
)

// cloudIdentity keeps the client certificate of cloud-node-manager, which on Azure works on a Node as a user of its own
// (published.CloudNodeManagerUser). It is one file with certificate and key. cloud-node-manager reads a new one within
// five minutes (k8s.io/client-go/transport, CertCallbackRefreshDuration); without one it ends, and its service is
// restarted until it is there.
type cloudIdentity struct {
	host    applier.Host
	cluster Certificates
	clock   applier.Clock
	log     *slog.Logger
	jitter  func(time.Duration) time.Duration
	path    string

	// request is the name of the one that was made, key its private key as PEM: it is in memory alone until it has a
	// certificate.
	request string
	key     []byte
	// asked is when it was made, since boot; polls is how often its certificate was asked for.
	asked time.Duration
	polls int
	// failed is the last error that was logged.
	failed string
}

// renewUntilDone works until the context ends.
func (c *cloudIdentity) renewUntilDone(ctx context.Context) {
	for {
		pause, err := c.renewIfDue(ctx)
		c.logOnce(ctx, err)
		select {
		case <-ctx.Done():
			return
		case <-c.clock.After(c.jitter(pause)):
		}
	}
}

// logOnce logs an error once.
func (c *cloudIdentity) logOnce(ctx context.Context, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != c.failed && err != nil && ctx.Err() == nil {
		c.log.Warn("the certificate of cloud-node-manager; it is retried", "error", err)
	}
	c.failed = text
}

// renewIfDue does the next step, and returns the pause until the one after it.
func (c *cloudIdentity) renewIfDue(ctx context.Context) (time.Duration, error) {
	if c.request != "" {
		return c.pollRequest(ctx)
	}
	node, err := c.cluster.NodeName()
	if err != nil {
		return connectPause, err
	}
	have, err := c.currentCertificate(ctx)
	if err == nil && c.isStillValid(have, node) {
		return cloudLook, nil
	}
	if err != nil {
		c.log.Info("cloud-node-manager gets a certificate", "because", err)
	}
	csr, key, err := newRequest(published.CloudNodeManagerUser(node), published.CloudNodeManagerGroup)
	if err != nil {
		return cloudRetry, err
	}
	name, err := c.cluster.RequestCertificate(ctx, csr)
	if err != nil {
		return connectPause, fmt.Errorf("requesting it: %w", err)
	}
	c.request, c.key, c.asked, c.polls = name, key, c.clock.SinceBoot(), 0
	return cloudPoll, nil
}

// currentCertificate reads the file.
func (c *cloudIdentity) currentCertificate(ctx context.Context) (*x509.Certificate, error) {
	file, err := c.host.Open(ctx, c.path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	data, err := io.ReadAll(io.LimitReader(file, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", c.path, err)
	}
	pair, err := tls.X509KeyPair(data, data)
	if err != nil {
		return nil, fmt.Errorf("reading %s: it holds no certificate with its key", c.path) // the error may quote the file
	}
	return pair.Leaf, nil
}

// isStillValid reports whether a certificate is that of the node, and has a quarter of its time left.
func (c *cloudIdentity) isStillValid(have *x509.Certificate, node string) bool {
	renew := have.NotAfter.Add(-have.NotAfter.Sub(have.NotBefore) / 4)
	now := c.clock.Now()
	return have.Subject.CommonName == published.CloudNodeManagerUser(node) && now.Before(renew) && !now.Before(have.NotBefore)
}

// pollRequest asks for the certificate that was requested, and writes it.
func (c *cloudIdentity) pollRequest(ctx context.Context) (time.Duration, error) {
	issued, err := c.cluster.IssuedCertificate(ctx, c.request)
	pause := min(cloudPoll<<min(c.polls, 10), cloudSlow)
	c.polls++
	switch {
	case errors.Is(err, ErrNotIssued):
		err = fmt.Errorf("request %s: %w", c.request, err)
		c.request, c.key = "", nil
		return cloudRetry, err
	case err != nil:
		return pause, fmt.Errorf("request %s: %w", c.request, err)
	case len(issued) == 0 && c.clock.SinceBoot()-c.asked > cloudPatience:
		c.request, c.key = "", nil
		return 0, nil
	case len(issued) == 0:
		return pause, nil
	}
	text := append(bytes.TrimRight(issued, "\n"), '\n')
	text = append(text, c.key...)
	if _, err := tls.X509KeyPair(text, text); err != nil {
		name := c.request
		c.request, c.key = "", nil
		return cloudRetry, fmt.Errorf("request %s: its certificate is not for the key that was requested", name)
	}
	if err := c.writeFile(ctx, text); err != nil {
		return pause, err
	}
	c.log.Info("cloud-node-manager has a new certificate", "request", c.request)
	c.request, c.key = "", nil
	return 0, nil // a look at the file
}

// writeFile replaces the file. Like other files with secrets it is for SYSTEM, as which services run, and
// Administrators only.
func (c *cloudIdentity) writeFile(ctx context.Context, text []byte) error {
	if err := c.host.MakeDirectory(ctx, bundle.Dir(c.path), bundle.AccessAdmins); err != nil {
		return err
	}
	return c.host.Write(ctx, c.path, bundle.AccessAdmins, bytes.NewReader(text))
}

// newRequest returns a request for a client certificate, and its new key.
func newRequest(user, group string) (csr, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	subject := pkix.Name{CommonName: user, Organization: []string{group}}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, private)
	if err != nil {
		return nil, nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), nil
}
