package main

import (
	"slices"

	"github.com/spf13/cobra"

	"wmco/controller/gather"
)

// clusterFlags say which cluster the live one is and where the operator is in it. They are called as those of kubectl.
type clusterFlags struct {
	kube      gather.Kubeconfig
	namespace string
}

// addFlags adds the flags to a command that reads the objects of the operator.
func (f *clusterFlags) addFlags(cmd *cobra.Command) {
	f.addKubeconfig(cmd)
	addNamespace(cmd, &f.namespace)
}

// addNamespace adds the flag for the operator's namespace. Its default is too long a word for the column that pflag
// would write it in.
func addNamespace(cmd *cobra.Command, namespace *string) {
	cmd.Flags().StringVarP(
		namespace, "namespace", "n", gather.OperatorNamespace,
		"namespace of the operator (default "+gather.OperatorNamespace+")",
	)
	cmd.Flags().Lookup("namespace").DefValue = ""
}

// addKubeconfig adds those that say which cluster it is, and as whom it is asked.
func (f *clusterFlags) addKubeconfig(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.kube.Path, "kubeconfig", "", "kubeconfig file of the live cluster (default $KUBECONFIG or ~/.kube/config)")
	flags.StringVar(&f.kube.Context, "context", "", "context of the kubeconfig")
	flags.StringVar(&f.kube.Cluster, "cluster", "", "cluster of the kubeconfig, in place of the context's")
	flags.StringVar(&f.kube.User, "user", "", "user of the kubeconfig, in place of the context's")
	flags.StringVar(&f.kube.As, "as", "", "user to impersonate, such as system:serviceaccount:NAMESPACE:NAME")
	flags.StringArrayVar(&f.kube.AsGroups, "as-group", nil, "group to impersonate; repeatable")
	flags.StringVar(
		&f.kube.RequestTimeout, "request-timeout", "",
		"how long a request to the API server may take, such as 10s (0: no limit)",
	)
	for name, values := range map[string]func() []string{"context": f.contextNames, "cluster": f.clusterNames, "user": f.userNames} {
		_ = cmd.RegisterFlagCompletionFunc(name, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return values(), cobra.ShellCompDirectiveNoFileComp
		})
	}
	for _, name := range []string{"as", "as-group", "request-timeout"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	_ = cmd.RegisterFlagCompletionFunc("from", f.completeFrom)
}

// The names are those of the kubeconfig that the flags before name.
func (f *clusterFlags) contextNames() []string { return f.kube.ContextNames() }
func (f *clusterFlags) clusterNames() []string { return f.kube.ClusterNames() }
func (f *clusterFlags) userNames() []string    { return f.kube.UserNames() }

// completeFrom completes a source: a live cluster, and files.
func (f *clusterFlags) completeFrom(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	sources := []string{"cluster"}
	for _, c := range f.kube.ContextNames() {
		sources = append(sources, "cluster:"+c)
	}
	return slices.Clip(sources), cobra.ShellCompDirectiveDefault
}
