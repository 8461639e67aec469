package consumers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/distribution/reference"
)

// checkPinnedImages reads the list of images as the node agent does, and each name as containerd's CRI does when it pulls: a name that it would complete,
// such as one without a registry, is another image than the list says (github.com/containerd/containerd/v2, internal/cri/server/images).
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
		named, err := reference.ParseDockerRef(name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if _, ok := named.(reference.Canonical); !ok || named.String() != name {
			return fmt.Errorf("%s: containerd would pull %s", name, named)
		}
	}
	return nil
}
