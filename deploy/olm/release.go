// Package olm makes an OLM bundle (registry+v1) and a file-based catalog of the manifests in deploy.
//
//	objects of deploy/kustomization.yaml, Release --Bundle--> manifests/, metadata/
//	                                              --Catalog-> catalog.yaml
//
// It is a function of its arguments alone. The names of the package and its channels are those of the existing
// operator, so that a Subscription of that one goes on with this one.
package olm

import (
	"errors"
	"fmt"
	"net/mail"
	"regexp"
	"time"

	"github.com/Masterminds/semver/v3"
)

// Names of the existing operator.
const (
	// Package is the name of the package, of the Deployment and of its ServiceAccount.
	Package        = "windows-machine-config-operator"
	namespace      = "openshift-windows-machine-config-operator"
	channelPreview = "preview"
	channelStable  = "stable"
)

// The versions of the existing operator that this one replaces: those for the clusters that this one serves. 10.y is
// for clusters of version 4.y, 11.y for 5.y.
const (
	takenOverFrom = "10.18.0"
	takenOverTo   = "12.0.0-0"
)

// Release is what differs from one bundle to the next.
type Release struct {
	// Version is that of the operator, without a leading v.
	Version string
	// Image is that of the operator, by digest: that of a tag could change after the bundle was reviewed.
	Image string
	// BundleImage is where the image of the bundle will be.
	BundleImage string
	// PauseImage is that of the nodes, by digest. Without one the bundle does not say that it works in disconnected
	// clusters: whoever mirrors its relatedImages would lack an image that every Pod needs.
	PauseImage string
	// Maintainer is who makes the release, as NAME <ADDRESS>.
	Maintainer string
	// Repository is the URL of the sources; empty if there is none.
	Repository string
	Created    time.Time
}

// ErrImage means that an image is not given as REGISTRY/NAME@sha256:DIGEST.
var ErrImage = errors.New("the image must be given as REGISTRY/NAME@sha256:DIGEST")

var imageByDigest = regexp.MustCompile(`^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)+@sha256:[0-9a-f]{64}$`)

// check returns the problems of the release.
func (r Release) check() error {
	if _, err := semver.StrictNewVersion(r.Version); err != nil {
		return fmt.Errorf("reading version %q: %w", r.Version, err)
	}
	if !imageByDigest.MatchString(r.Image) {
		return fmt.Errorf("%w, not %q", ErrImage, r.Image)
	}
	if r.PauseImage != "" && !imageByDigest.MatchString(r.PauseImage) {
		return fmt.Errorf("%w, not %q", ErrImage, r.PauseImage)
	}
	if _, err := mail.ParseAddress(r.Maintainer); err != nil {
		return fmt.Errorf("reading maintainer %q: %w; give NAME <ADDRESS>", r.Maintainer, err)
	}
	return nil
}

// Name is that of the ClusterServiceVersion.
func (r Release) Name() string { return Package + ".v" + r.Version }

// skipRange is the versions that an installation may have before it is updated to this one: earlier releases, and the
// existing operator.
func (r Release) skipRange() string {
	first := semver.MustParse(takenOverFrom)
	if v, err := semver.StrictNewVersion(r.Version); err == nil && !v.LessThan(first) {
		return ">=" + takenOverFrom + " <" + r.Version
	}
	return "<" + r.Version + " || >=" + takenOverFrom + " <" + takenOverTo
}
