package kubelet

import (
	"context"
	"crypto"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate/csr"
	"k8s.io/client-go/util/keyutil"

	"wmco/bundle"
	"wmco/internal/test/simnode/identity"
)

// pendingKey is the name of the file with the key of the first certificate, until that is issued.
const pendingKey = `\kubelet-client.key.tmp`

// awaitFirstCertificate follows bootstrap.LoadClientCert, for a kubelet that does not rotate its certificate: it waits
// until the first one is issued, and keeps its key in a file so long.
func (k *kubelet) awaitFirstCertificate(ctx context.Context) (*identity.Client, error) {
	store := k.certificateStore("kubelet-client")
	if own, err := k.read(k.flags.kubeconfig); err != nil || !areValid(own.CertData) {
		if err := k.requestFirst(ctx, store); err != nil {
			return nil, err
		}
	}
	own, err := k.read(k.flags.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	pair, err := tls.X509KeyPair(own.CertData, own.KeyData)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	k.certificate = unchanging{&pair}
	return identity.NewClient(own, k.certificate, k.Wrap)
}

// unchanging is a certificate that is not renewed.
type unchanging struct{ certificate *tls.Certificate }

func (unchanging) Start()                      {}
func (unchanging) Stop()                       {}
func (u unchanging) Current() *tls.Certificate { return u.certificate }
func (unchanging) ServerHealthy() bool         { return true }

// requestFirst asks for the certificate as the bootstrap user, and writes the kubeconfig that points to it.
func (k *kubelet) requestFirst(ctx context.Context, store identity.Store) error {
	bootstrap, err := k.read(k.flags.bootstrap)
	if err != nil {
		return fmt.Errorf("reading the bootstrap kubeconfig: %w", err)
	}
	key, text, err := k.pendingKey(ctx, store)
	if err != nil {
		return err
	}
	issued, err := k.requestCertificate(ctx, bootstrap, key)
	if err != nil {
		return err
	}
	if _, err := store.Update(issued, text); err != nil {
		return err
	}
	if err := k.Host.RemoveFile(k.flags.certDir + pendingKey); err != nil {
		return err
	}
	return k.writeKubeconfig(ctx, store.CurrentPath())
}

// pendingKey returns the key of an earlier certificate, or else the one in the file, which is made if it is not there.
func (k *kubelet) pendingKey(ctx context.Context, store identity.Store) (crypto.Signer, []byte, error) {
	if have, err := store.Current(); err == nil {
		if text, err := keyutil.MarshalPrivateKeyToPEM(have.PrivateKey); err == nil {
			return have.PrivateKey.(crypto.Signer), text, nil
		}
	}
	text, err := k.Host.ReadFile(k.flags.certDir + pendingKey)
	if errors.Is(err, fs.ErrNotExist) {
		if text, err = keyutil.MakeEllipticPrivateKeyPEM(); err == nil {
			err = k.Host.WriteFile(ctx, k.flags.certDir+pendingKey, bundle.AccessAdmins, text)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(text)
	if err != nil {
		return nil, nil, err
	}
	return parsed.(crypto.Signer), text, nil
}

// requestCertificate makes the request, under a name that follows from the key, and waits for the certificate.
func (k *kubelet) requestCertificate(ctx context.Context, bootstrap *rest.Config, key crypto.Signer) ([]byte, error) {
	clients, err := kubernetes.NewForConfig(k.Wrap.Config(bootstrap))
	if err != nil {
		return nil, err
	}
	subject := &pkix.Name{Organization: []string{nodesGroup}, CommonName: userPrefix + k.name}
	text, err := cert.MakeCSR(key, subject, nil, nil)
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	sum := sha512.Sum512_256(public)
	usages := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
	name, uid, err := csr.RequestCertificateWithContext(
		ctx, clients, text, "node-csr-"+base64.RawURLEncoding.EncodeToString(sum[:])[:40],
		certificatesv1.KubeAPIServerClientKubeletSignerName, nil, usages, key,
	)
	if err != nil {
		return nil, err
	}
	return csr.WaitForCertificate(ctx, clients, name, uid)
}
