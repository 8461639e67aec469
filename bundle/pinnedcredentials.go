package bundle

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// PinnedCredentialsFile has the credentials for the registries of pinned images, which the node agent gives containerd
// with a pull. Mirrors have theirs in the hosts files. There is none where no image needs any.
const PinnedCredentialsFile = `C:\k\pinned-images-credentials.json`

// PinnedCredential is for some of the pinned images: no other image is pulled with it.
type PinnedCredential struct {
	// Auth is base64 of user:password, as in a pull secret.
	Auth Secret
	// Images are names of PinnedImages, sorted, each once.
	Images []string
}

// pinnedCredentials is the content of PinnedCredentialsFile.
type pinnedCredentials struct {
	Schema      int                    `json:"schema"`
	Credentials []pinnedCredentialJSON `json:"credentials"`
}

type pinnedCredentialJSON struct {
	Auth   string   `json:"auth"`
	Images []string `json:"images"`
}

const (
	pinnedCredentialsSchema = 1
	// maxPinnedCredentials is the size of the largest file in bytes: every image with the largest token that registries
	// give.
	maxPinnedCredentials = MaxPinnedImages * (maxImageName + 16<<10)
)

// EncodePinnedCredentials returns the content of the file, in the order of the list. It has the secrets in clear.
func EncodePinnedCredentials(list []PinnedCredential) ([]byte, error) {
	file := pinnedCredentials{Schema: pinnedCredentialsSchema}
	for _, c := range list {
		file.Credentials = append(file.Credentials, pinnedCredentialJSON{c.Auth.Reveal(), c.Images})
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(file); err != nil {
		return nil, fmt.Errorf("encoding the credentials of pinned images: %w", err)
	}
	return out.Bytes(), nil
}

// DecodePinnedCredentials reads what EncodePinnedCredentials wrote, by image; a newer schema is a *SchemaError. Errors
// have no secrets.
func DecodePinnedCredentials(data []byte) (map[string]Secret, error) {
	const what = "credentials of pinned images"
	if len(data) > maxPinnedCredentials {
		return nil, fmt.Errorf("%w: %s", ErrTooLarge, what)
	}
	if err := CheckSchema(data, what, pinnedCredentialsSchema); err != nil {
		return nil, err
	}
	var file pinnedCredentials
	if json.Unmarshal(data, &file) != nil {
		return nil, errors.New("decoding the " + what + ": it is not JSON of the right form")
	}
	all := map[string]Secret{}
	for _, c := range file.Credentials {
		text, err := base64.StdEncoding.DecodeString(c.Auth)
		if err != nil || !strings.Contains(string(text), ":") {
			return nil, errors.New("decoding the " + what + ": auth is not base64 of user:password")
		}
		for _, image := range c.Images {
			if err := CheckImageByDigest(image); err != nil {
				return nil, fmt.Errorf("decoding the %s: %q: %w", what, image, err)
			}
			all[image] = NewSecret(c.Auth)
		}
	}
	return all, nil
}
