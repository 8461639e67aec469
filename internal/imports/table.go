// Package imports keeps the import table of the design: which package may import which of ours, and what none of its
// dependencies may be. It reads what the go command says about the packages and the syntax of the pure ones; it runs
// and changes nothing.
//
//	go list -deps (linux, windows) --> graph --table--> violations, each with the chain of imports that leads there
//	source of render/              --> banned imports and calls, each with its place
package imports

// rule is one row of the table. It covers its package and the packages below it that have no row of their own; packages
// of one row may import each other.
//
// Packages of ours are written without the module's name, others in full (their first element has a dot). A trailing
// "/..." includes everything below.
type rule struct {
	pkg string
	// anything lifts the row's limits.
	anything bool
	// imports are the packages of ours that it may import.
	imports []string
	// only, where set, are the packages of others that it may link beside the standard library.
	only []string
	// never are packages that it must not link, however far down.
	never []string
}

// cluster and remote are what nothing pure links.
var (
	cluster = []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/..."}
	remote  = []string{"golang.org/x/crypto/ssh/...", "github.com/pkg/sftp/..."}
	windows = []string{"golang.org/x/sys/windows/...", "github.com/Microsoft/go-winio/...", "github.com/Microsoft/hcsshim/...", "github.com/Microsoft/hnslib/...", "github.com/go-ole/go-ole/..."}
	// rendering is what no program on a node holds.
	rendering = []string{"render", "render/mirrors", "templates"}
)

// table is the design's, row by row.
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
		pkg:     "render/mirrors",
		imports: []string{"bundle"},
		never:   join(cluster, remote),
	},
	{
		pkg:     "payload",
		imports: []string{"bundle"},
		never:   join(cluster, remote),
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
		pkg:     "render",
		imports: []string{"bundle", "render/mirrors", "payload", "templates"},
		never:   join(cluster, remote),
	},
	{
		pkg:     "render/preview",
		imports: []string{"render", "bundle"},
		never:   join(cluster, remote),
	},
	{
		pkg:     "render/review",
		imports: []string{"render", "bundle", "internal/count"},
		never:   join(cluster, remote),
	},
	{
		pkg:     "render/machines",
		imports: []string{"bundle", "templates"},
		never:   join(cluster, remote),
	},
	{
		pkg:     "applier",
		imports: []string{"bundle", "bundle/archive", "internal/count"},
		never:   join(rendering, cluster, remote, windows),
	},
	{
		pkg:     "applier/hosttest/simulation",
		imports: []string{"applier", "bundle", "bundle/archive"},
		never:   join(rendering, cluster, remote, windows),
	},
	{
		pkg:     "applier/hosttest/bundletest",
		imports: []string{"applier", "bundle", "bundle/archive"},
		never:   join(rendering, cluster, remote, windows),
	},
	{
		pkg:     "applier/hosttest",
		imports: []string{"applier", "applier/hosttest/simulation", "bundle", "bundle/archive"},
		never:   join(rendering, cluster, remote, windows),
	},
	{
		pkg:     "applier/hosttest/folderhost",
		imports: []string{"applier", "applier/hosttest/simulation", "bundle", "bundle/archive"},
		never:   join(rendering, cluster, remote, windows, []string{"testing", "applier/hosttest"}),
	},
	{
		pkg:  "applier/session",
		only: []string{},
	},
	{
		pkg:     "applier/remote",
		imports: []string{"applier", "applier/session", "bundle", "bundle/archive"},
		never:   join(rendering, []string{"applier/winhost/...", "controller/..."}),
	},
	{
		pkg:     "applier/winhost",
		imports: []string{"applier", "bundle", "bundle/archive"},
		never:   join(rendering, []string{"applier/remote/...", "controller/..."}),
	},
	{
		pkg:     "applier/agent",
		imports: []string{"applier", "applier/winhost", "bundle", "bundle/archive"},
		never:   join(rendering, remote),
	},
	{
		pkg: "cmd/wmco-node",
		// folderhost is what the program works on where it is not on Windows.
		imports: []string{"applier", "applier/agent", "applier/hosttest/folderhost", "applier/session", "applier/hosttest/simulation", "applier/winhost", "bundle", "bundle/archive", "internal/cli", "internal/count"},
		never:   join(rendering, remote),
	},
	{
		pkg:     "controller/gather",
		imports: []string{"render", "bundle", "render/machines", "render/mirrors"},
		never:   []string{"applier/..."},
	},
	{
		pkg:     "controller/desired",
		imports: []string{"controller/gather", "controller/gather/objects", "render", "bundle", "bundle/archive", "payload", "payload/store"},
		never:   []string{"applier/..."},
	},
	{
		pkg: "controller",
		imports: []string{
			"controller/desired", "controller/gather", "render", "bundle", "bundle/archive", "payload", "payload/store", "applier",
		},
		never: []string{"cmd/...", "applier/remote/..."},
	},
	{pkg: "cmd", anything: true},
	{pkg: "deploy", anything: true},
	{pkg: "golden", anything: true},
	{
		pkg:  "internal/cli",
		only: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/inconshreveable/mousetrap"},
	},
	{
		pkg:  "internal/count",
		only: []string{},
	},
	{
		pkg:     "internal/golden",
		imports: []string{"controller/desired", "controller/gather", "controller/gather/objects", "render", "render/preview", "render/review", "bundle"},
		never:   []string{"applier/..."},
	},
	{pkg: "internal", anything: true},
}

func join(lists ...[]string) []string {
	var out []string
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}
