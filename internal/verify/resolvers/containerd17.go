package resolvers

import (
	"context"
	"io"

	"github.com/containerd/containerd/remotes/docker"
	"github.com/containerd/containerd/remotes/docker/config"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// registries17 returns the registry hosts as containerd's CRI plugin does with config_path (pkg/cri/server,
// registryHosts).
func registries17(ctx context.Context, c Client) docker.RegistryHosts {
	return config.ConfigureHosts(ctx, config.HostOptions{HostDir: config.HostDirFromRoot(c.Root), Credentials: c.Credentials, UpdateClient: c.update})
}

func hosts17(c Client, host string) ([]Host, error) {
	list, err := registries17(context.Background(), c)(host)
	var hosts []Host
	for _, h := range list {
		hosts = append(hosts, Host{
			Scheme: scheme(h.Scheme, h.Client.Transport), Host: h.Host, Path: h.Path, Header: h.Header,
			Pull: h.Capabilities.Has(docker.HostCapabilityPull), Resolve: h.Capabilities.Has(docker.HostCapabilityResolve),
		})
	}
	return hosts, err
}

func pull17(ctx context.Context, c Client, ref string) (Pulled, error) {
	r := docker.NewResolver(docker.ResolverOptions{Hosts: registries17(ctx, c)})
	return puller{
		resolve: r.Resolve,
		fetch: func(ctx context.Context, name string, d ocispec.Descriptor) (io.ReadCloser, error) {
			f, err := r.Fetcher(ctx, name)
			if err != nil {
				return nil, err
			}
			return f.Fetch(ctx, d)
		},
	}.pull(ctx, ref)
}
