// Package cri is a client of containerd: the image service of the CRI (k8s.io/cri-api), and for labels of images
// containerd's images service. Pulls go through the hosts files of the registries, as those of the kubelet.
package cri

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	images "github.com/containerd/containerd/api/services/images/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	keeper "wmco/applier/agent/images"
	"wmco/bundle"
)

// Labels of images.
const (
	// pinnedLabel has containerd's CRI report an image as pinned; the kubelet removes none of those (containerd,
	// internal/cri/labels; kubernetes, pkg/kubelet/images/image_gc_manager.go). A pull by name writes the labels again,
	// without it.
	pinnedLabel, pinnedValue = "io.cri-containerd.pinned", "pinned"
	// markLabel marks that the label above was set here, and not by containerd's own configuration, which pins the pause
	// image. Its value is the name in the list.
	markLabel = "windowsmachineconfig.openshift.io/pinned-image"
)

// namespace is that of the CRI in containerd.
const namespace = "k8s.io"

// maxMessage is the size of the largest answer in bytes: 5,000 images are 4 MiB, the default of gRPC.
const maxMessage = 16 << 20

// Containerd implements images.Runtime.
type Containerd struct {
	cri    runtime.ImageServiceClient
	images images.ImagesClient
	disk   func(context.Context) (keeper.Disk, error)
}

var _ keeper.Runtime = &Containerd{}

// Dial is how the endpoint is reached.
type Dial func(ctx context.Context) (net.Conn, error)

