package consumers

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/kubernetes/pkg/credentialprovider"
)

// checkPullCredentials reads the credentials of registries as the kubelet does from its root directory, with a user in place of what a golden masks.
func checkPullCredentials(_ context.Context, contents []byte, o Options) error {
	if bytes.HasPrefix(contents, []byte(standin)) {
		return nil
	}
	var file struct {
		Auths map[string]struct {
			Auth string `json:"auth"`
		} `json:"auths"`
	}
	in := json.NewDecoder(bytes.NewReader(contents))
	in.DisallowUnknownFields()
	if err := in.Decode(&file); err != nil {
		return err
	}
	for key, entry := range file.Auths {
		if entry.Auth != masked {
			return errors.New("credentials must be masked")
		}
		file.Auths[key] = struct {
			Auth string `json:"auth"`
		}{base64.StdEncoding.EncodeToString([]byte("user:" + key))}
	}
	read, err := readPullCredentials(o.Scratch, file)
	if err != nil {
		return err
	}
	if len(read) != len(file.Auths) {
		return fmt.Errorf("the kubelet reads %d of %d entries", len(read), len(file.Auths))
	}
	for key, entry := range read {
		if entry.Username != "user" || entry.Password != key {
			return fmt.Errorf("%s: the kubelet reads other credentials", key)
		}
	}
	return nil
}

// readPullCredentials returns what a kubelet reads from a folder with that config.json.
func readPullCredentials(scratch string, file any) (credentialprovider.DockerConfig, error) {
	dir, err := os.MkdirTemp(scratch, "")
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(file)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), data, 0o600); err != nil {
		return nil, err
	}
	return credentialprovider.ReadDockerConfigJSONFile([]string{dir})
}
