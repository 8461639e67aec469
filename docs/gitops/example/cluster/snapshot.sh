#!/bin/sh
# Writes the objects that Windows nodes depend on, without any Secret. Run it where oc is logged in, and again when the
# cluster changes (a scheduled job that opens a pull request does well).
set -eu

ns=openshift-windows-machine-config-operator
get() { # get FILE ARGUMENTS: one file each; a kind that the cluster lacks gives none
	file=$1
	shift
	if oc get "$@" -o yaml >"$file.new" 2>/dev/null; then
		mv "$file.new" "$file"
	else
		rm -f "$file.new"
	fi
}

get infrastructure.yaml infrastructures.config.openshift.io cluster
get network-config.yaml networks.config.openshift.io cluster
get network-operator.yaml networks.operator.openshift.io cluster
get proxy.yaml proxies.config.openshift.io cluster
get apiserver.yaml apiservers.config.openshift.io cluster
get version.yaml clusterversions.config.openshift.io version
get pool.yaml machineconfigpools.machineconfiguration.openshift.io worker
get controllerconfig.yaml controllerconfigs.machineconfiguration.openshift.io machine-config-controller
get machineconfig.yaml machineconfigs.machineconfiguration.openshift.io "$(oc get machineconfigpools.machineconfiguration.openshift.io worker -o 'jsonpath={.status.configuration.name}')"
get machines.yaml machines.machine.openshift.io --namespace openshift-machine-api --selector machine.openshift.io/os-id=Windows
get nodes.yaml nodes --selector kubernetes.io/os=windows
get trusted-ca.yaml configmaps trusted-ca --namespace $ns
get operator.yaml deployments.apps windows-machine-config-operator --namespace $ns
