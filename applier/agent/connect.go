package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"wmco/applier"
	"wmco/bundle/published"
)

// Connection is how the API server is reached.
type Connection struct {
	// Kubeconfig is the path of a kubeconfig whose client certificate is the kubelet's.
	Kubeconfig string
	// ReadFile reads the kubeconfig and the files that it names, such as os.ReadFile.
	ReadFile func(path string) ([]byte, error)
	Log      *slog.Logger
	Clock    applier.Clock
	// Pages are linked in Events that are warnings.
	Pages published.Pages
	// Spread returns a time below the given one that differs from agent to agent. Nil is none.
	Spread func(time.Duration) time.Duration
	// Wrap changes how requests are sent: a test has a transport of its own. Nil changes nothing.
	Wrap func(*rest.Config)
}

const (
	// connectPause is the pause between two attempts to read the kubeconfig and the certificate that it names.
	connectPause = 30 * time.Second
	// renewPause is how long a certificate is used before its file is read again, because the kubelet renews it.
	renewPause = time.Minute
)

// ErrNotConnected is the error of every request before the kubeconfig and the kubelet's certificate could be read.
// Until then the agent repairs from what the host keeps.
var ErrNotConnected = errors.New("the kubeconfig or the kubelet's certificate cannot be read yet")

// awaitFiles returns when the files can be read, and reports whether they can: the context may have ended.
func (s *APIServer) awaitFiles(ctx context.Context) bool {
	for {
		_, err := s.currentLink()
		if err == nil {
			return true
		}
		s.connection.Log.Warn("the cluster is not followed yet", "error", err)
		select {
		case <-ctx.Done():
			return false
		case <-s.connection.Clock.After(connectPause):
		}
	}
}

// currentLink returns the connection by the certificate that the kubelet has now, or had when its file could last be
// read.
func (s *APIServer) currentLink() (*link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.connection.Clock.SinceBoot()
	if s.link != nil && now < s.readAgain {
		return s.link, nil
	}
	s.readAgain = now + renewPause
	config, err := s.connection.RESTConfig()
	var next *link
	switch {
	case err == nil && s.link != nil && s.link.hasSameConfig(config):
		return s.link, nil
	case err == nil:
		next, err = newLink(config, s.connection)
	}
	if err != nil && s.link == nil {
		return nil, fmt.Errorf("%w: %w", ErrNotConnected, err)
	}
	if err != nil {
		s.connection.Log.Warn("reading the kubeconfig again", "error", err)
		return s.link, nil
	}
	if s.link != nil {
		s.link.http.CloseIdleConnections()
	}
	s.link = next
	return s.link, nil
}

// RESTConfig reads the kubeconfig. The result holds the contents of all files that it names.
func (c Connection) RESTConfig() (*rest.Config, error) {
	config, err := c.readKubeconfig()
	if err != nil {
		return nil, err
	}
	all, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig %s: %w", c.Kubeconfig, err)
	}
	return all, nil
}

// KubeconfigWithFiles returns the kubeconfig with the contents of the files that it names.
func (c Connection) KubeconfigWithFiles() ([]byte, error) {
	config, err := c.readKubeconfig()
	if err != nil {
		return nil, err
	}
	return clientcmd.Write(*config)
}

// readKubeconfig reads the kubeconfig and the files that it names.
func (c Connection) readKubeconfig() (*clientcmdapi.Config, error) {
	text, err := c.ReadFile(c.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config, err := clientcmd.Load(text)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig %s: %w", c.Kubeconfig, err)
	}
	return config, c.includeFiles(config)
}

// includeFiles replaces the paths in a kubeconfig by the contents of the files.
func (c Connection) includeFiles(config *clientcmdapi.Config) error {
	for _, cluster := range config.Clusters {
		if err := c.replacePath(&cluster.CertificateAuthority, &cluster.CertificateAuthorityData); err != nil {
			return err
		}
	}
	for _, user := range config.AuthInfos {
		if err := c.replacePath(&user.ClientCertificate, &user.ClientCertificateData); err != nil {
			return err
		}
		if err := c.replacePath(&user.ClientKey, &user.ClientKeyData); err != nil {
			return err
		}
	}
	return nil
}

func (c Connection) replacePath(path *string, data *[]byte) error {
	if *path == "" || len(*data) > 0 {
		return nil
	}
	var err error
	if *data, err = c.ReadFile(*path); err != nil {
		return fmt.Errorf("reading what the kubeconfig names: %w", err)
	}
	*path = ""
	return nil
}
