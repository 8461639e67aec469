package main

import (
	"context"
	"errors"

	"go.podman.io/image/v5/docker/policyconfiguration"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/types"
)

// imageName is the name of an image in a registry. It is that of package docker of containers/image, without the client that this program does not
// need: it cannot be read from.
type imageName struct{ reference.Named }

func parseName(text string) (imageName, error) {
	n, err := reference.ParseNormalizedNamed(text)
	if err != nil {
		return imageName{}, err
	}
	if n.String() != text {
		return imageName{}, errors.New("it is not a whole name")
	}
	_, err = policyconfiguration.DockerReferenceIdentity(n) // a tag or a digest, not both
	return imageName{n}, err
}

var errNoRegistry = errors.New("this program asks no registry")

// DockerReference implements types.ImageReference.
func (n imageName) DockerReference() reference.Named { return n.Named }

// PolicyConfigurationIdentity implements types.ImageReference.
func (n imageName) PolicyConfigurationIdentity() string {
	text, _ := policyconfiguration.DockerReferenceIdentity(n.Named) // parseName has looked
	return text
}

// PolicyConfigurationNamespaces implements types.ImageReference.
func (n imageName) PolicyConfigurationNamespaces() []string {
	return policyconfiguration.DockerReferenceNamespaces(n.Named)
}

// StringWithinTransport implements types.ImageReference.
func (n imageName) StringWithinTransport() string { return "//" + n.Named.String() }

// Transport implements types.ImageReference.
func (n imageName) Transport() types.ImageTransport { return registryTransport{} }

// NewImage implements types.ImageReference.
func (n imageName) NewImage(context.Context, *types.SystemContext) (types.ImageCloser, error) {
	return nil, errNoRegistry
}

// NewImageSource implements types.ImageReference.
func (n imageName) NewImageSource(context.Context, *types.SystemContext) (types.ImageSource, error) {
	return nil, errNoRegistry
}

// NewImageDestination implements types.ImageReference.
func (n imageName) NewImageDestination(context.Context, *types.SystemContext) (types.ImageDestination, error) {
	return nil, errNoRegistry
}

// DeleteImage implements types.ImageReference.
func (n imageName) DeleteImage(context.Context, *types.SystemContext) error { return errNoRegistry }

// registryTransport is the transport of such names.
type registryTransport struct{}

// Name implements types.ImageTransport.
func (registryTransport) Name() string { return "docker" }

// ParseReference implements types.ImageTransport.
func (registryTransport) ParseReference(string) (types.ImageReference, error) {
	return nil, errNoRegistry
}

// ValidatePolicyConfigurationScope implements types.ImageTransport.
func (registryTransport) ValidatePolicyConfigurationScope(string) error { return nil }
