package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"wmco/applier"
	"wmco/bundle"
)

// link is the connection to the API server by one certificate.
type link struct {
	// config is the configuration without the common part.
	config *rest.Config
	// node is the name of the Node in the certificate.
	node  string
	http  *http.Client
	base  *url.URL
	nodes metadata.Interface
	clock applier.Clock
}

// newLink connects by a configuration that holds its certificates. No request is made yet.
func newLink(config *rest.Config, c Connection) (*link, error) {
	node, err := NodeOfCertificate(config.CertData)
	if err != nil {
		return nil, err
	}
	l := &link{config: config, node: node, clock: c.Clock}
	config = rest.CopyConfig(config)
	// The API server's internal address is reached directly. The service has the cluster's proxy in its environment,
	// for others.
	config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	config.UserAgent = bundle.AgentProgram
	if c.Wrap != nil {
		c.Wrap(config)
	}
	l.http, err = rest.HTTPClientFor(config)
	if err == nil {
		l.base, _, err = rest.DefaultServerUrlFor(config) // with a path, if the API server is behind one
	}
	if err == nil {
		l.nodes, err = metadata.NewForConfigAndClient(metadata.ConfigFor(config), l.http)
	}
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the API server: %w", err)
	}
	return l, nil
}

// hasSameConfig reports whether the connection by another configuration is this one.
func (l *link) hasSameConfig(c *rest.Config) bool {
	mine := l.config
	return mine.Host == c.Host && bytes.Equal(mine.CAData, c.CAData) && bytes.Equal(mine.CertData, c.CertData) && bytes.Equal(mine.KeyData, c.KeyData)
}

func (l *link) ownNode() metadata.Getter {
	return l.nodes.Resource(corev1.SchemeGroupVersion.WithResource("nodes"))
}

// limitToNode limits a request to the Node of this host.
func (l *link) limitToNode(o metav1.ListOptions) metav1.ListOptions {
	o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, l.node).String()
	return o
}

// coreAPI is the path of the core API.
const coreAPI = "api/v1"

// call is a request.
type call struct {
	method      string
	path        []string
	contentType string
	body        []byte
}

// maxAnswer is larger than any object that is asked for, in bytes.
const maxAnswer = 4 << 20

// doRequest makes one request, within its time. An answer that is not a success is a *apierrors.StatusError.
func (l *link) doRequest(ctx context.Context, c call, into any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, c.method, l.base.JoinPath(c.path...).String(), bytes.NewReader(c.body))
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json")
	if c.contentType != "" {
		r.Header.Set("Content-Type", c.contentType)
	}
	answer, err := l.http.Do(r)
	if err != nil {
		return l.explainError(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("reading the answer of the API server: %w", err)
	case len(text) > maxAnswer:
		return fmt.Errorf("the answer of the API server has more than %d bytes", maxAnswer)
	case answer.StatusCode/100 != 2:
		var status metav1.Status
		if json.Unmarshal(text, &status) == nil && status.Kind == "Status" {
			return l.explainError(&apierrors.StatusError{ErrStatus: status})
		}
		return apierrors.NewGenericServerResponse(answer.StatusCode, c.method, schema.GroupResource{}, "", "", 0, true)
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("reading the answer of the API server: %w", err)
	}
	return nil
}
