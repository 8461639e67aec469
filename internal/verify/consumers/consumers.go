package consumers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
)

// The text that replaces a secret in goldens, and the beginning of the stand-in of one that the inputs lack
// (wmco/bundle.MaskedText and StandIn).
const (
	masked  = "<masked>"
	standin = "<stand-in: "
)

// ErrUnavailable means that a check needs something that is not installed. The text names it.
var ErrUnavailable = errors.New("check not available")

// Options are what checks need besides the file.
type Options struct {
	// Containerd is the path of a containerd for this system. Without it, its configuration is not checked.
	Containerd string
	// Scratch is an empty folder for replacements of files of the node.
	Scratch string
}

// Consumer is a program that reads files of one kind.
type Consumer struct {
	// Name is the name of the program that reads the file.
	Name string
	// Patterns are the paths of the files, below the drive, as for path.Match.
	Patterns []string
	// Platform is true for a file that only some platforms have.
	Platform bool

	check func(context.Context, []byte, Options) error
}

// All returns every consumer. Every rendered file must have one.
func All() []Consumer {
	return []Consumer{
		{Name: "kubelet", Patterns: []string{"k/kubelet.conf"}, check: checkKubelet},
		{Name: "kube-proxy", Patterns: []string{"k/kube-proxy.conf"}, check: checkKubeProxy},
		{Name: "cni", Patterns: []string{"k/cni/config/cni.conf"}, check: checkCNI},
		{
			Name:     "client-go",
			Patterns: []string{"k/bootstrap-kubeconfig", "k/wicd-kubeconfig", "k/cloud-node-manager-kubeconfig"},
			check:    checkKubeconfig,
		},
		{
			Name:     "credential-provider",
			Patterns: []string{"k/credential-provider-config.yaml"},
			Platform: true,
			check:    checkCredentialProvider,
		},
		{Name: "acr-credential-provider", Patterns: []string{"k/cloud.conf"}, Platform: true, check: checkCloudConf},
		{Name: "exporter", Patterns: []string{"k/tls/windows-exporter-webconfig.yaml"}, check: checkExporter},
		{Name: "containerd", Patterns: []string{"k/containerd/containerd_conf.toml"}, check: checkContainerd},
		{
			Name:     "containerd-hosts",
			Patterns: []string{"k/containerd/registries/*/hosts.toml"},
			Platform: true,
			check:    checkHosts,
		},
		{
			Name:     "certificates",
			Patterns: []string{"k/kubelet-ca.crt", "k/bootstrap-ca.crt", "k/ca-bundle.crt", "k/tls/certs/tls.crt"},
			check:    checkCertificates,
		},
		{Name: "pinned-images", Patterns: []string{"k/pinned-images.json"}, check: checkPinnedImages},
		{Name: "pinned-credentials", Patterns: []string{"k/pinned-images-credentials.json"}, check: checkPinnedCredentials},
		{Name: "pull-credentials", Patterns: []string{"var/lib/kubelet/config.json"}, check: checkPullCredentials},
		{Name: "places", Patterns: []string{"k/registry/places.json"}, check: checkPlaces},
		{Name: "executables", Patterns: []string{"k/executables.json"}, check: checkExecutables},
		{Name: "private-key", Patterns: []string{"k/tls/certs/tls.key"}, check: checkKey},
	}
}

// Find returns the consumer of the file at a slash path below the drive, such as k/kubelet.conf.
func Find(file string) (Consumer, bool) {
	for _, c := range All() {
		for _, pattern := range c.Patterns {
			if ok, err := path.Match(pattern, file); err == nil && ok {
				return c, true
			}
		}
	}
	return Consumer{}, false
}

// Check returns why the program would refuse the contents, all reasons at once, or an ErrUnavailable. A file that is
// masked or a stand-in as a whole passes. A panic is a refusal too: the kubelet panics on an unknown feature gate.
func (c Consumer) Check(ctx context.Context, contents []byte, o Options) (err error) {
	if hidden(contents) {
		return nil
	}
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%s would panic: %v", c.Name, cause)
		}
	}()
	if err := c.check(ctx, contents, o); err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	return nil
}

func hidden(contents []byte) bool {
	text := string(bytes.TrimSpace(contents))
	return text == masked || strings.HasPrefix(text, standin) && !strings.Contains(text, "\n")
}
