package bundle

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPinnedImagesAreReadAsWritten(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("a1", 32)
	want := []string{"mcr.microsoft.com/windows/servercore" + digest, "registry.example.com:5000/team/app" + digest}
	data, err := EncodePinnedImages(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodePinnedImages(data)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for name, text := range map[string]string{
		"a newer schema":           `{"schema":2,"images":[]}`,
		"no schema":                `{"images":[]}`,
		"another field":            `{"schema":1,"images":[],"auth":"x"}`,
		"something behind":         string(data) + "{}",
		"an image by tag":          `{"schema":1,"images":["mcr.microsoft.com/windows/servercore:ltsc2022"]}`,
		"more images than allowed": `{"schema":1,"images":["` + strings.Repeat(want[0]+`","`, MaxPinnedImages) + want[1] + `"]}`,
	} {
		if _, err := DecodePinnedImages([]byte(text)); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestNamesOfImagesByDigest(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0f", 32)
	for name, valid := range map[string]bool{
		"mcr.microsoft.com/windows/servercore" + digest:          true,
		"registry.example.com:5000/a" + digest:                   true,
		"localhost/a" + digest:                                   true,
		"registry:5000/a__b/c--d" + digest:                       true,
		"team/app" + digest:                                      false, // containerd asks docker.io for it
		"app" + digest:                                           false,
		"mcr.microsoft.com/windows/servercore:ltsc2022":          false,
		"mcr.microsoft.com/windows:ltsc2022" + digest:            false,
		"mcr.microsoft.com/Windows" + digest:                     false,
		"mcr.microsoft.com/a@sha256:abc":                         false,
		"https://mcr.microsoft.com/a" + digest:                   false,
		"u:p@mcr.microsoft.com/a" + digest:                       false,
		"mcr.microsoft.com/" + strings.Repeat("a", 400) + digest: false,
	} {
		if err := CheckImageByDigest(name); (err == nil) != valid {
			t.Errorf("%s: valid %t, want %t", name, err == nil, valid)
		}
	}
}
