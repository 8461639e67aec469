package consumers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/distribution/reference"
)

// checkPinnedImages reads the list of images as the node agent does, and each name as containerd's CRI does when it
// pulls: a name that it would complete, such as one without a registry, is another image than in the list
// (github.com/containerd/containerd/v2, internal/cri/server/images).
func checkPinnedImages(_ context.Context, contents []byte, _ Options) error {
	var list struct {
		Schema int      `json:"schema"`
		Images []string `json:"images"`
	}
	in := json.NewDecoder(bytes.NewReader(contents))
	in.DisallowUnknownFields()
	if err := in.Decode(&list); err != nil {
		return err
	}
	for _, name := range list.Images {
		if err := checkCanonical(name); err != nil {
			return err
		}
	}
	return nil
}

// checkCanonical refuses a name of which containerd would pull another image.
func checkCanonical(name string) error {
	named, err := reference.ParseDockerRef(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if _, ok := named.(reference.Canonical); !ok || named.String() != name {
		return fmt.Errorf("%s: containerd would pull %s", name, named)
	}
	return nil
}

// checkPinnedCredentials reads the credentials of pinned images as the node agent does, but for the values, which a
// golden must not have: each is for images whose names containerd takes as they are.
func checkPinnedCredentials(_ context.Context, contents []byte, _ Options) error {
	var file struct {
		Schema      int `json:"schema"`
		Credentials []struct {
			Auth   string   `json:"auth"`
			Images []string `json:"images"`
		} `json:"credentials"`
	}
	in := json.NewDecoder(bytes.NewReader(contents))
	in.DisallowUnknownFields()
	if err := in.Decode(&file); err != nil {
		return err
	}
	for _, c := range file.Credentials {
		if c.Auth != "<masked>" || len(c.Images) == 0 {
			return errors.New("credentials must be masked, and for images")
		}
		for _, name := range c.Images {
			if err := checkCanonical(name); err != nil {
				return err
			}
		}
	}
	return nil
}
