// Package apiservers reads the version of each API server, and the time of one. While a cluster is updated they differ,
// and an address that serves them all answers with any one of them.
//
//	EndpointSlice default/kubernetes --> address of each --> /version --> versions
//
// It reads; it changes nothing.
package apiservers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	semver "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"
	discoveryclient "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/client-go/rest"
)

const (
	// slice is the EndpointSlice in which each API server that lives has its address
	// (k8s.io/kubernetes/pkg/controlplane/reconcilers).
	slice = "kubernetes"
	// serviceName is a name in the certificate of every API server: that of its Service.
	serviceName = "kubernetes.default.svc"
	// patience is how long one API server is waited for. One that does not answer is about to be taken out of the
	// EndpointSlice.
	patience = 2 * time.Second
	// maxVersion is the size of the largest answer that is read, in bytes.
	maxVersion = 64 << 10
)

// Servers are the API servers of a cluster.
type Servers struct {
	// slice returns the addresses of each; a function, so that tests need no cluster.
	slice func(context.Context) (*discoveryv1.EndpointSlice, error)
	// usual is the address that the operator uses, with a client for it; each is for one server alone.
	usual       *url.URL
	usualClient *http.Client
	each        *http.Client
}

// New returns the API servers of a cluster. The client is for the address in the configuration.
func New(config *rest.Config, client *http.Client) (*Servers, error) {
	clients, err := discoveryclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	read := func(ctx context.Context) (*discoveryv1.EndpointSlice, error) {
		return clients.EndpointSlices(metav1.NamespaceDefault).Get(ctx, slice, metav1.GetOptions{})
	}
	return newServers(config, client, read)
}

func newServers(config *rest.Config, client *http.Client,
	read func(context.Context) (*discoveryv1.EndpointSlice, error)) (*Servers, error) {
	usual, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the API server: %w", err)
	}
	each, err := eachClient(config, usual.Hostname())
	if err != nil {
		return nil, fmt.Errorf("preparing the connections to single API servers: %w", err)
	}
	return &Servers{slice: read, usual: usual, usualClient: client, each: each}, nil
}

// eachClient returns a client for servers by their address. Their certificates have names, not addresses: each must
// have the name that the operator's own address has, or that of the Service. Nothing is sent, a token neither, before
// the certificate has been verified. A proxy is for targets outside of the cluster.
func eachClient(config *rest.Config, host string) (*http.Client, error) {
	own := rest.CopyConfig(config)
	if own.ServerName == "" {
		own.ServerName = serviceName
		if net.ParseIP(host) == nil {
			own.ServerName = host
		}
	}
	tls, err := rest.TLSConfigFor(own)
	if err != nil {
		return nil, err
	}
	transport, err := rest.HTTPWrappersForConfig(own, &http.Transport{TLSClientConfig: tls, DisableKeepAlives: true})
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: transport, Timeout: patience}, nil
}

// ListVersions returns the version of the API server that answers at the operator's own address, and of each one in the
// EndpointSlice that answers. The error is about the former: without it nothing else is done either.
func (s *Servers) ListVersions(ctx context.Context) ([]string, error) {
	first, err := fetchVersion(ctx, s.usualClient, s.usual)
	if err != nil {
		return nil, fmt.Errorf("asking the API server for its version: %w", err)
	}
	addresses, err := s.listServerURLs(ctx)
	if err != nil {
		return nil, err
	}
	var wait sync.WaitGroup
	answers := make([]string, len(addresses))
	for i, address := range addresses {
		wait.Go(func() {
			answers[i], _ = fetchVersion(ctx, s.each, address) // empty for one that does not answer
		})
	}
	wait.Wait()
	versions := []string{first}
	for _, v := range answers {
		if v != "" {
			versions = append(versions, v)
		}
	}
	return versions, ctx.Err()
}

// listServerURLs returns where single API servers are: none in a cluster that does not say so.
func (s *Servers) listServerURLs(ctx context.Context) ([]*url.URL, error) {
	endpoints, err := s.slice(ctx)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading EndpointSlice %s/%s: %w", metav1.NamespaceDefault, slice, err)
	}
	var all []*url.URL
	for _, port := range endpoints.Ports {
		if port.Port == nil {
			continue
		}
		for _, e := range endpoints.Endpoints {
			for _, address := range e.Addresses {
				all = append(all, &url.URL{Scheme: "https",
					Host: net.JoinHostPort(address, strconv.Itoa(int(*port.Port)))})
			}
		}
	}
	return all, nil
}

// ServerTime returns the time of day of the API server that answers at the operator's own address. It stands in the
// header Date of each answer (RFC 9110, section 6.6.1; package net/http, ResponseWriter).
func (s *Servers) ServerTime(ctx context.Context) (now time.Time, err error) {
	_, header, err := fetchFromServer(ctx, s.usualClient, s.usual)
	if err == nil {
		now, err = http.ParseTime(header.Get("Date"))
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("asking an API server for its time: %w", err)
	}
	return now, nil
}

// fetchVersion returns the version of the API server at an address.
func fetchVersion(ctx context.Context, client *http.Client, at *url.URL) (string, error) {
	body, _, err := fetchFromServer(ctx, client, at)
	if err != nil {
		return "", err
	}
	var info version.Info
	if err := json.Unmarshal(body, &info); err != nil {
		return "", fmt.Errorf("reading the answer: %w", err)
	}
	return EffectiveVersion(info), nil
}

// EffectiveVersion returns the version that an API server behaves as: that of its program, or the older minor version
// that it emulates (kube-apiserver --emulated-version;
// kubernetes.io/docs/concepts/cluster-administration/compatibility-version), such as "v1.35.0+emulated-by-v1.36.3". It
// serves the APIs of that one, so a newer kubelet would ask for what it does not have.
func EffectiveVersion(info version.Info) string {
	program, err := semver.ParseSemantic(info.GitVersion)
	emulated, unknown := semver.ParseGeneric(info.EmulationMajor + "." + info.EmulationMinor)
	if err != nil || unknown != nil || !emulated.LessThan(semver.MajorMinor(program.Major(), program.Minor())) {
		return info.GitVersion
	}
	return fmt.Sprintf("v%d.%d.0+emulated-by-v%d.%d.%d", emulated.Major(), emulated.Minor(), program.Major(),
		program.Minor(), program.Patch())
}

// fetchFromServer asks an API server for its version, which each user may
// (kubernetes.io/docs/reference/access-authn-authz/rbac, Discovery Roles).
func fetchFromServer(ctx context.Context, client *http.Client, at *url.URL) (body []byte,
	header http.Header, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.JoinPath("version").String(), http.NoBody)
	if err != nil {
		return nil, nil, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	if answer.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("the answer is %s", answer.Status)
	}
	body, err = io.ReadAll(io.LimitReader(answer.Body, maxVersion)) // to its end: the connection is used again
	return body, answer.Header, err
}
