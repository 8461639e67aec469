package imports

// controllerRules are the rows of the operator, and of what the command line reads of a cluster.
var controllerRules = []rule{
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
		pkg: "controller/gather",
		imports: []string{
			"controller/windowsnode/record", "controller/windowsnode", "render", "bundle", "bundle/published",
			"render/machines", "render/mirrors", "bundle/reason", "render/yamltext", "gateway/places",
		},
		never: []string{"applier/..."},
	},
	{
		pkg: "controller/inputs/desired",
		imports: []string{
			"controller/gather", "controller/gather/objects", "controller/windowsnode/record", "render",
			"bundle/reason", "bundle", "bundle/archive", "preflight", "payload", "payload/store", "payload/sources",
		},
		never: []string{"applier/..."},
	},
	{
		pkg: "controller/layers",
		imports: []string{
			"bundle", "bundle/archive", "bundle/published", "controller/base/named", "controller/windowsnode",
			"controller/windowsnode/nodelist",
		},
		never: join(remote, rendering, []string{"applier/..."}),
	},
	{
		pkg: "controller/inputs/deletions",
		imports: []string{
			"bundle", "bundle/published", "controller/inputs/desired", "controller/windowsnode", "render",
		},
		never: join(remote, []string{"applier/..."}),
	},
	{
		pkg:     "controller/status",
		imports: []string{"bundle", "bundle/nodestate", "bundle/published"},
		never:   join(remote, []string{"applier/..."}),
	},
	{
		pkg:     "controller/rollout/plan",
		imports: []string{"bundle", "bundle/archive", "bundle/nodestate", "bundle/published", "controller/windowsnode"},
		never:   join(cluster, remote, rendering, []string{"applier/..."}),
	},
	{
		pkg:     "controller/rollout/drains",
		imports: []string{"bundle/published", "controller/base", "controller/rollout/plan", "controller/windowsnode", "controller/windowsnode/drain"},
		never:   join(remote, rendering),
	},
	{
		pkg:     "controller/rollout/steps",
		imports: []string{"bundle", "bundle/archive", "bundle/published", "controller/base", "controller/rollout/drains", "controller/windowsnode/drain", "controller/windowsnode/heartbeat", "controller/layers", "controller/rollout/plan", "controller/windowsnode", "controller/windowsnode/nodelist"},
		never:   join(remote, rendering),
	},
	{
		pkg:     "controller/rollout",
		imports: []string{"bundle", "bundle/archive", "bundle/nodestate", "bundle/published", "controller/base", "controller/base/skew", "controller/inputs/deletions", "controller/inputs/desired", "controller/keys/signing", "controller/layers", "controller/rollout/drains", "controller/rollout/plan", "controller/rollout/steps", "controller/status", "controller/windowsnode", "controller/windowsnode/drain", "controller/windowsnode/heartbeat", "controller/windowsnode/nodelist", "payload", "render", "bundle/reason", "controller/fleet"},
		never:   join(remote, otherControllers("rollout")),
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
		pkg: "controller/fleet",
		imports: []string{
			"bundle", "bundle/nodestate", "bundle/published", "controller/gather/objects", "controller/rollout/plan",
			"controller/status", "controller/windowsnode", "controller/windowsnode/heartbeat", "render",
			"bundle/reason",
		},
		never: join(remote, []string{"applier/..."}),
	},
	{
		pkg: "controller/metrics",
		imports: []string{
			"bundle", "bundle/nodestate", "bundle/published", "controller/base/ports", "controller/status",
			"controller/windowsnode", "controller/windowsnode/nodelist", "render", "controller/fleet",
		},
		never: join(remote, []string{"applier/...", "cmd/...", "k8s.io/apiserver/..."}),
	},
	{
		pkg: "report/inuse",
		imports: []string{
			"bundle", "bundle/published", "controller/gather/objects", "controller/keys/signing", "controller/layers",
			"controller/windowsnode", "bundle/reason", "controller/fleet",
		},
		never: join(remote, []string{"applier/...", "cmd/..."}),
	},
	{
		pkg: "report/forecast",
		imports: []string{
			"bundle", "bundle/published", "controller/inputs/desired", "controller/fleet", "report/inuse",
			"controller/gather/objects", "controller/rollout/plan", "controller/windowsnode", "render",
		},
		never: join(remote, []string{"applier/..."}),
	},
	{
		pkg: "report/mustgather",
		imports: []string{
			"bundle", "bundle/published", "controller/fleet", "controller/gather", "controller/gather/ignition",
			"controller/gather/objects", "controller/windowsnode", "render",
		},
		never: join(remote, []string{"applier/..."}),
	},
	{
		// It parses keys, and dials nothing.
		pkg: "controller/hosts",
		imports: []string{
			"controller/inputs/desired", "controller/keys", "controller/base", "controller/base/leader",
			"controller/base/named", "controller/windowsnode/heartbeat", "controller/windowsnode/record", "render",
			"bundle", "bundle/archive", "preflight", "applier/protocol", "applier/remote",
		},
		never: []string{"cmd/...", "applier/remote/ssh", "github.com/pkg/sftp/..."},
	},
	{
		pkg:   "controller/windowsnode/drain",
		never: join(rendering, remote, []string{"applier/...", "bundle/..."}),
	},
	{
		pkg: "controller/olm",
		imports: []string{
			"bundle", "bundle/nodestate", "bundle/published", "controller/base", "controller/fleet",
			"controller/windowsnode", "controller/windowsnode/nodelist",
		},
		never: join(remote, otherControllers("olm")),
	},
	{
		pkg: "controller/inputs",
		imports: []string{
			"bundle", "controller/base", "controller/gather", "controller/gather/objects", "controller/inputs/desired",
			"controller/windowsnode", "controller/windowsnode/record", "bundle/reason", "render",
		},
		never: append([]string{"github.com/pkg/sftp/..."}, otherControllers("")...),
	},
	{
		pkg: "controller/base",
		imports: []string{
			"applier/remote", "bundle", "bundle/published", "controller/gather/objects", "controller/base/leader",
			"controller/base/named", "controller/windowsnode/nodelist",
		},
		never: join(remote, rendering, []string{"controller/hosts"}, otherControllers("")),
	},
	{
		pkg: "controller/inputs/warnings",
		imports: []string{
			"bundle", "bundle/published", "controller/base", "controller/base/ports", "controller/gather/objects",
			"controller/inputs/deletions", "controller/inputs/desired", "controller/windowsnode", "deploy/admission",
			"render/preview", "render/review",
		},
		never: append([]string{"cmd/...", "applier/remote/ssh", "github.com/pkg/sftp/..."}, otherControllers("")...),
	},
	{
		pkg: "controller/configure",
		imports: []string{
			"applier/protocol", "applier/remote", "bundle", "bundle/nodestate", "preflight", "bundle/published",
			"controller/base", "controller/base/conditions", "controller/base/named", "controller/configure/checks",
			"controller/gather", "controller/hosts", "controller/inputs/deletions", "controller/inputs/desired",
			"controller/keys", "controller/keys/username", "controller/status", "controller/windowsnode",
			"controller/windowsnode/record", "layout", "payload", "render", "bundle/reason", "controller/fleet",
			"render/machines",
		},
		never: append(
			[]string{"cmd/...", "applier/remote/ssh", "github.com/pkg/sftp/..."}, otherControllers("configure")...,
		),
	},
	{
		pkg: "controller/csr",
		imports: []string{
			"bundle", "bundle/published", "controller/base", "controller/configure", "controller/csr/certificates",
			"controller/gather", "controller/hosts", "controller/inputs/desired", "controller/windowsnode/record", "deploy/admission", "render",
		},
		never: append(
			[]string{"cmd/...", "applier/remote/ssh", "github.com/pkg/sftp/..."}, otherControllers("csr")...,
		),
	},
	{
		pkg:     "controller/hostkeys",
		imports: []string{"controller/base", "controller/hosts", "controller/windowsnode/record", "render"},
		never: append(
			[]string{"cmd/...", "applier/remote/ssh", "github.com/pkg/sftp/..."}, otherControllers("hostkeys")...,
		),
	},
	{
		pkg:     "controller/instance",
		imports: []string{"controller/base", "controller/configure"},
		never: append(
			[]string{"cmd/...", "applier/remote/ssh", "github.com/pkg/sftp/..."}, otherControllers("instance")...,
		),
	},
	{
		pkg: "controller/machine",
		imports: []string{
			"controller/base", "controller/configure", "controller/windowsnode", "controller/windowsnode/record",
		},
		never: append(
			[]string{"cmd/...", "applier/remote/ssh", "github.com/pkg/sftp/..."}, otherControllers("machine")...,
		),
	},
	{
		pkg: "controller/node",
		imports: []string{
			"applier/protocol", "applier/remote", "bundle", "bundle/nodestate", "bundle/published", "controller/base",
			"controller/configure", "controller/hosts", "controller/windowsnode", "controller/windowsnode/drain",
			"controller/windowsnode/nodelist", "controller/windowsnode/record", "payload", "render", "bundle/reason",
			"controller/fleet",
		},
		never: append(
			[]string{"cmd/...", "applier/remote/ssh", "github.com/pkg/sftp/..."}, otherControllers("node")...,
		),
	},
	{
		pkg: "controller/prerequisites",
		imports: []string{
			"bundle", "bundle/published", "controller/base", "controller/base/conditions", "controller/base/named",
			"controller/base/policies", "controller/configure", "controller/configure/checks", "controller/gather",
			"controller/gather/ignored", "controller/windowsnode/nodelist", "controller/windowsnode/record",
			"deploy/admission", "controller/fleet", "render/mirrors",
		},
		never: append(
			[]string{"cmd/...", "applier/remote/ssh", "github.com/pkg/sftp/..."}, otherControllers("prerequisites")...,
		),
	},
	{
		pkg: "controller/userdata",
		imports: []string{
			"bundle", "bundle/published", "controller/base", "controller/base/conditions", "controller/base/named",
			"controller/base/policies", "controller/hosts", "controller/keys", "render/machines",
		},
		never: append(
			[]string{"cmd/...", "applier/remote/ssh", "github.com/pkg/sftp/..."}, otherControllers("userdata")...,
		),
	},
	{
		pkg:     "controller/base/policies",
		imports: []string{"controller/base/named", "controller/gather/objects", "deploy/admission", "deploy/network"},
		never:   []string{"applier/..."},
	},
	{
		pkg:     "controller/base/skew",
		imports: []string{"bundle", "bundle/reason"},
		never:   join(cluster, remote, windows, []string{"applier/..."}),
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
		pkg:   "controller/base/apiservers",
		never: join(rendering, remote, []string{"applier/..."}),
	},
	{
		pkg: "controller/configure/checks",
		imports: []string{
			"bundle", "controller/base/conditions", "controller/base/skew", "payload", "render", "bundle/reason",
		},
		never: join(cluster, remote, []string{"applier/..."}),
	},
	{
		// It parses keys as the SSH library does, and opens no connection.
		pkg:     "controller/keys",
		imports: []string{"bundle", "render/machines", "bundle/reason"},
		never:   join(cluster, []string{"github.com/pkg/sftp/...", "github.com/ProtonMail/...", "applier/..."}),
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
			"bundle", "bundle/published", "controller/base/apiservers", "controller/base", "controller/base/leader",
			"controller/base/policies", "controller/base/ports", "controller/configure", "controller/csr",
			"controller/gather", "controller/gather/objects", "controller/hostkeys", "controller/hosts",
			"controller/inputs", "controller/inputs/deletions", "controller/inputs/desired", "controller/instance",
			"controller/keys/signing", "controller/machine", "controller/metrics", "controller/node", "controller/olm",
			"controller/prerequisites", "controller/rollout", "controller/status", "controller/userdata",
			"controller/inputs/warnings", "controller/windowsnode", "controller/windowsnode/drain",
			"controller/windowsnode/heartbeat", "payload", "render",
		},
		// Transports are handed in by cmd.
		never: []string{"cmd/...", "applier/remote/ssh", "github.com/pkg/sftp/..."},
	},
}
