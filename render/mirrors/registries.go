package mirrors

import (
	"fmt"

	"wmco/bundle"
	"wmco/render/reason"
)

// addScopes adds what Image/cluster says of whole hosts, and tells of what containerd cannot do with parts of them.
func (b *builder) addScopes() {
	for i, s := range b.blocked {
		if s == (scope{}) {
			continue
		}
		field := fmt.Sprintf("spec.registrySources.blockedRegistries[%d]", i)
		if s.wildcard || s.path != "" || unrepresentable(s) != "" {
			b.warn(reason.BlockNotRepresentable, bundle.Finding{
				Object: b.in.Scopes.Ref, Field: field, Message: fmt.Sprintf("%s is not blocked on Windows nodes: containerd can block whole registries by name only", s), Fix: "block the whole registry, or each registry by its name",
			})
			continue
		}
		h := b.host(s.host)
		h.blocked = true
		h.causes = appendNew(h.causes, b.in.Scopes.Ref)
	}
	for i, s := range b.insecure {
		if s == (scope{}) {
			continue
		}
		b.addInsecure(s, fmt.Sprintf("spec.registrySources.insecureRegistries[%d]", i))
	}
	for i, s := range b.allowed {
		if s == (scope{}) {
			continue
		}
		b.addAllowed(s, fmt.Sprintf("spec.registrySources.allowedRegistries[%d]", i))
	}
}

func (b *builder) addInsecure(s scope, field string) {
	if s.wildcard || s.path != "" || unrepresentable(s) != "" {
		b.warn(reason.InsecureNotRepresentable, bundle.Finding{
			Object: b.in.Scopes.Ref, Field: field, Message: fmt.Sprintf("%s is insecure for mirrors in it only: containerd can do without TLS for whole registries by name only", s), Fix: "name the whole registry, or install its CA",
		})
		return
	}
	h := b.host(s.host)
	h.insecure = true
	h.causes = appendNew(h.causes, b.in.Scopes.Ref)
}

func (b *builder) addAllowed(s scope, field string) {
	switch {
	case s.wildcard || unrepresentable(s) != "":
		b.warn(reason.AllowNotRepresentable, bundle.Finding{
			Object: b.in.Scopes.Ref, Field: field, Message: fmt.Sprintf("%s cannot be allowed as such on Windows nodes: %s", s, b.wildcardOutcome()), Fix: "name each allowed registry",
		})
		return
	case s.path != "":
		b.warn(reason.AllowWidened, bundle.Finding{
			Object: b.in.Scopes.Ref, Field: field, Message: fmt.Sprintf("all of %s is allowed on Windows nodes, not only %s: containerd knows whole registries only", s.host, s), Fix: "nothing, if the rest of the registry may be used",
		})
	}
	h := b.host(s.host)
	h.permitted = true
	h.causes = appendNew(h.causes, b.in.Scopes.Ref)
}

func (b *builder) wildcardOutcome() string {
	if b.partial == Open {
		return "registries without an entry of their own stay open"
	}
	return "registries that only it allows are blocked"
}
