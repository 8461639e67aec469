// Package imports tests the import table of the design: which packages of the module a package may import, and which
// packages it must not link. It reads the output of go list and the source of pure packages.
//
//	go list -deps (linux, windows) --> graph --table--> violations, each with the chain of imports that leads there
//	source of bundle, render, ...  --> banned imports and calls, each with its place
package imports

import "slices"

// rule is one row of the table. It covers its package and the packages below it that have no row of their own; packages
// of one row may import each other.
//
// Packages of the module are written without its name, others in full (their first element has a dot). A trailing
// "/..." includes everything below.
type rule struct {
	pkg string
	// anything is true for a row without limits.
	anything bool
	// imports are the packages of the module that it may import.
	imports []string
	// only, where set, are the packages of other modules that it may link besides the standard library.
	only []string
	// never are the packages that it must not link, directly or indirectly.
	never []string
}

// cluster and remote are packages that no pure package links.
var (
	cluster = []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/..."}
	remote  = []string{"golang.org/x/crypto/ssh/...", "github.com/pkg/sftp/..."}
	windows = []string{
		"golang.org/x/sys/windows/...", "github.com/Microsoft/go-winio/...", "github.com/Microsoft/hcsshim/...",
		"github.com/Microsoft/hnslib/...", "github.com/go-ole/go-ole/...",
	}
	// rendering are packages that no program on a node links.
	rendering = []string{"render", "render/mirrors", "templates"}
	// engine are packages that only programs on a node link.
	engine = []string{"applier", "applier/plan", "applier/records"}
)

// table is the import table of the design.
func table() []rule { return slices.Concat(programRules, controllerRules) }

