package base

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"wmco/internal/test/testenv"
)

// TestOfCertificateRequestsTheNamesAreKept: a kubelet makes as many as it likes, each with some megabytes of labels.
func TestOfCertificateRequestsTheNamesAreKept(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:win-a", Organization: []string{"system:nodes"}}}, key)
	if err != nil {
		t.Fatal(err)
	}
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "large", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"a": "b"}, Finalizers: []string{"example.com/x"}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
	if err := testenv.NewClient(t, server.Node(t, "win-a")).Create(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		admin := server.Client(t)
		if err := admin.Patch(context.Background(), request, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
			t.Error(err)
		}
		if err := admin.Delete(context.Background(), request); err != nil {
			t.Error(err)
		}
	})

	o, config := CacheOptions(nil), rest.CopyConfig(server.Config(t))
	if o.HTTPClient, err = rest.HTTPClientFor(config); err != nil {
		t.Fatal(err)
	}
	if o.Mapper, err = apiutil.NewDynamicRESTMapper(config, o.HTTPClient); err != nil {
		t.Fatal(err)
	}
	kept, err := NewCache(nil, nil)(config, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- kept.Start(ctx) }()
	got := MetadataOf(CertificateRequestKind())
	if !kept.WaitForCacheSync(ctx) {
		t.Error("the cache does not start")
	}
	if err := kept.Get(ctx, client.ObjectKeyFromObject(request), got); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got.Name != request.Name || got.UID != request.UID || got.ResourceVersion == "" || len(got.Labels)+len(got.Annotations)+len(got.Finalizers)+len(got.ManagedFields) > 0 {
		t.Errorf("%+v", got)
	}
}
