package release

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"

	"wmco/internal/build/bills"
	"wmco/payload/store"
)

// Bill returns the bill of materials of the image with that digest: the operators and the executables, and what they
// link.
func (i Image) Bill(digest string) ([]byte, error) {
	opened, err := store.Open(i.Payload)
	if err != nil {
		return nil, err
	}
	whole := bills.New(cyclonedx.Component{
		BOMRef: Name, Type: cyclonedx.ComponentTypeContainer, Name: Name, Version: i.Labels.Version,
		PackageURL: "pkg:oci/" + Name + "@" + digest,
	})
	for _, p := range slices.Concat(i.Programs, i.Shells) {
		one, err := p.bill(i.Labels.Version)
		if err != nil {
			return nil, err
		}
		whole.Merge(one)
	}
	for _, e := range opened.Entries() {
		if name := filepath.Join(i.Bills, billOf(e.Name)); exists(name) {
			one, err := readBill(name)
			if err != nil {
				return nil, err
			}
			whole.Merge(one)
			continue
		}
		whole.Add("", []cyclonedx.Component{{
			BOMRef: e.Name, Type: cyclonedx.ComponentTypeApplication, Name: e.Name, Version: e.Version,
			PackageURL: bills.PackageURL(e.Module, e.Version),
			Hashes:     &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: string(e.Raw.Digest)[len("sha256:"):]}},
		}})
	}
	return whole.Encode()
}

// Bill returns the bill of materials of a program of ours.
func (p Program) Bill(version string) ([]byte, error) {
	info, err := buildinfo.ReadFile(p.Path)
	if err != nil {
		return nil, fmt.Errorf("reading the build information of %q: %w", p.Path, err)
	}
	sum, err := sumOf(p.Path)
	if err != nil {
		return nil, err
	}
	name := cmp.Or(p.Name, "wmco")
	b := bills.New(cyclonedx.Component{
		BOMRef: name + "-" + p.OS + "-" + p.Arch, Type: cyclonedx.ComponentTypeApplication, Name: name, Version: version,
		Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: sum}},
		Properties: &[]cyclonedx.Property{
			{Name: "wmco:platform", Value: p.Platform()}, {Name: "wmco:package", Value: info.Path},
			{Name: "wmco:go", Value: info.GoVersion},
		},
	})
	b.Add("", bills.LinkedModules(info.GoVersion, info))
	return b.Encode()
}

// bill returns the bill as one that can be merged.
func (p Program) bill(version string) (*cyclonedx.BOM, error) {
	data, err := p.Bill(version)
	if err != nil {
		return nil, err
	}
	return decodeBill(data)
}

func decodeBill(data []byte) (*cyclonedx.BOM, error) {
	b := new(cyclonedx.BOM)
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(data), cyclonedx.BOMFileFormatJSON).Decode(b); err != nil {
		return nil, err
	}
	if b.Metadata == nil || b.Metadata.Component == nil {
		return nil, errors.New("it does not say of what it is the bill")
	}
	return b, nil
}

func readBill(name string) (*cyclonedx.BOM, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	b, err := decodeBill(data)
	if err != nil {
		return nil, fmt.Errorf("reading bill of materials %q: %w", name, err)
	}
	return b, nil
}

func sha256Of(c *cyclonedx.Component) string {
	if c.Hashes == nil {
		return ""
	}
	for _, h := range *c.Hashes {
		if h.Algorithm == cyclonedx.HashAlgoSHA256 {
			return h.Value
		}
	}
	return ""
}

// sumOf returns the sha256 digest of a file in hexadecimal.
func sumOf(name string) (string, error) {
	from, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer from.Close() //nolint:errcheck // only read from
	h := sha256.New()
	if _, err := io.Copy(h, from); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
