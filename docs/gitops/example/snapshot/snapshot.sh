#!/bin/sh
# Writes the objects that Windows nodes depend on, without any secret: no Secret, and of every other object only the fields
# that are read. Passwords in the addresses of proxies are masked. Run it where oc is logged in, and again when the cluster
# changes (a scheduled job that opens a pull request does well). It needs oc and jq.
set -eu

ns=openshift-windows-machine-config-operator

# What is kept of each kind: what is read. The annotation last-applied-configuration repeats the whole object, so only the one
# that is read stays. A field that is added here must not hold a secret in any cluster.
keep='
# The user and password in an address end at the last @, as a password may hold one.
def masked: sub("^(?<scheme>[A-Za-z][A-Za-z0-9+.-]*://)?.*@"; "\(.scheme // "")****:****@");
def proxy: {trustedCA} + ({httpProxy, httpsProxy, noProxy} | with_entries(select(.value != null) | .value |= masked));
def meta: {name, namespace, uid, creationTimestamp, labels,
  annotations: {"k8s.ovn.org/hybrid-overlay-node-subnet": .annotations["k8s.ovn.org/hybrid-overlay-node-subnet"]}};

# Ignition: the credential provider of the cloud, and the command of the kubelet. Other files and units hold pull secrets and
# proxies, and so does the environment of a unit. cloud.conf of Azure can hold a password.
def file: select(.path | test("^/etc/kubernetes/credential-providers/[aeg]cr-credential-provider[.]yaml$")) | {path, mode, overwrite, contents};
def commands: [splits("(?<!\\\\)\n") | select(test("^\\s*(\\[Service\\]|ExecStart\\s*=)")) | gsub("//[^\\s]*@"; "//****:****@")]
  | join("\n") + "\n";
def unit: {name, contents: (.contents // "" | commands)};
def ignition: {
  ignition: {version: .ignition.version},
  storage: {files: [.storage.files[]? | file]},
  systemd: {units: [.systemd.units[]? | select(.name == "kubelet.service") | unit + {dropins: [.dropins[]? | unit]}]}};

def variable: select(.value) | select(.name | test("^((HTTP|HTTPS|NO)_PROXY|ARGS|SERVICES_LOG_.*)$")) | {name, value: (.value | masked)};
def fields:
  if .kind == "APIServer" then {spec: {tlsSecurityProfile: .spec.tlsSecurityProfile}}
  elif .kind == "ClusterVersion" then {status: {desired: {version: .status.desired.version}}}
  elif .kind == "ConfigMap" then {data}
  elif .kind == "ControllerConfig" then {spec: (.spec | {kubeAPIServerServingCAData, imageRegistryBundleData,
    imageRegistryBundleUserData, infra: (.infra | {spec, status})})}
  elif .kind == "Deployment" then {spec: {template: {spec: {containers: [.spec.template.spec.containers[]? |
    {name, args, env: [.env[]? | variable]}]}}}}
  elif .kind == "Infrastructure" then {spec, status}
  elif .kind == "Machine" or .kind == "Node" then {status: {addresses: .status.addresses}}
  elif .kind == "MachineConfig" then {spec: {config: (.spec.config | ignition)}}
  elif .kind == "MachineConfigPool" then {status: {configuration: {name: .status.configuration.name}}}
  elif .kind == "Network" then {spec: (.spec | {networkType, serviceNetwork, clusterNetwork, defaultNetwork}), status: (.status | {networkType, serviceNetwork, clusterNetwork})}
  elif .kind == "Proxy" then {spec: (.spec | proxy), status: (.status | proxy)}
  else {} end;
def kept: {apiVersion, kind, metadata: (.metadata | meta)} + fields;
if .kind | endswith("List") then {apiVersion, kind, items: [.items[] | kept]} else kept end
| walk(if type == "object" then with_entries(select(.value != null)) else . end)'

get() { # get FILE ARGUMENTS: one file each; a kind that the cluster lacks gives none
	file=$1
	shift
	if object=$(oc get "$@" -o json 2>/dev/null); then
		printf '%s\n' "$object" | jq --sort-keys "$keep" >"$file.new"
		mv "$file.new" "$file"
		rm -f "${file%.json}.yaml" # written by an earlier version of this script, with secrets
	fi
}

get infrastructure.json infrastructures.config.openshift.io cluster
get network-config.json networks.config.openshift.io cluster
get network-operator.json networks.operator.openshift.io cluster
get proxy.json proxies.config.openshift.io cluster
get apiserver.json apiservers.config.openshift.io cluster
get version.json clusterversions.config.openshift.io version
get pool.json machineconfigpools.machineconfiguration.openshift.io worker
get controllerconfig.json controllerconfigs.machineconfiguration.openshift.io machine-config-controller
get machineconfig.json machineconfigs.machineconfiguration.openshift.io "$(oc get machineconfigpools.machineconfiguration.openshift.io worker -o 'jsonpath={.status.configuration.name}')"
get machines.json machines.machine.openshift.io --namespace openshift-machine-api --selector machine.openshift.io/os-id=Windows
get nodes.json nodes --selector kubernetes.io/os=windows
get trusted-ca.json configmaps trusted-ca --namespace $ns
get operator.json deployments.apps windows-machine-config-operator --namespace $ns
