package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"wmco/applier/agent"
)

// retries is a clock that calls a function where somebody waits.
type retries struct {
	clock
	wait func()
}

func (r retries) After(time.Duration) <-chan time.Time {
	r.wait()
	return time.After(time.Millisecond)
}

// TestTheClusterIsConnectedToWhenTheKubeletHasItsCertificate: until then the agent works without it.
func TestTheClusterIsConnectedToWhenTheKubeletHasItsCertificate(t *testing.T) {
	folder := t.TempDir()
	kubeconfig, cert := filepath.Join(folder, "kubeconfig"), filepath.Join(folder, "kubelet-client-current.pem")
	steps := []func(){
		func() {}, // nothing is there yet
		func() {
			write(t, kubeconfig, fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: node}}]\n"+
				"clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1', insecure-skip-tls-verify: true}}]\nusers: [{name: node, user: {client-certificate: %q, client-key: %q}}]\n", cert, cert))
		},
		func() { write(t, cert, certificate(t, "somebody")) },
		func() { write(t, cert, certificate(t, "system:node:win-a")) },
	}
	waits := 0
	c := connectLater(kubeconfig, slog.New(slog.DiscardHandler), retries{wait: func() {
		if waits < len(steps) {
			steps[waits]()
		}
		waits++
	}})
	if _, err := c.Heartbeat(t.Context()); !errors.Is(err, errNotConnected) {
		t.Errorf("before: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { c.Watch(ctx, func(agent.Node) {}); close(ended) }()
	limit := time.Now().Add(time.Minute)
	for {
		// Nobody listens there: the request fails in another way once it is made.
		if _, err := c.Heartbeat(t.Context()); err != nil && !errors.Is(err, errNotConnected) {
			break
		}
		if time.Now().After(limit) {
			t.Fatal("it never connects")
		}
		time.Sleep(time.Millisecond)
	}
	stop()
	<-ended
	if waits != len(steps) {
		t.Errorf("connected after %d attempts that failed, want %d", waits, len(steps))
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Error(err)
	}
}

// certificate returns a client certificate with its key, as the kubelet writes them into one file.
func certificate(t *testing.T, user string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Error(err)
		return ""
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: user}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Error(err)
		return ""
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Error(err)
		return ""
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})) + string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}))
}