// programRules are the rows of packages that are not the operator's alone.
var programRules = []rule{
	{
		pkg:  "bundle",
		only: []string{"github.com/opencontainers/go-digest"},
	},
	{
		pkg:     "bundle/archive",
		imports: []string{"bundle"},
		only:    []string{"github.com/opencontainers/go-digest", "github.com/klauspost/compress/..."},
	},
	{
		pkg:   "bundle/nodestate",
		never: join(cluster, remote),
	},
	{
		pkg:     "bundle/published",
		imports: []string{"bundle", "bundle/archive"},
		only:    []string{"github.com/opencontainers/go-digest", "github.com/klauspost/compress/..."},
	},
	{
		pkg:  "bundle/reason",
		only: []string{},
	},
	{
		pkg:     "preflight",
		imports: []string{"bundle", "bundle/reason", "layout"},
		only:    []string{"github.com/opencontainers/go-digest"},
	},
	{
		pkg:     "gateway/places",
		imports: []string{"bundle"},
		only:    []string{"github.com/opencontainers/go-digest"},
	},
	{
		pkg:  "gateway/identity",
		only: []string{},
	},
	{
		pkg:     "gateway",
		imports: []string{"bundle", "gateway/places", "gateway/identity", "gateway/signatures"},
		never:   join(cluster, remote, rendering, windows, []string{"applier/..."}),
	},
	{
		pkg:     "render/mirrors",
		imports: []string{"bundle", "bundle/reason", "gateway/places", "gateway/identity"},
		never:   join(cluster, remote),
	},
	{
		pkg:     "payload",
		imports: []string{"bundle"},
		never:   join(cluster, remote),
	},
	{
		pkg:     "layout",
		imports: []string{"bundle", "payload", "gateway/places"},
		only:    []string{"github.com/opencontainers/go-digest"},
	},
	{
		pkg:     "payload/store",
		imports: []string{"payload", "bundle", "bundle/archive"},
		only:    []string{"github.com/opencontainers/go-digest", "github.com/klauspost/compress/..."},
	},
	{
		pkg:     "payload/sources",
		imports: []string{"payload", "bundle", "bundle/archive", "gateway/places"},
		never:   join(cluster, remote),
	},
	{
		pkg:     "payload/fetch",
		imports: []string{"payload/store", "payload/sources", "bundle", "gateway/places", "gateway/registry"},
		never:   join(cluster, remote),
	},
	{
		pkg:   "templates",
		never: join(cluster, remote),
	},
	{
		pkg:   "render/kubelets",
		never: join(cluster, remote),
	},
	{
		pkg: "render",
		imports: []string{
			"bundle", "layout", "render/kubelets", "render/mirrors", "bundle/reason", "payload", "payload/sources", "templates", "gateway/places",
		},
		never: join(cluster, remote),
	},
	{
		pkg:     "render/preview",
		imports: []string{"render", "bundle/reason", "render/yamltext", "bundle"},
		never:   join(cluster, remote),
	},
	{
		pkg:     "render/review",
		imports: []string{"render", "bundle/reason", "bundle"},
		never:   join(cluster, remote),
	},
	{
		pkg:     "render/machines",
		imports: []string{"bundle", "layout", "render", "bundle/reason", "templates"},
		never:   join(cluster, remote),
	},
	{
		pkg:     "applier/protocol",
		imports: []string{"bundle"},
		only:    []string{"github.com/opencontainers/go-digest"},
	},
	{
		pkg:     "applier/plan",
		imports: []string{"applier/protocol", "bundle"},
		only:    []string{"github.com/opencontainers/go-digest"},
	},
	{
		pkg:     "applier/records",
		imports: []string{"bundle", "bundle/archive", "applier/plan", "applier/protocol"},
		only:    []string{"github.com/opencontainers/go-digest", "github.com/klauspost/compress/..."},
	},
	{
		pkg:     "applier",
		imports: []string{"applier/plan", "applier/protocol", "applier/records", "bundle", "bundle/archive"},
		never:   join(rendering, cluster, remote, windows),
	},
	{
		pkg:  "applier/selftest/result",
		only: []string{},
	},
	{
		// It is a part of the shipped program.
		pkg:     "applier/selftest",
		imports: []string{"applier", "applier/plan", "applier/selftest/result", "bundle"},
		never:   join(rendering, cluster, remote, windows, []string{"testing"}),
	},
	{
		pkg: "applier/selftest/thismachine",
		imports: []string{
			"applier", "applier/plan", "applier/selftest", "applier/selftest/result", "applier/winhost",
			"applier/winhost/hklm", "applier/winhost/inspect", "applier/winhost/settings", "bundle", "preflight",
		},
		never: join(rendering, cluster, remote, []string{"testing"}),
	},
	{
		pkg:     "applier/collect",
		imports: []string{"applier", "applier/plan", "bundle", "preflight", "gateway/places", "gateway/registry"},
		never:   join(rendering, cluster, remote, []string{"applier/remote/...", "applier/winhost/..."}),
	},
	{
		pkg: "internal/hostsim/fixtures",
		imports: []string{
			"applier", "applier/plan", "applier/selftest", "applier/selftest/result", "internal/hostsim/simulation",
			"bundle",
		},
		never: join(rendering, cluster, remote, windows, []string{"testing"}),
	},
	{
		pkg:     "internal/hostsim/simulation",
		imports: []string{"applier", "applier/plan", "bundle", "bundle/archive"},
		never:   join(rendering, cluster, remote, windows),
	},
	{
		pkg:     "internal/hostsim/bundletest",
		imports: []string{"applier/protocol", "bundle", "bundle/archive", "layout"},
		never:   join(rendering, cluster, remote, windows),
	},
	{
		pkg: "internal/hostsim",
		imports: []string{
			"applier", "applier/plan", "applier/selftest", "internal/hostsim/fixtures", "internal/hostsim/simulation",
			"bundle", "bundle/archive",
		},
		never: join(rendering, cluster, remote, windows),
	},
	{
		pkg: "internal/hostsim/folderhost",
		imports: []string{
			"applier", "applier/plan", "applier/selftest", "applier/selftest/result", "internal/hostsim/fixtures",
			"internal/hostsim/simulation", "bundle", "bundle/archive", "preflight",
		},
		never: join(rendering, cluster, remote, windows, []string{"testing", "internal/hostsim"}),
	},
	{
		pkg: "applier/remote",
		imports: []string{
			"applier/protocol", "applier/selftest/result", "bundle", "bundle/archive", "preflight", "applier/ownfile",
		},
		never: join(rendering, cluster, remote, windows, engine, []string{
			"applier/remote/ssh", "applier/selftest", "applier/winhost/...", "controller/...",
		}),
	},
	{
		// It alone links an SSH library, beside the commands, which hand it to remote.NewClient.
		pkg:     "applier/remote/ssh",
		imports: []string{"applier/remote"},
		never:   join(rendering, cluster, []string{"applier/winhost/...", "controller/..."}),
	},
	{
		pkg:     "applier/winhost",
		imports: []string{"applier", "applier/plan", "bundle", "bundle/archive", "preflight"},
		never:   join(rendering, []string{"applier/remote/...", "controller/..."}),
	},
	{
		pkg: "applier/agent",
		imports: []string{
			"applier", "applier/plan", "applier/protocol", "bundle", "bundle/archive", "bundle/published", "gateway/places",
			"payload/sources", "layout",
		},
		never: join(rendering, remote, []string{"applier/winhost/...", "internal/hostsim/..."}),
	},
	{
		pkg: "cmd/wmco-node",
		// Where it is not on Windows, the program works on a folderhost.
		imports: []string{
			"internal/nodecli", "applier", "applier/agent/images", "applier/agent/images/cri", "applier/collect", "applier/ownfile",
			"applier/selftest", "applier/selftest/thismachine", "applier/winhost", "applier/winhost/inspect", "applier/winhost/services", "bundle",
			"internal/cli", "internal/hostsim/folderhost",
		},
		never: join(rendering, remote),
	},
	{
		pkg: "internal/nodecli",
		imports: []string{
			"applier", "applier/plan", "applier/protocol", "applier/agent", "applier/agent/images", "bundle/published", "applier/collect",
			"applier/selftest", "applier/selftest/result", "bundle", "preflight", "bundle/archive",
			"internal/cli", "applier/ownfile", "layout", "gateway", "gateway/places", "gateway/registry", "gateway/signatures", "payload",
			"payload/fetch", "payload/sources", "applier/agent/executables",
		},
		never: join(rendering, remote, []string{"applier/winhost/...", "internal/hostsim/..."}),
	},
	{pkg: "cmd", anything: true},
	{pkg: "docs"},
	{
		pkg:   "deploy/kustomize",
		never: join(rendering, remote, []string{"controller/...", "applier/..."}),
	},
	{
		pkg:     "deploy/olm",
		imports: []string{"payload"},
		never:   join(rendering, cluster, remote, []string{"controller/...", "applier/..."}),
	},
	{
		pkg:     "deploy/olm/cmd",
		imports: []string{"deploy/kustomize", "deploy/olm"},
		never:   join(rendering, cluster, remote, []string{"controller/...", "applier/..."}),
	},
	{pkg: "deploy", anything: true},
	{pkg: "golden", anything: true},
	{
		pkg:  "applier/ownfile",
		only: []string{},
	},
	{
		pkg:  "internal/cli",
		only: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/inconshreveable/mousetrap"},
	},
	{
		pkg: "internal/golden",
		imports: []string{
			"controller/inputs/desired", "controller/gather", "controller/gather/objects", "render", "render/preview",
			"render/review", "render/yamltext", "bundle",
		},
		never: []string{"applier/..."},
	},
	{
		// The first part of the demonstration: what it links is compiled before its first answer.
		pkg:     "internal/build/firstlook",
		imports: []string{"bundle", "render", "render/mirrors", "render/review"},
		never:   join(cluster, remote),
	},
	{pkg: "internal", anything: true},
}

// otherControllers are the packages of the controllers, but one: no package below the root imports another one's
// controller.
func otherControllers(but string) []string {
	var all []string
	for _, name := range []string{
		"csr", "hostkeys", "instance", "machine", "node", "olm", "prerequisites", "rollout", "userdata",
	} {
		if name != but {
			all = append(all, "controller/"+name)
		}
	}
	return all
}

func join(lists ...[]string) []string {
	var out []string
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}
