package mirrors

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// KubeletCredential is an entry of the pull secret that a kubelet has.
type KubeletCredential struct {
	// Key is the name of the entry, as in the pull secret.
	Key string
	// Auth is base64 of user:password.
	Auth bundle.Secret
}

// notARegistry is in the pull secret of OpenShift clusters, and no image is pulled from there: it is for reports to the vendor.
const notARegistry = "cloud.openshift.com"

// kubeletCredentials returns the entries of the pull secret that kubelets may have. containerd sends what the kubelet gives it for an image to every
// endpoint of the image's registry that asks (containerd internal/cri/server/images, ParseAuth), so entries of registries with mirrors are left out.
func (b *builder) kubeletCredentials(files []HostsFile) (list []KubeletCredential, causes []bundle.Ref) {
	for _, c := range b.credentials {
		host, ok := kubeletHost(c.name)
		if !ok || host == notARegistry {
			continue
		}
		if b.exact {
			b.routeMirrored(files, host)
		}
		if source, mirror := mirrorOf(files, host); mirror != "" {
			for _, ref := range source.Causes {
				causes = appendNew(causes, ref)
			}
			b.addInfo(reason.PullSecretEntryWithheld, bundle.Finding{
				Object: b.in.PullSecretRef, Field: fmt.Sprintf("auths[%q]", shownKey(c.name)),
				Message: fmt.Sprintf("is not given to kubelets of Windows nodes: containerd would also send it to %s, a mirror of %s", mirror, source.Host),
				Fix:     "none if Pods on Windows nodes find these images at the mirrors; otherwise give the Pods an imagePullSecret, which containerd sends to the mirrors as well",
			})
			continue
		}
		list = append(list, KubeletCredential{Key: c.name, Auth: bundle.NewSecret(strings.TrimPrefix(c.header.Reveal(), "Basic "))})
	}
	return list, causes
}

// MirrorFor finds credentials that would be sent to a mirror. For a pull secret key or a pattern of a credential provider (matchImages has the form of a
// key), it returns the registry that matches, and the host of the mirror that would receive the credentials. Both are empty if there is none.
func (r Result) MirrorFor(key string) (source HostsFile, mirror string) {
	host, ok := kubeletHost(key)
	if !ok {
		return HostsFile{}, ""
	}
	return mirrorOf(r.Files, host)
}

// kubeletHost returns the host and port for which a kubelet uses an entry, with the wildcards in it; false for an entry that it ignores
// (k8s.io/kubernetes pkg/credentialprovider, BasicDockerKeyring.Add). Docker Hub has one name.
func kubeletHost(key string) (string, bool) {
	if !strings.HasPrefix(key, "https://") && !strings.HasPrefix(key, "http://") {
		key = "https://" + key
	}
	u, err := url.Parse(key)
	if err != nil {
		return "", false
	}
	return hubName(strings.ToLower(u.Host)), true
}

// mirrorOf returns the first registry that the host of an entry matches and that has a mirror on another host, with that host; empty for none. The file for
// all other registries has no mirrors: it blocks.
func mirrorOf(files []HostsFile, host string) (source HostsFile, mirror string) {
	for _, f := range files {
		own := hubName(f.Host)
		if f.Host == DefaultHost || f.Routed || !matchesHost(host, own) && !matchesHost(host, f.Host) {
			continue
		}
		for _, e := range append(slices.Clone(f.Hosts), f.Server) {
			u, err := url.Parse(e.URL)
			if err != nil || u.Host != "" && hubName(u.Host) != own {
				return f, u.Host
			}
		}
	}
	return HostsFile{}, ""
}

// matchesHost reports whether a kubelet uses an entry for a registry: the ports are equal, and each part of the entry's host name matches that of the
// registry's (k8s.io/kubernetes pkg/credentialprovider, URLsMatch). The entry of Docker Hub is also for a registry without a domain (isDefaultRegistryMatch).
func matchesHost(pattern, host string) bool {
	if pattern == dockerHub && !strings.ContainsAny(host, ".:") {
		return true
	}
	return matchesParts(pattern, host)
}

// matchesParts is matchesHost without Docker Hub.
func matchesParts(pattern, host string) bool {
	patternName, patternPort, _ := strings.Cut(pattern, ":")
	name, port, _ := strings.Cut(host, ":")
	patterns, parts := strings.Split(patternName, "."), strings.Split(name, ".")
	if patternPort != port || len(patterns) != len(parts) {
		return false
	}
	for i, p := range patterns {
		if matched, err := path.Match(p, parts[i]); err != nil || !matched {
			return false
		}
	}
	return true
}
