// Package imports tests the import table of the design: which packages of the module a package may import, and which
// packages it must not link. It reads the output of go list and the source of pure packages.
//
//	go list -deps (linux, windows) --> graph --table--> violations, each with the chain of imports that leads there
//	source of bundle, render, ...  --> banned imports and calls, each with its place
package imports

// rule is one row of the table. It covers its package and the packages below it that have no row of their own; packages
// of one row may import each other.
//
// Packages of the module are written without its name, others in full (their first element has a dot). A trailing "/..."
// includes everything below.
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
	windows = []string{"golang.org/x/sys/windows/...", "github.com/Microsoft/go-winio/...", "github.com/Microsoft/hcsshim/...", "github.com/Microsoft/hnslib/...", "github.com/go-ole/go-ole/..."}
	// rendering are packages that no program on a node links.
	rendering = []string{"render", "render/mirrors", "templates"}
)

// table is the import table of the design.
var table = []rule{
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
		pkg:     "bundle/published",
		imports: []string{"bundle", "bundle/archive"},
		only:    []string{"github.com/opencontainers/go-digest", "github.com/klauspost/compress/..."},
	},
	{
		pkg:   "render/reason",
		never: join(cluster, remote),
	},
	{
		pkg:     "render/mirrors",
		imports: []string{"bundle", "render/reason"},
		never:   join(cluster, remote),
	},
	{
		pkg:     "payload",
		imports: []string{"bundle"},
		never:   join(cluster, remote),
	},
	{
		pkg:     "layout",
		imports: []string{"bundle", "payload"},
		only:    []string{"github.com/opencontainers/go-digest"},
	},
	{
		pkg:     "payload/store",
		imports: []string{"payload", "bundle", "bundle/archive"},
		only:    []string{"github.com/opencontainers/go-digest", "github.com/klauspost/compress/..."},
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
		pkg:     "render",
		imports: []string{"bundle", "layout", "render/kubelets", "render/mirrors", "render/reason", "payload", "templates"},
		never:   join(cluster, remote),
	},
	{
		pkg:     "render/preview",
		imports: []string{"render", "render/reason", "bundle"},
		never:   join(cluster, remote),
	},
	{
		pkg:     "render/review",
		imports: []string{"render", "render/reason", "bundle"},
		never:   join(cluster, remote),
	},
	{
		pkg:     "render/machines",
		imports: []string{"bundle", "layout", "render", "render/reason", "templates"},
		never:   join(cluster, remote),
	},
	{
		pkg:     "applier/plan",
		imports: []string{"bundle"},
		only:    []string{"github.com/opencontainers/go-digest"},
	},
	{
		pkg:     "applier/records",
		imports: []string{"bundle", "bundle/archive", "applier/plan"},
		only:    []string{"github.com/opencontainers/go-digest", "github.com/klauspost/compress/..."},
	},
	{
		pkg:     "applier",
		imports: []string{"applier/plan", "applier/records", "bundle", "bundle/archive"},
		never:   join(rendering, cluster, remote, windows),
	},
	{
		pkg:     "internal/hostsim/simulation",
		imports: []string{"applier", "applier/plan", "bundle", "bundle/archive"},
		never:   join(rendering, cluster, remote, windows),
	},
	{
		pkg:     "internal/hostsim/bundletest",
		imports: []string{"applier", "applier/plan", "bundle", "bundle/archive", "layout"},
		never:   join(rendering, cluster, remote, windows),
	},
	{
		pkg:     "internal/hostsim",
		imports: []string{"applier", "applier/plan", "internal/hostsim/simulation", "bundle", "bundle/archive"},
		never:   join(rendering, cluster, remote, windows),
	},
	{
		pkg:     "internal/hostsim/folderhost",
		imports: []string{"applier", "applier/plan", "internal/hostsim/simulation", "bundle", "bundle/archive"},
		never:   join(rendering, cluster, remote, windows, []string{"testing", "internal/hostsim"}),
	},
	{
		pkg:     "applier/remote",
		imports: []string{"applier", "applier/plan", "bundle", "bundle/archive", "internal/ownfile"},
		never:   join(rendering, cluster, remote, windows, []string{"applier/remote/ssh", "applier/winhost/...", "controller/..."}),
	},
	{
		// It alone links an SSH library, beside the commands, which hand it to remote.NewClient.
		pkg:     "applier/remote/ssh",
		imports: []string{"applier/remote"},
		never:   join(rendering, cluster, []string{"applier/winhost/...", "controller/..."}),
	},
	{
		pkg:     "applier/winhost",
		imports: []string{"applier", "applier/plan", "bundle", "bundle/archive"},
		never:   join(rendering, []string{"applier/remote/...", "controller/..."}),
	},
	{
		pkg:     "applier/agent",
		imports: []string{"applier", "applier/plan", "bundle", "bundle/archive", "bundle/published"},
		never:   join(rendering, remote, []string{"applier/winhost/...", "internal/hostsim/..."}),
	},
	{
		pkg: "cmd/wmco-node",
		// Where it is not on Windows, the program works on a folderhost.
		imports: []string{"applier", "applier/plan", "applier/agent", "bundle/published", "internal/hostsim/folderhost", "internal/hostsim/simulation", "applier/winhost", "applier/winhost/services", "bundle", "bundle/archive", "internal/cli", "internal/ownfile", "layout"},
		never:   join(rendering, remote),
	},
	{
		pkg:     "controller/windowsnode/record",
		imports: []string{"bundle"},
		never:   join(rendering, cluster, remote, windows, []string{"applier/..."}),
	},
	{
		// Values alone: the planner of rollouts imports it.
		pkg:     "controller/windowsnode",
		imports: []string{"bundle", "bundle/published"},
		never:   join(cluster, remote, rendering, windows, []string{"applier/..."}),
	},
	{
		pkg:     "controller/windowsnode/nodelist",
		imports: []string{"controller/windowsnode"},
		never:   join(remote, rendering, []string{"applier/..."}),
	},
	{
		pkg:     "controller/gather",
		imports: []string{"controller/windowsnode/record", "controller/windowsnode", "render", "bundle", "bundle/published", "render/machines", "render/mirrors", "render/reason"},
		never:   []string{"applier/..."},
	},
	{
		pkg:     "controller/inputs/desired",
		imports: []string{"controller/gather", "controller/gather/objects", "controller/windowsnode/record", "render", "render/reason", "bundle", "bundle/archive", "payload", "payload/store"},
		never:   []string{"applier/..."},
	},
	{
		pkg:     "controller/layers",
		imports: []string{"bundle", "bundle/archive", "bundle/published", "controller/base/named", "controller/windowsnode", "controller/windowsnode/nodelist"},
		never:   join(remote, rendering, []string{"applier/..."}),
	},
	{
		pkg:     "controller/inputs/deletions",
		imports: []string{"bundle", "bundle/published", "controller/inputs/desired", "controller/windowsnode", "render"},
		never:   join(remote, []string{"applier/..."}),
	},
	{
		pkg:     "controller/status",
		imports: []string{},
		never:   join(remote, []string{"applier/..."}),
	},
	{
		pkg:     "controller/rollout/plan",
		imports: []string{"bundle", "bundle/archive", "bundle/published", "controller/windowsnode"},
		never:   join(cluster, remote, rendering, []string{"applier/..."}),
	},
	{
		pkg:     "controller/rollout/steps",
		imports: []string{"bundle", "bundle/archive", "bundle/published", "controller/base", "controller/windowsnode/drain", "controller/windowsnode/heartbeat", "controller/layers", "controller/rollout/plan", "controller/windowsnode", "controller/windowsnode/nodelist"},
		never:   join(remote, rendering),
	},
	{
		pkg:     "controller/rollout",
		imports: []string{"bundle", "bundle/archive", "bundle/published", "controller/base", "controller/configure/checks", "controller/inputs/deletions", "controller/inputs/desired", "controller/keys/signing", "controller/layers", "controller/rollout/plan", "controller/rollout/steps", "controller/status", "controller/windowsnode", "controller/windowsnode/drain", "controller/windowsnode/heartbeat", "controller/windowsnode/nodelist", "payload", "render", "render/reason", "report/fleet"},
		never:   join(remote, controllers("rollout")),
	},
	{
		pkg:     "controller/windowsnode/heartbeat",
		imports: []string{"controller/windowsnode"},
		never:   join(cluster, remote, rendering, []string{"applier/..."}),
	},
	{
		pkg:     "controller/keys/signing",
		imports: []string{"bundle", "bundle/published"},
		never:   join(remote, rendering, []string{"applier/..."}),
	},
	{
		pkg:   "controller/base/leader",
		never: join(remote, rendering, []string{"applier/...", "sigs.k8s.io/controller-runtime/..."}),
	},
	{
		pkg:     "report/fleet",
		imports: []string{"bundle", "bundle/published", "controller/gather/objects", "controller/rollout/plan", "controller/status", "controller/windowsnode", "render", "render/reason"},
		never:   join(remote, []string{"applier/..."}),
	},
	{
		pkg:     "controller/metrics",
		imports: []string{"bundle", "bundle/published", "controller/status", "controller/windowsnode", "controller/windowsnode/nodelist", "render", "report/fleet"},
		never:   join(remote, []string{"applier/...", "cmd/...", "k8s.io/apiserver/..."}),
	},
	{
		pkg:     "report/forecast",
		imports: []string{"bundle", "bundle/published", "controller/inputs/desired", "report/fleet", "controller/gather/objects", "controller/layers", "controller/rollout/plan", "controller/windowsnode", "render"},
		never:   join(remote, []string{"applier/..."}),
	},
	{
		pkg:     "report/mustgather",
		imports: []string{"bundle", "bundle/published", "report/fleet", "controller/gather", "controller/gather/objects", "controller/windowsnode"},
		never:   join(remote, []string{"applier/..."}),
	},
	{
		// It parses keys, and dials nothing.
		pkg:     "controller/hosts",
		imports: []string{"controller/inputs/desired", "controller/keys", "controller/base/leader", "controller/base/named", "controller/windowsnode/record", "render", "bundle", "bundle/archive", "applier", "applier/remote"},
		never:   []string{"cmd/...", "applier/remote/ssh", "github.com/pkg/sftp/..."},
	},
	{
		pkg:   "controller/windowsnode/drain",
		never: join(rendering, remote, []string{"applier/...", "bundle/..."}),
	},
	{
		pkg:     "controller/olm",
		imports: []string{"bundle", "bundle/published", "controller/base", "report/fleet", "controller/windowsnode", "controller/windowsnode/nodelist"},
		never:   join(remote, controllers("olm")),
	},
	{
		pkg:     "controller/inputs",
		imports: []string{"bundle", "controller/base", "controller/gather", "controller/inputs/desired", "controller/windowsnode/record", "render/reason"},
		never:   append([]string{"github.com/pkg/sftp/..."}, controllers("")...),
	},
	{
		pkg:     "controller/base",
		imports: []string{"applier/remote", "bundle", "bundle/published", "controller/gather/objects", "controller/base/leader", "controller/windowsnode/nodelist"},
		never:   join(remote, rendering, []string{"controller/hosts"}, controllers("")),
	},
	{
		pkg:     "controller/configure",
		imports: []string{"applier", "applier/remote", "bundle", "bundle/published", "controller/base", "controller/base/conditions", "controller/base/named", "controller/configure/checks", "controller/gather", "controller/hosts", "controller/inputs/desired", "controller/keys", "controller/keys/username", "controller/windowsnode", "controller/windowsnode/record", "layout", "payload", "render", "render/reason", "report/fleet"},
		never:   append([]string{"cmd/...", "applier/remote/ssh", "github.com/pkg/sftp/..."}, controllers("configure")...),
	},
	{
		pkg:     "controller/csr",
		imports: []string{"bundle", "bundle/published", "controller/base", "controller/configure", "controller/csr/certificates", "controller/gather", "controller/hosts", "controller/inputs/desired", "controller/windowsnode/record", "deploy/admission", "render"},
		never:   append([]string{"cmd/...", "applier/remote/ssh", "github.com/pkg/sftp/..."}, controllers("csr")...),
	},
	{
		pkg:     "controller/hostkeys",
		imports: []string{"controller/base", "controller/hosts", "controller/windowsnode/record"},
		never:   append([]string{"cmd/...", "applier/remote/ssh", "github.com/pkg/sftp/..."}, controllers("hostkeys")...),
	},
	{
		pkg:     "controller/instance",
		imports: []string{"controller/base", "controller/configure"},
		never:   append([]string{"cmd/...", "applier/remote/ssh", "github.com/pkg/sftp/..."}, controllers("instance")...),
	},
	{
		pkg:     "controller/machine",
		imports: []string{"controller/base", "controller/configure", "controller/windowsnode", "controller/windowsnode/record"},
		never:   append([]string{"cmd/...", "applier/remote/ssh", "github.com/pkg/sftp/..."}, controllers("machine")...),
	},
	{
		pkg:     "controller/node",
		imports: []string{"applier", "applier/remote", "bundle", "bundle/published", "controller/base", "controller/configure", "controller/hosts", "controller/windowsnode", "controller/windowsnode/drain", "controller/windowsnode/record", "render", "render/reason", "report/fleet"},
		never:   append([]string{"cmd/...", "applier/remote/ssh", "github.com/pkg/sftp/..."}, controllers("node")...),
	},
	{
		pkg:     "controller/prerequisites",
		imports: []string{"bundle", "bundle/published", "controller/base", "controller/base/conditions", "controller/base/named", "controller/base/policies", "controller/configure", "controller/configure/checks", "controller/windowsnode/nodelist", "controller/windowsnode/record", "deploy/admission", "report/fleet"},
		never:   append([]string{"cmd/...", "applier/remote/ssh", "github.com/pkg/sftp/..."}, controllers("prerequisites")...),
	},
	{
		pkg:     "controller/userdata",
		imports: []string{"bundle", "bundle/published", "controller/base", "controller/base/conditions", "controller/base/named", "controller/base/policies", "controller/hosts", "controller/keys"},
		never:   append([]string{"cmd/...", "applier/remote/ssh", "github.com/pkg/sftp/..."}, controllers("userdata")...),
	},
	{
		pkg:     "controller/base/policies",
		imports: []string{"controller/base/named", "deploy/admission"},
		never:   []string{"applier/..."},
	},
	{
		pkg:   "controller/base/conditions",
		never: join(cluster, rendering, remote, windows, []string{"applier/...", "bundle/..."}),
	},
	{
		pkg:   "controller/base/named",
		never: join(rendering, remote, []string{"applier/...", "bundle/..."}),
	},
	{
		pkg:     "controller/csr/certificates",
		imports: []string{"bundle", "bundle/published"},
		never:   join(rendering, cluster, remote, windows, []string{"applier/..."}),
	},
	{
		pkg:   "controller/apiservers",
		never: join(rendering, remote, []string{"applier/..."}),
	},
	{
		pkg:     "controller/configure/checks",
		imports: []string{"bundle", "controller/base/conditions", "payload", "render", "render/reason"},
		never:   join(cluster, remote, []string{"applier/..."}),
	},
	{
		// It parses keys as the SSH library does, and opens no connection.
		pkg:     "controller/keys",
		imports: []string{"bundle", "render/machines", "render/reason"},
		never:   join(cluster, []string{"github.com/pkg/sftp/...", "applier/..."}),
	},
	{
		// It alone links an OpenPGP library.
		pkg:     "controller/keys/username",
		imports: []string{"bundle"},
		never:   join(rendering, cluster, remote, windows, []string{"applier/..."}),
	},
	{
		pkg: "controller",
		imports: []string{
			"bundle", "controller/apiservers", "controller/base", "controller/base/leader", "controller/base/named", "controller/base/policies", "controller/configure", "controller/csr", "controller/gather", "controller/gather/objects", "controller/hostkeys", "controller/hosts", "controller/inputs", "controller/inputs/desired", "controller/instance", "controller/keys/signing", "controller/machine", "controller/metrics", "controller/node", "controller/olm", "controller/prerequisites", "controller/rollout", "controller/status", "controller/userdata", "controller/windowsnode", "controller/windowsnode/drain", "controller/windowsnode/heartbeat", "payload", "render",
		},
		// Transports are handed in by cmd.
		never: []string{"cmd/...", "applier/remote/ssh", "github.com/pkg/sftp/..."},
	},
	{pkg: "cmd", anything: true},
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
		pkg:  "internal/cli",
		only: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/inconshreveable/mousetrap"},
	},
	{
		pkg:     "internal/golden",
		imports: []string{"controller/inputs/desired", "controller/gather", "controller/gather/objects", "render", "render/preview", "render/review", "bundle"},
		never:   []string{"applier/..."},
	},
	{pkg: "internal", anything: true},
}

// controllers are the packages of the controllers, but one: no package below the root imports another one's controller.
func controllers(but string) []string {
	var all []string
	for _, name := range []string{"csr", "hostkeys", "instance", "machine", "node", "olm", "prerequisites", "rollout", "userdata"} {
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
