package mirrors

import (
	"net/url"
	"slices"
	"strings"
)

// PullPlace is a place at which containerd pulls an image.
type PullPlace struct {
	URL string
	// Keys are the pull secret entries that containerd tries when this place requires authentication, in order. A user and
	// password in a key are masked.
	Keys []string
	// FromKubelet reports whether the credentials are those that the kubelet gives. Otherwise they are in the hosts file.
	FromKubelet bool
	// ContentsOnly is true if containerd asks this place only by digest, after another place has resolved the tag.
	ContentsOnly bool
}

// Pulls returns where containerd pulls an image, a full name with a tag or digest, and the credentials it sends there. With the digest of a tag, it asks all
// places in their order, whatever they may resolve (containerd core/remotes/docker, dockerFetcher.Fetch).
func (r Result) Pulls(in Inputs, image string) []PullPlace {
	list, _ := in.parseCredentials() // Build has reported entries that cannot be used
	file, _ := r.fileFor(image)
	resolving := r.Places(image)
	if len(resolving) == 0 {
		return nil
	}
	name, _, _ := strings.Cut(image, "@")
	all := r.Places(name + "@")
	if file.Routed { // the gateway pulls all of an image from the places of its tag
		all = resolving
	}
	var pulls []PullPlace
	for _, p := range all {
		pull := PullPlace{URL: p.URL, FromKubelet: p.Authorization.IsZero()}
		if file.Routed && !p.isOf(image) { // the gateway gives the kubelet's to the registry alone
			pull.FromKubelet = false
		}
		pull.ContentsOnly = !slices.ContainsFunc(resolving, func(o Place) bool { return o.URL == p.URL && o.Authorization == p.Authorization })
		if pull.FromKubelet {
			pull.Keys = r.kubeletKeys(image)
		} else {
			pull.Keys = keysOf(list, p.Endpoint)
		}
		pulls = append(pulls, pull)
	}
	return pulls
}

// isOf reports whether a place is the registry of an image.
func (p Place) isOf(image string) bool {
	u, err := url.Parse(p.URL)
	host, _, _ := strings.Cut(image, "/")
	return err == nil && hubName(u.Host) == hubName(host)
}

// keysOf returns the key of the entry whose credentials are in the hosts file for a mirror: one of the mirror's host, as several entries can be equal.
func keysOf(list []credential, e Endpoint) []string {
	u, err := url.Parse(e.URL)
	if err != nil {
		return nil
	}
	for _, c := range list {
		host, _, _ := strings.Cut(c.key, "/")
		if host == hubName(u.Host) && c.header.Reveal() == e.Authorization.Reveal() {
			return []string{shownKey(c.name)}
		}
	}
	return nil
}

// kubeletKeys returns the keys of the entries that a kubelet tries for an image (k8s.io/kubernetes pkg/credentialprovider, BasicDockerKeyring.Lookup): all
// that match, in the reverse order of their names, and without any the entry of Docker Hub for an image from there.
func (r Result) kubeletKeys(image string) []string {
	const hub = "index.docker.io"
	shown := map[string][]string{}
	var keys, hubs []string
	for _, c := range r.KubeletCredentials {
		key, ok := kubeletKey(c.Key)
		if ok && KubeletMatches(key, image) {
			keys = append(keys, key)
		}
		if key == hub {
			hubs = append(hubs, key)
		}
		shown[key] = append(shown[key], shownKey(c.Key))
	}
	host, _, _ := strings.Cut(image, "/")
	if len(keys) == 0 && (hubName(host) == dockerHub && host != "registry-1.docker.io" || !strings.ContainsAny(host, ".:")) {
		keys = hubs
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	slices.Reverse(keys)
	var list []string
	for _, key := range keys {
		list = append(list, shown[key]...)
	}
	return list
}

// kubeletKey returns a key of the pull secret as kubelets keep it, without scheme, user and version of the API; false for one that they ignore
// (BasicDockerKeyring.Add).
func kubeletKey(key string) (string, bool) {
	if !strings.HasPrefix(key, "https://") && !strings.HasPrefix(key, "http://") {
		key = "https://" + key
	}
	u, err := url.Parse(key)
	if err != nil {
		return "", false
	}
	path := u.Path
	if strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/v2/") {
		path = path[len("/v1"):]
	}
	if path == "/" {
		path = ""
	}
	return u.Host + path, true
}

// KubeletMatches reports whether a kubelet uses a key, or a pattern of a credential provider, for an image (URLsMatchStr).
func KubeletMatches(pattern, image string) bool {
	p, err := url.Parse("https://" + pattern)
	i, err2 := url.Parse("https://" + image)
	return err == nil && err2 == nil && matchesParts(p.Host, i.Host) && strings.HasPrefix(i.Path, p.Path)
}
