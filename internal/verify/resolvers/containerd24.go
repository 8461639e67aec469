package resolvers

import (
	"context"
	"errors"
	"io"

	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/containerd/v2/core/remotes/docker/config"
	"github.com/containerd/errdefs"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// registries24 returns the registry hosts as containerd's CRI plugin does with config_path (internal/cri/server/images,
// registryHosts).
func registries24(ctx context.Context, c Client) docker.RegistryHosts {
	return config.ConfigureHosts(ctx, config.HostOptions{HostDir: config.HostDirFromRoot(c.Root), Credentials: c.Credentials, UpdateClient: c.update})
}

func hosts24(c Client, host string) ([]Host, error) {
	list, err := registries24(context.Background(), c)(host)
	var hosts []Host
	for _, h := range list {
		hosts = append(hosts, Host{
			Scheme: scheme(h.Scheme, h.Client.Transport), Host: h.Host, Path: h.Path, Header: h.Header,
			Pull: h.Capabilities.Has(docker.HostCapabilityPull), Resolve: h.Capabilities.Has(docker.HostCapabilityResolve),
		})
	}
	return hosts, err
}

func pull24(ctx context.Context, c Client, ref string) (Pulled, error) {
	r := docker.NewResolver(docker.ResolverOptions{Hosts: registries24(ctx, c)})
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

// Push pushes an image to the registry of the reference with containerd's own pusher.
func Push(ctx context.Context, c Client, ref string, i Image) error {
	p, err := docker.NewResolver(docker.ResolverOptions{Hosts: registries24(ctx, c)}).Pusher(ctx, ref)
	if err != nil {
		return err
	}
	for _, b := range []struct {
		mediaType string
		data      []byte
	}{{ocispec.MediaTypeImageLayer, i.Layer}, {ocispec.MediaTypeImageConfig, i.Config}, {ocispec.MediaTypeImageManifest, i.Manifest}} {
		if err := push(ctx, p, describe(b.mediaType, b.data), b.data); err != nil {
			return err
		}
	}
	return nil
}

func push(ctx context.Context, p remotes.Pusher, d ocispec.Descriptor, data []byte) error {
	w, err := p.Push(ctx, d)
	if errdefs.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	if err == nil {
		err = w.Commit(ctx, d.Size, d.Digest)
	}
	return errors.Join(err, w.Close())
}
