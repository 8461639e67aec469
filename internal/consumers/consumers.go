package consumers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
)

// What goldens hold in place of a secret, and the beginning of what stands for one that the inputs lack
// (wmco/bundle.MaskedText and StandIn).
const (
	masked  = "<masked>"
	standin = "<stand-in: "
)

// ErrUnavailable means that a check needs something that this machine lacks; its text says what.
var ErrUnavailable = errors.New("check not available here")

// Options are what checks need beside the file.
type Options struct {
	// Containerd is the path of a containerd built for this machine; without it its configuration cannot be checked.
	Containerd string
	// Scratch is an empty folder for files that stand in for those of the node.
	Scratch string
}

// Consumer is a program that reads files of one kind.
type Consumer struct {
	// Name says who reads the file.
	Name string
	// Patterns are the paths of the files, below the drive, as for path.Match.
	Patterns []string
	// Platform marks a file that only some platforms have.
	Platform bool

	check func(context.Context, []byte, Options) error
}

// All returns every consumer. A rendered file that none of them reads is a mistake in this list.
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
		{Name: "private-key", Patterns: []string{"k/tls/certs/tls.key"}, check: checkKey},
		// Read by the cloud provider alone, which is not linked here.
		{Name: "cloud", Patterns: []string{"k/cloud.conf"}, Platform: true, check: checkNothing},
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
// masked or stood in for as a whole passes: there is nothing to read. A panic is a refusal too: that is how the kubelet answers to a
// feature gate that it does not know.
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

func checkNothing(context.Context, []byte, Options) error { return nil }
