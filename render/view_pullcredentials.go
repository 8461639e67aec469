package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"wmco/bundle"
	"wmco/render/mirrors"
)

// pullCredentialEntries adds the credentials with which the kubelet pulls images. It is there without any too: a kubelet
// reads the first config.json that it finds, and every user of a host may make one in C:\.docker (k8s.io/kubernetes
// pkg/credentialprovider, DefaultDockerConfigJSONPaths). Where the inputs lack the pull secret, the file is its stand-in.
func (e *emitter) pullCredentialEntries() {
	r, ok := e.wantedRow(rowPullCredentials)
	if !ok || e.cluster.Settings.PullSecret != PullSecretNode {
		return
	}
	content, err := pullCredentials(e.hosts.KubeletCredentials)
	if err != nil {
		e.errs = append(e.errs, err)
		return
	}
	if secret := e.cluster.Mirrors.PullSecret; secret.IsStandIn() {
		content = bundle.Content{Data: []byte(secret.Reveal() + "\n")}
	}
	e.addContent(r, r.Name, content)
	e.addCauses(r, r.Name)
	e.causedBy(r, r.Name, e.hosts.KubeletCauses)
}

// pullCredentials returns the file as kubelets read it (k8s.io/kubernetes pkg/credentialprovider, DockerConfigJSON). One entry that is not base64 of
// user:password would cost a kubelet all others: mirrors.Build has left those out.
func pullCredentials(list []mirrors.KubeletCredential) (bundle.Content, error) {
	data, err := encodeAuths(list, bundle.Secret.Reveal)
	if err != nil {
		return bundle.Content{}, err
	}
	preview, err := encodeAuths(list, bundle.Secret.String)
	return maybeSecret(data, preview), err
}

// dockerConfig is the file of credentials.
type dockerConfig struct {
	Auths map[string]dockerAuth `json:"auths"`
}

type dockerAuth struct {
	Auth string `json:"auth"`
}

func encodeAuths(list []mirrors.KubeletCredential, text func(bundle.Secret) string) ([]byte, error) {
	config := dockerConfig{map[string]dockerAuth{}}
	for _, c := range list {
		config.Auths[c.Key] = dockerAuth{text(c.Auth)}
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(config); err != nil {
		return nil, fmt.Errorf("encoding the credentials of the kubelet: %w", err)
	}
	return out.Bytes(), nil
}

// decodePullCredentials returns the entries of a file that pullCredentials made, by key; nil for anything else, such as a stand-in.
func decodePullCredentials(data []byte) []mirrors.KubeletCredential {
	var config dockerConfig
	if json.Unmarshal(data, &config) != nil {
		return nil
	}
	list := []mirrors.KubeletCredential{}
	for _, key := range slices.Sorted(maps.Keys(config.Auths)) {
		list = append(list, mirrors.KubeletCredential{Key: key, Auth: bundle.NewSecret(config.Auths[key].Auth)})
	}
	return list
}
