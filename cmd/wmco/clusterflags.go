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

// add adds the flags to a command that reads the objects of the operator.
func (f *clusterFlags) add(cmd *cobra.Command) {
	f.addKubeconfig(cmd)
	addNamespace(cmd, &f.namespace)
}

// addNamespace adds the flag for the operator's namespace. Its default is too long a word for the column that pflag would write it in.
func addNamespace(cmd *cobra.Command, namespace *string) {
	cmd.Flags().StringVarP(namespace, "namespace", "n", gather.OperatorNamespace, "namespace of the operator (default "+gather.OperatorNamespace+")")
	cmd.Flags().Lookup("namespace").DefValue = ""
}

// addKubeconfig adds those that say which cluster it is.
func (f *clusterFlags) addKubeconfig(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.kube.Path, "kubeconfig", "", "kubeconfig file of the live cluster (default $KUBECONFIG or ~/.kube/config)")
	cmd.Flags().StringVar(&f.kube.Context, "context", "", "context of the kubeconfig")
	_ = cmd.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return f.kube.ContextNames(), cobra.ShellCompDirectiveNoFileComp
	})
	_ = cmd.RegisterFlagCompletionFunc("from", f.completeFrom)
}

// completeFrom completes a source: a live cluster, and files.
func (f *clusterFlags) completeFrom(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	sources := []string{"cluster"}
	for _, c := range f.kube.ContextNames() {
		sources = append(sources, "cluster:"+c)
	}
	return slices.Clip(sources), cobra.ShellCompDirectiveDefault
}
