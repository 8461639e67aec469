package render

import (
	"fmt"
	"slices"

	"wmco/render/mirrors"
)

// ImagePull lists the places at which Windows nodes pull an image for a Pod without an imagePullSecret.
type ImagePull struct {
	Image string `json:"image"`
	// Places are asked in this order.
	Places []PullPlace `json:"places"`
}

// PullPlace is a place at which containerd asks for an image.
type PullPlace struct {
	URL string `json:"url"`
	// Credentials are the sources of the credentials that containerd sends when the place asks for them; empty for none.
	Credentials []string `json:"credentials"`
	// ContentsOnly is true for a place that is not asked for the tag, but for the digest that the tag stands for.
	ContentsOnly bool `json:"contentsOnly,omitempty"`
}

// CheckImage reports whether an image is named as Windows nodes need it: with its registry, and a tag or a digest. The error shows no
// user or password.
func CheckImage(image string) error {
	if !imageReference.MatchString(image) {
		return fmt.Errorf("%q is not an image with its registry and a tag or digest", mirrors.ShownName(image))
	}
	return nil
}

// ImagePulls returns where Windows nodes pull images.
func (c Cluster) ImagePulls(images []string) []ImagePull {
	hosts := c.hostsFiles()
	var list []ImagePull
	for _, image := range images {
		pull := ImagePull{Image: image, Places: []PullPlace{}}
		for _, p := range hosts.Pulls(c.Mirrors, image) {
			pull.Places = append(pull.Places, PullPlace{URL: p.URL, Credentials: c.pullCredentials(hosts, image, p), ContentsOnly: p.ContentsOnly})
		}
		list = append(list, pull)
	}
	return list
}

func (c Cluster) pullCredentials(hosts mirrors.Result, image string, p mirrors.PullPlace) []string {
	from := []string{}
	if c.Mirrors.PullSecret.IsStandIn() {
		from = append(from, "entries of the pull secret, which the inputs lack")
	}
	for _, key := range p.Keys {
		from = append(from, fmt.Sprintf("entry %q of the pull secret", key))
	}
	config, err := c.providersToRun(hosts)
	if err != nil || !p.FromKubelet {
		return from // errors in the file of providers are findings
	}
	for _, x := range config.Providers {
		if slices.ContainsFunc(x.MatchImages, func(pattern string) bool { return mirrors.KubeletMatches(pattern, image) }) {
			from = append(from, fmt.Sprintf("credential provider %q", x.Name))
		}
	}
	return from
}
