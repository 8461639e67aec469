package mirrors

import (
	"fmt"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// addScopes adds the entries of Image/cluster that are whole hosts, and reports those that containerd cannot express.
func (b *builder) addScopes() {
	for i, s := range b.blocked {
		if s == (scope{}) {
			continue
		}
		b.lookAt(s)
		field := fmt.Sprintf("spec.registrySources.blockedRegistries[%d]", i)
		if s.wildcard || s.path != "" || whyUnrepresentable(s) != "" {
			b.addWarning(reason.BlockNotRepresentable, bundle.Finding{
				Object: b.in.Scopes.Ref, Field: field, Message: fmt.Sprintf(
					"%s is not blocked on Windows nodes: containerd can block whole registries only, by name", s,
				), Fix: "block the whole registry, or each registry by its name",
			})
			continue
		}
		h := b.hostNamed(s.host)
		h.blocked = true
		h.causes = appendNew(h.causes, b.in.Scopes.Ref)
	}
	for i, s := range b.insecure {
		if s == (scope{}) {
			continue
		}
		b.lookAt(s)
		b.addInsecure(s, fmt.Sprintf("spec.registrySources.insecureRegistries[%d]", i))
	}
	for i, s := range b.allowed {
		if s == (scope{}) {
			continue
		}
		b.lookAt(s)
		b.addAllowed(s, b.in.Scopes.Allowed[i], fmt.Sprintf("spec.registrySources.allowedRegistries[%d]", i))
	}
}

func (b *builder) addInsecure(s scope, field string) {
	if s.wildcard || s.path != "" || whyUnrepresentable(s) != "" {
		b.addWarning(reason.InsecureNotRepresentable, bundle.Finding{
			Object: b.in.Scopes.Ref, Field: field, Message: fmt.Sprintf(
				"%s applies only to mirrors in it: containerd can skip TLS for whole registries only, by name", s,
			), Fix: "name the whole registry, or install its CA",
		})
		return
	}
	h := b.hostNamed(s.host)
	h.insecure = true
	h.causes = appendNew(h.causes, b.in.Scopes.Ref)
}

// addAllowed allows the registry of an entry, which is written as text: it may have a tag or a digest.
func (b *builder) addAllowed(s scope, text, field string) {
	switch {
	case s.wildcard || whyUnrepresentable(s) != "":
		b.addWarning(reason.AllowNotRepresentable, bundle.Finding{
			Object: b.in.Scopes.Ref, Field: field, Message: fmt.Sprintf(
				"%s cannot be expressed on Windows nodes, which need the names of registries: %s", s,
				b.wildcardOutcome(),
			), Fix: "name each allowed registry",
		})
		return
	case s.path != "":
		b.addWarning(reason.AllowWidened, bundle.Finding{
			Object: b.in.Scopes.Ref, Field: field, Message: fmt.Sprintf(
				"all of %s is allowed on Windows nodes, not only %s: containerd configures whole registries", s.host,
				text,
			), Fix: "none, if the rest of the registry may be used",
		})
	}
	h := b.hostNamed(s.host)
	h.permitted = true
	h.causes = appendNew(h.causes, b.in.Scopes.Ref)
}

func (b *builder) wildcardOutcome() string {
	if b.partial == Open {
		return "registries without mirrors and without an entry of their own stay allowed"
	}
	return "the registries that only this entry allows are blocked"
}
