package sources_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/gateway/places"
	"wmco/payload"
	"wmco/payload/sources"
)

func list() sources.List {
	blob := func(text string) payload.Blob {
		return payload.Blob{Digest: bundle.Of([]byte(text)), Size: int64(len(text))}
	}
	return sources.List{
		Payload: bundle.Of([]byte("payload")), Rate: 1 << 20,
		Image: places.Image{Registry: "quay.example.com", Repository: "org/wmco", Reference: string(bundle.Of([]byte("image")))},
		Places: []places.Place{
			{Registry: "mirror.example.com:5000", Repository: "org/wmco", Insecure: true, Auth: bundle.NewSecret(base64.StdEncoding.EncodeToString([]byte("u:word")))},
			{Registry: "quay.example.com", Repository: "org/wmco"},
		},
		Executables: []sources.Executable{
			{Name: "containerd", Raw: blob("raw of containerd"), Stored: blob("stored of containerd")},
			{Name: "kubelet-1.36", Raw: blob("raw of kubelet"), Stored: blob("stored of kubelet")},
		},
	}
}

func TestLists(t *testing.T) {
	l := list()
	data, err := l.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := sources.Decode(data)
	if diff := cmp.Diff(l, got, cmp.Comparer(func(a, b bundle.Secret) bool { return a.Reveal() == b.Reveal() })); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	shown, err := l.Masked().Encode()
	if err != nil || strings.Contains(string(shown)+fmt.Sprintf("%+v", l), l.Places[0].Auth.Reveal()) {
		t.Errorf("%v: a secret is shown", err)
	}
	if c := l.Executables[1].RawContent(); c.Validate() != nil || c.Digest != l.Executables[1].Raw.Digest || c.Stored != l.Executables[1].Stored.Size {
		t.Errorf("%+v", c)
	}
	later := strings.Replace(string(data), `"schema": 1,`, `"schema": 1, "added": {},`, 1)
	if _, err := sources.Decode([]byte(later)); err != nil {
		t.Errorf("with a field that is added later: %v", err)
	}
}

// TestListsThatCannotBeUsed are refused by who writes and who reads them, with errors that have no secrets.
func TestListsThatCannotBeUsed(t *testing.T) {
	for name, change := range map[string]func(*sources.List){
		"no payload":                func(l *sources.List) { l.Payload = "" },
		"a masked payload":          func(l *sources.List) { l.Payload = bundle.Key("k").Of([]byte("x")) },
		"an image by tag":           func(l *sources.List) { l.Image.Reference = "latest" },
		"no registry":               func(l *sources.List) { l.Image.Registry = "" },
		"a negative rate":           func(l *sources.List) { l.Rate = -1 },
		"a place without a name":    func(l *sources.List) { l.Places[1].Repository = "" },
		"an executable twice":       func(l *sources.List) { l.Executables[1].Name = "containerd" },
		"no order":                  func(l *sources.List) { slices.Reverse(l.Executables) },
		"an executable without any": func(l *sources.List) { l.Executables[0] = sources.Executable{} },
		"no size":                   func(l *sources.List) { l.Executables[0].Stored.Size = 0 },
	} {
		l := list()
		change(&l)
		if _, err := l.Encode(); err == nil || strings.Contains(err.Error(), list().Places[0].Auth.Reveal()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	data, err := list().Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"no JSON": `{"schema":1,`, "newer": `{"schema":99}`, "another form": `{"schema":1,"places":"` + list().Places[0].Auth.Reveal() + `"}`,
		"an image by tag": strings.Replace(string(data), list().Image.Reference, "latest", 1), "too large": strings.Repeat(" ", 5<<20),
	} {
		if _, err := sources.Decode([]byte(text)); err == nil || strings.Contains(err.Error(), list().Places[0].Auth.Reveal()) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOrders are read as they were written, and refused without a secret in the error.
func TestOrders(t *testing.T) {
	o := sources.Order{
		List: list(), Lacking: []bundle.Digest{bundle.Of([]byte("raw of containerd"))}, TrustedCAs: "PEM",
		Proxy: sources.Proxy{HTTP: bundle.NewSecret("http://u:word@proxy"), HTTPS: bundle.NewSecret("http://u:other@proxy"), NoProxy: ".svc"},
	}
	data, err := o.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := sources.DecodeOrder(bytes.NewReader(data))
	if diff := cmp.Diff(o, got, cmp.Comparer(func(a, b bundle.Secret) bool { return a.Reveal() == b.Reveal() })); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	bad := o
	bad.List.Image.Reference = "latest"
	if _, err := bad.Encode(); err == nil {
		t.Error("an order without an image is encoded")
	}
	for name, text := range map[string]string{
		"no JSON": `{"schema":1,`, "newer": `{"schema":99}`, "no list": `{"schema":1}`, "another form": `{"schema":1,"list":["http://u:word@proxy"],"lacking":"word"}`,
		"a list that cannot be used": strings.Replace(string(data), o.List.Image.Reference, "word", 1), "too large": strings.Repeat(" ", 9<<20),
	} {
		if _, err := sources.DecodeOrder(strings.NewReader(text)); err == nil || strings.Contains(err.Error(), "word") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := sources.DecodeOrder(iotest.ErrReader(io.ErrUnexpectedEOF)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("an order that does not come: %v", err)
	}
}
