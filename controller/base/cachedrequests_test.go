package base

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"slices"
	"strconv"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

	got := MetadataOf(CertificateRequestKind())
	if err := startedCache(t).Get(t.Context(), client.ObjectKeyFromObject(request), got); err != nil {
		t.Error(err)
	}
	if got.Name != request.Name || got.UID != request.UID || got.ResourceVersion == "" || len(got.Labels)+len(got.Annotations)+len(got.Finalizers)+len(got.ManagedFields) > 0 {
		t.Errorf("%+v", got)
	}
}

// cachedRequests is an API server that streams no lists: a list from its cache, which resource version 0 asks for, has no limit.
type cachedRequests struct {
	objects []metav1.PartialObjectMetadata
	// most is how many objects an answer had at most.
	most int
}

func (c *cachedRequests) List(o metav1.ListOptions) (runtime.Object, error) {
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}
	first, last := 0, len(c.objects)
	if o.ResourceVersion == "" && o.Limit > 0 {
		first, _ = strconv.Atoi(o.Continue)
		if last = min(last, first+int(o.Limit)); last < len(c.objects) {
			list.Continue = strconv.Itoa(last)
		}
	}
	list.Items = slices.Clone(c.objects[first:last])
	c.most = max(c.most, len(list.Items))
	return list, nil
}

func (c *cachedRequests) Watch(o metav1.ListOptions) (watch.Interface, error) {
	if o.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil)
	}
	return watch.NewFake(), nil
}

// TestCertificateRequestsAreListedInParts: at its start the operator would have all requests of a kubelet in memory, each with some megabytes of labels.
func TestCertificateRequestsAreListedInParts(t *testing.T) {
	server := &cachedRequests{}
	for i := range 3*namesAtATime + 1 {
		server.objects = append(server.objects, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i), ResourceVersion: "1", Labels: map[string]string{"a": "b"}}})
	}
	informer := newInformers(nil)(server, MetadataOf(CertificateRequestKind()), 0, toolscache.Indexers{})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { informer.RunWithContext(ctx); close(ended) }()
	if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Error("the informer does not start")
	}
	stop()
	<-ended
	all := informer.GetStore().List()
	if len(all) != len(server.objects) || server.most != namesAtATime {
		t.Errorf("%d requests of %d, %d at a time", len(all), len(server.objects), server.most)
	}
	for _, o := range all {
		if r, ok := o.(*metav1.PartialObjectMetadata); !ok || r.Name == "" || r.ResourceVersion == "" || r.Labels != nil {
			t.Errorf("%+v", o)
		}
	}
}
