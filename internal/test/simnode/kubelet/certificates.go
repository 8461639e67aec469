package kubelet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/certificate"

	"wmco/applier/agent"
	"wmco/bundle"
	"wmco/internal/test/simnode/identity"
)

// userPrefix and nodesGroup are the identity of a node (kubernetes.io/docs/reference/access-authn-authz/node).
const (
	userPrefix = "system:node:"
	nodesGroup = "system:nodes"
)

// startClientCertificate follows buildKubeletClientConfig and bootstrap.LoadClientConfig: a kubeconfig that is still
// valid is used, otherwise one is written that points to the certificate which is requested as the bootstrap user.
func (k *kubelet) startClientCertificate(ctx context.Context) (*identity.Client, error) {
	if !k.config.RotateCertificates {
		return k.awaitFirstCertificate(ctx)
	}
	store := k.certificateStore("kubelet-client")
	server, bootstrap, err := k.apiServers(ctx, store)
	if err != nil {
		return nil, err
	}
	var client *identity.Client
	manager, err := certificate.NewManager(&certificate.Config{
		ClientsetFn:      identity.Clients(k.Wrap.Config(bootstrap), func() *identity.Client { return client }),
		Template:         &x509.CertificateRequest{Subject: pkix.Name{CommonName: userPrefix + k.name, Organization: []string{nodesGroup}}},
		SignerName:       certificatesv1.KubeAPIServerClientKubeletSignerName,
		GetUsages:        certificate.DefaultKubeletClientGetUsages,
		CertificateStore: store, Ctx: &ctx,
	})
	if err != nil {
		return nil, err
	}
	if client, err = identity.NewClient(server, manager, k.Wrap); err != nil {
		return nil, err
	}
	k.certificate = manager
	manager.Start()
	return client, nil
}

func (k *kubelet) certificateStore(prefix string) identity.Store {
	return identity.Store{Files: k.Host, Folder: k.flags.certDir, Prefix: prefix, Now: k.Now}
}

// apiServers returns the API server by the kubelet's kubeconfig and as the bootstrap user.
func (k *kubelet) apiServers(ctx context.Context, store identity.Store) (server, bootstrap *rest.Config, err error) {
	if own, err := k.read(k.flags.kubeconfig); err == nil && areValid(own.CertData) {
		return own, own, nil
	}
	if k.flags.bootstrap == "" {
		return nil, nil, fmt.Errorf("reading the kubeconfig %s: it is not valid, and there is no bootstrap kubeconfig", k.flags.kubeconfig)
	}
	bootstrap, err = k.read(k.flags.bootstrap)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the bootstrap kubeconfig: %w", err)
	}
	return bootstrap, bootstrap, k.writeKubeconfig(ctx, store.CurrentPath())
}

func (k *kubelet) read(path string) (*rest.Config, error) {
	return agent.Connection{Kubeconfig: path, ReadFile: k.Host.ReadFile}.RESTConfig()
}

// areValid reports whether no certificate has expired, and there is one (isClientConfigStillValid).
func areValid(data []byte) bool {
	found := false
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil || time.Now().After(cert.NotAfter) {
			return false
		}
		found = true
	}
	return found
}

// writeKubeconfig writes what writeKubeconfigFromBootstrapping does.
func (k *kubelet) writeKubeconfig(ctx context.Context, certificate string) error {
	text, err := k.Host.ReadFile(k.flags.bootstrap)
	if err != nil {
		return err
	}
	from, err := clientcmd.Load(text)
	if err != nil {
		return err
	}
	cluster := from.Clusters[from.Contexts[from.CurrentContext].Cluster]
	to := clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"default-cluster": {
			Server: cluster.Server, CertificateAuthority: cluster.CertificateAuthority,
			CertificateAuthorityData: cluster.CertificateAuthorityData,
			InsecureSkipTLSVerify:    cluster.InsecureSkipTLSVerify,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"default-auth": {ClientCertificate: certificate, ClientKey: certificate}},
		Contexts: map[string]*clientcmdapi.Context{
			"default-context": {Cluster: "default-cluster", AuthInfo: "default-auth", Namespace: "default"},
		},
		CurrentContext: "default-context",
	}
	data, err := clientcmd.Write(to)
	if err != nil {
		return err
	}
	return k.Host.WriteFile(ctx, k.flags.kubeconfig, bundle.AccessAdmins, data)
}

// startServingCertificate follows NewKubeletServerCertificateManager. Nothing is requested before the Node has an
// address. Nil is a kubelet that is told not to ask for a certificate.
func (k *kubelet) startServingCertificate(ctx context.Context) (certificate.Manager, error) {
	if !k.config.ServerTLSBootstrap || k.config.TLSCertFile != "" {
		return nil, nil //nolint:nilnil // it has none
	}
	manager, err := certificate.NewManager(&certificate.Config{
		ClientsetFn: func(*tls.Certificate) (kubernetes.Interface, error) {
			return kubernetes.NewForConfigAndClient(k.client.Config, k.client.HTTP)
		},
		GetTemplate: k.servingTemplate, SignerName: certificatesv1.KubeletServingSignerName, GetUsages: certificate.DefaultKubeletServingGetUsages,
		CertificateStore: k.certificateStore("kubelet-server"), Ctx: &ctx,
	})
	if err != nil {
		return nil, err
	}
	manager.Start()
	return manager, nil
}

// servingTemplate is nil before the Node has an IP address.
func (k *kubelet) servingTemplate() *x509.CertificateRequest {
	names, addresses := map[string]bool{}, map[string]bool{}
	for _, a := range k.lastAddresses() {
		switch {
		case net.ParseIP(a.Address) != nil:
			addresses[a.Address] = true
		case a.Type != corev1.NodeInternalIP && a.Type != corev1.NodeExternalIP:
			names[a.Address] = true
		}
	}
	if len(addresses) == 0 {
		return nil
	}
	r := &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: userPrefix + k.name, Organization: []string{nodesGroup}},
		DNSNames: slices.Sorted(maps.Keys(names)),
	}
	for _, a := range slices.Sorted(maps.Keys(addresses)) {
		r.IPAddresses = append(r.IPAddresses, net.ParseIP(a))
	}
	return r
}

// watchCertificate follows UpdateTransport: connections are made again with a renewed certificate, and the kubelet
// exits when it has none for a time although the API server answers.
func (k *kubelet) watchCertificate(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	had := time.Now()
	every(ctx, func() time.Duration { return k.Times.Certificate }, func() {
		k.client.Renewed()
		switch current := k.certificate.Current(); {
		case current != nil:
			had = time.Now()
		case time.Since(had) > k.Times.NoCertificate && k.certificate.ServerHealthy():
			stop(errors.New("there is no valid client certificate, and the API server answers"))
		}
	})
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
