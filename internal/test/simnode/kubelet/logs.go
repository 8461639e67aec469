package kubelet

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/util/certificate"
)

// logFolder is what /logs/ shows (pkg/kubelet: nodeLogDir, \var\log on Windows).
const logFolder = `C:\var\log`

// logsPrefix is where the kubelet serves logs if enableSystemLogHandler is true (pkg/kubelet/server: logsPath).
const logsPrefix = "/logs/"

// headerWait is how long a client may take to ask.
const headerWait = 10 * time.Second

// serveLogs listens on the first address of the Node, and answers those who have a certificate of the CA for clients
// until the context ends.
func (k *kubelet) serveLogs(ctx context.Context, serving certificate.Manager) error {
	pem, err := k.Host.ReadFile(k.config.Authentication.X509.ClientCAFile)
	if err != nil {
		return fmt.Errorf("reading the CA of clients: %w", err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(pem)
	facts, err := k.Host.Facts(ctx)
	if err != nil || len(facts.Addresses) == 0 {
		return errors.Join(errors.New("the machine has no address to listen on"), err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(facts.Addresses[0], strconv.Itoa(int(k.config.Port))))
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	if k.config.EnableSystemLogHandler != nil && *k.config.EnableSystemLogHandler {
		mux.HandleFunc(logsPrefix, k.logs)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: headerWait, TLSConfig: &tls.Config{
		MinVersion: tls.VersionTLS12, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if c := serving.Current(); c != nil {
				return c, nil
			}
			return nil, errors.New("no serving certificate available for the kubelet")
		},
	}}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// logs serves a file below the folder of logs, and parts of it, as net/http.FileServer does. It lists no folders.
func (k *kubelet) logs(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, logsPrefix)
	if !fs.ValidPath(name) {
		http.NotFound(w, r)
		return
	}
	data, err := k.Host.ReadFile(logFolder + `\` + strings.ReplaceAll(name, "/", `\`))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(data))
}