// New returns the containerd that dial reaches. Nothing is dialed before it is needed, and a connection that breaks is
// dialed again.
func New(dial Dial, disk func(context.Context) (keeper.Disk, error)) (*Containerd, error) {
	connection, err := grpc.NewClient("passthrough:///containerd", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
	if err != nil {
		return nil, fmt.Errorf("preparing a client of containerd: %w", err)
	}
	return &Containerd{runtime.NewImageServiceClient(connection), images.NewImagesClient(connection), disk}, nil
}

// FindImage implements images.Runtime. It is pinned too where containerd's own configuration pins it, as the pause
// image, and then stays as it is.
func (c *Containerd) FindImage(ctx context.Context, name string) (keeper.Image, error) {
	answer, err := c.cri.ImageStatus(ctx, &runtime.ImageStatusRequest{Image: &runtime.ImageSpec{Image: name}})
	if err != nil {
		return keeper.Image{}, describeError(err)
	}
	if answer.GetImage() == nil {
		return keeper.Image{}, nil
	}
	return keeper.Image{Present: true, Pinned: answer.GetImage().GetPinned()}, nil
}

// PullImage implements images.Runtime. Mirrors have their credentials in the hosts files.
func (c *Containerd) PullImage(ctx context.Context, name string, auth bundle.Secret) error {
	request := &runtime.PullImageRequest{Image: &runtime.ImageSpec{Image: name}}
	if !auth.IsZero() {
		request.Auth = &runtime.AuthConfig{Auth: auth.Reveal(), ServerAddress: serverOf(name)}
	}
	_, err := c.cri.PullImage(ctx, request)
	return describeError(err)
}

// serverOf returns the address of an image's own registry. containerd gives credentials with an address to no other
// server, and to every mirror without one (internal/cri/server/images, ParseAuth); it asks registry-1.docker.io for
// docker.io (core/remotes/docker, DefaultHost).
func serverOf(name string) string {
	host, _, _ := strings.Cut(name, "/")
	if host == "docker.io" {
		host = "registry-1.docker.io"
	}
	return "https://" + host
}

// PinImage implements images.Runtime. containerd keeps an image by the names in its status; containerd's CRI follows
// the change of a label by its event.
func (c *Containerd) PinImage(ctx context.Context, name string) error {
	answer, err := c.cri.ImageStatus(ctx, &runtime.ImageStatusRequest{Image: &runtime.ImageSpec{Image: name}})
	if err != nil {
		return describeError(err)
	}
	reference := referenceOf(name, answer.GetImage().GetRepoDigests())
	if reference == "" {
		return fmt.Errorf("%w: it has no such name", errNotThere)
	}
	return c.writeLabels(ctx, reference, pinnedValue, name)
}

var errNotThere = errors.New("the image is not there")

// referenceOf returns the name of an image in containerd. It is that of the list, but for docker.io, whose short names
// have "library/" there.
func referenceOf(name string, references []string) string {
	if slices.Contains(references, name) {
		return name
	}
	_, digest, _ := strings.Cut(name, "@")
	for _, r := range references {
		if strings.HasPrefix(name, "docker.io/") && strings.HasPrefix(r, "docker.io/") && strings.HasSuffix(r, "@"+digest) {
			return r
		}
	}
	return ""
}

// ListPinned implements images.Runtime.
func (c *Containerd) ListPinned(ctx context.Context) ([]string, error) {
	list, err := c.listMarked(ctx)
	var names []string
	for _, image := range list {
		names = append(names, image.GetLabels()[markLabel])
	}
	return names, err
}

// listMarked returns the images with the mark. The filter is containerd's own (containerd, pkg/filters).
func (c *Containerd) listMarked(ctx context.Context) ([]*images.Image, error) {
	answer, err := c.images.List(inNamespace(ctx), &images.ListImagesRequest{Filters: []string{`labels."` + markLabel + `"`}})
	if err != nil {
		return nil, describeError(err)
	}
	// A label that was taken off stays with an empty value.
	return slices.DeleteFunc(answer.GetImages(), func(i *images.Image) bool { return i.GetLabels()[markLabel] == "" }), nil
}

// UnpinImage implements images.Runtime.
func (c *Containerd) UnpinImage(ctx context.Context, name string) error {
	list, err := c.listMarked(ctx)
	if err != nil {
		return err
	}
	for _, image := range list {
		if image.GetLabels()[markLabel] == name {
			err = errors.Join(err, c.writeLabels(ctx, image.GetName(), "", ""))
		}
	}
	return err
}

// writeLabels writes both labels of an image, and no other field of it. An empty value takes a label off. The target is
// sent though the mask leaves it out: containerd 2.4 ends with a nil pointer where there is none
// (plugins/services/images, imageFromProto).
func (c *Containerd) writeLabels(ctx context.Context, reference, pin, mark string) error {
	image, err := c.images.Get(inNamespace(ctx), &images.GetImageRequest{Name: reference})
	if err != nil {
		return describeError(err)
	}
	if image.GetImage().GetTarget() == nil {
		return fmt.Errorf("%w: containerd names no target of it", errNotThere)
	}
	_, err = c.images.Update(inNamespace(ctx), &images.UpdateImageRequest{
		Image: &images.Image{Name: reference, Target: image.GetImage().GetTarget(),
			Labels: map[string]string{pinnedLabel: pin, markLabel: mark}},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"labels." + pinnedLabel, "labels." + markLabel}},
	})
	return describeError(err)
}

// DiskSpace implements images.Runtime.
func (c *Containerd) DiskSpace(ctx context.Context) (keeper.Disk, error) { return c.disk(ctx) }

// inNamespace sets the namespace of the images service (containerd, pkg/namespaces).
func inNamespace(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "containerd-namespace", namespace)
}

// describeError returns an error without the words of gRPC.
func describeError(err error) error {
	if err == nil {
		return nil
	}
	answer := status.Convert(err)
	switch answer.Code() {
	case codes.Unavailable:
		return fmt.Errorf("%w: %s", keeper.ErrAway, answer.Message())
	case codes.Canceled, codes.DeadlineExceeded:
		return fmt.Errorf("asking containerd: %w", err)
	case codes.NotFound:
		return fmt.Errorf("the registry has no such image, or none for this Windows: %s", answer.Message())
	case codes.Unimplemented:
		return fmt.Errorf("%w: its CRI plugin does not run", keeper.ErrAway)
	}
	return errors.New(answer.Message())
}
