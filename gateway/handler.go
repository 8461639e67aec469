package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"wmco/bundle"
	"wmco/gateway/places"
	"wmco/gateway/registry"
	"wmco/gateway/signatures"
)

// Handler answers containerd. Make it with New.
type Handler struct {
	// Address is host:port of the gateway, as containerd reaches it.
	address string
	client  *registry.Client
	log     *slog.Logger
	now     func() time.Time
	table   atomic.Pointer[places.Table]
	logins  *logins
	learned *learned
	health  *health

	follower     follower
	troubles     troubles
	verification verification
	leads        *leads
	counts       *counts
}

// Options are what a Handler needs.
type Options struct {
	// Address is host:port at which containerd reaches the gateway.
	Address string
	Client  *registry.Client
	Log     *slog.Logger
	Now     func() time.Time
	// File has the table; zero if SetTable is called instead.
	File File
	// Trouble receives the registries for whose images no mirror and no registry has answered for places.TroubleAfter. It is called when this list changes,
	// again after it returned an error, and every ten minutes while the list is not empty. It may be nil.
	Trouble func([]places.Trouble) error
	// Verify reports whether an image has the signatures that a policy demands. If it is nil, images under a policy are refused.
	Verify func(context.Context, signatures.Question) (signatures.Answer, error)
	// Counts replaces the file with the numbers for Prometheus; nil if it is not used. Server calls it by Handler.WriteCounts.
	Counts func([]byte) error
	// Random fills a slice with random bytes, such as crypto/rand.Read.
	Random func([]byte)
}

// New makes a Handler. Without a table it refuses everything.
func New(o Options) *Handler {
	return &Handler{
		address: o.Address, client: o.Client, log: o.Log, now: o.Now,
		logins: newLogins(o.Random), learned: newLearned(), health: newHealth(),
		follower: follower{file: o.File}, troubles: troubles{write: o.Trouble},
		verification: newVerification(o.Verify), leads: newLeads(), counts: newCounts(o.Counts),
	}
}

// SetTable replaces the table. Running requests keep the old table. The handler forgets which tag each digest belongs to, because the new table may block the
// places of that tag.
func (h *Handler) SetTable(t places.Table) {
	h.table.Store(&t)
	h.learned.list.Clear()
}

// kind is the part of a repository that a request is for.
type kind string

const (
	manifests kind = "manifests"
	blobs     kind = "blobs"
	referrers kind = "referrers"
)

// target is what a request asks for.
type target struct {
	places.Image
	kind kind
	// auth are the credentials of the login: those that the kubelet gave containerd for the image. Zero for none.
	auth bundle.Secret
	// table is the table at the time of the request.
	table *places.Table
}

func (t target) contentPath() string { return string(t.kind) + "/" + t.Reference }

// authAt returns the credentials for a place: those of the image belong to its registry alone.
func (t target) authAt(p places.Place) bundle.Secret {
	if p.Source || p.Registry == t.Registry && p.Auth.IsZero() {
		return t.auth
	}
	return p.Auth
}

// content is the path of what can be asked for (github.com/opencontainers/distribution-spec, Endpoints). Nothing in it is escaped, so no path means
// two things.
var content = regexp.MustCompile(`^/v2/([a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*)/(?:` +
	`(manifests)/([a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}|sha256:[a-f0-9]{64}|sha512:[a-f0-9]{128})|` +
	`(blobs|referrers)/(sha256:[a-f0-9]{64}|sha512:[a-f0-9]{128}))$`)

// registryName is the host of an image's name, with its port (github.com/distribution/reference, DomainRegexp).
var registryName = regexp.MustCompile(`^([a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?$`)

// parseTarget returns what a request asks for. containerd names the registry in the parameter ns (containerd docs/hosts.md).
func parseTarget(r *http.Request) (target, bool) {
	m := content.FindStringSubmatch(r.URL.EscapedPath())
	names := r.URL.Query()["ns"]
	if m == nil || len(names) != 1 || !registryName.MatchString(names[0]) {
		return target{}, false
	}
	return target{Image: places.Image{Registry: names[0], Repository: m[1], Reference: m[3] + m[5]}, kind: kind(m[2] + m[4])}, true
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == tokenPath {
		h.serveToken(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "the gateway only reads", http.StatusMethodNotAllowed)
		return
	}
	auth, ok := h.logins.findLogin(r.Header.Get("Authorization"), h.now())
	if !ok {
		h.challenge(w, r)
		return
	}
	if r.URL.Path == "/v2/" {
		return
	}
	t, ok := parseTarget(r)
	if !ok {
		http.Error(w, "not a manifest, blob or list of referrers of a registry", http.StatusNotFound)
		return
	}
	h.refreshTable()
	table := h.table.Load()
	if table == nil {
		refusePull(w, r, http.StatusServiceUnavailable, "the places of images have not been read yet")
		return
	}
	if !table.IsRouted(t.Registry) {
		refusePull(w, r, http.StatusForbidden, t.Registry+" does not go through the gateway")
		return
	}
	t.auth, t.table = auth, table
	h.serveTarget(w, r, t, h.placesOf(*table, t))
}

// placesOf returns the places to ask. A digest to which a tag led may come from the places of that tag too, because Linux nodes pull all of an image from
// the place where they found it.
func (h *Handler) placesOf(table places.Table, t target) places.Decision {
	d := table.Decide(t.Image)
	if t.IsDigest() {
		if list := h.learned.findPlaces(t.Image); len(list) > 0 {
			d.Places = mergePlaces(list, d.Places)
		}
	}
	d.Places = h.health.orderPlaces(d.Places, h.now())
	return d
}

// mergePlaces returns the places of both lists, each once.
func mergePlaces(first, second []places.Place) []places.Place {
	var all []places.Place
	have := map[string]bool{}
	for _, list := range [][]places.Place{first, second} {
		for _, p := range list {
			if !have[p.Name()] {
				have[p.Name()] = true
				all = append(all, p)
			}
		}
	}
	return all
}

// bearerToken returns the token of an Authorization header; empty for none.
func bearerToken(header string) string {
	scheme, rest, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(rest)
}
